"""Published experiments, repeated with Berthline: one module for each."""
