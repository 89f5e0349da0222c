"""Generated lists of commands to run on one node."""
