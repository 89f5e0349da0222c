"""Runs on real systems: their metrics, and how close a simulation of the same jobs comes."""
