"""`berthline policies`: lists of what schedulers and environments are made of."""
