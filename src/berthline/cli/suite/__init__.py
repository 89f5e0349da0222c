"""`berthline suite`: named grids of runs."""
