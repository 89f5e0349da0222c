"""Tuning the parameters of a scheduler on the simulator: `search.py`. Nothing here uses torch."""
