"""Algorithms, one file each; `algorithm_table.py` lists them, `algorithm.py` is their interface."""
