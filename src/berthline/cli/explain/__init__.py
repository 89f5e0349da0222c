"""`berthline explain`: options, and what is printed."""
