"""Algorithms, one file each; `table.py` lists them, `algorithm.py` is their common interface."""
