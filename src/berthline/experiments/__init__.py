"""Published experiments, done again with Berthline's own parts: one module for each."""
