"""`berthline compare`: options, the cells they stand for, and what is printed."""
