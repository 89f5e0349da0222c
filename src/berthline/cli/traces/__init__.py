"""`berthline traces`: one module per verb of `traces`."""
