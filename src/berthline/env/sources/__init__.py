"""Sources: where the jobs of episodes come from, and the states in which episodes begin."""
