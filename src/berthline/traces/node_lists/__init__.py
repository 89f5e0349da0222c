"""Node lists: publishers' tables of machines, read as clusters."""
