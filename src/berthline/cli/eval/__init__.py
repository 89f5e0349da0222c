"""`berthline eval`: options, the RUN argument, and what is printed."""
