"""The report of a suite: what its table of runs says, and how it is shown."""
