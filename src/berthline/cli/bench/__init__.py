"""`berthline bench`: one module per benchmark, and what they share."""
