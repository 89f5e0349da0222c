"""`berthline watch`."""
