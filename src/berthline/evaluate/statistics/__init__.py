"""Intervals, tests and power for results that are paired by window or by block of jobs."""
