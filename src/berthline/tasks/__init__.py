"""Tasks: what can be gained in an environment, and what a policy gains there."""
