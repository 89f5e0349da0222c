"""`berthline sim`: options, and what is printed."""
