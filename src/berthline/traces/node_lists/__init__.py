"""Node lists: tables of machines from trace publishers, read as clusters."""
