"""`berthline whatif`: options, the period of the log, and what is printed."""
