"""Suites: named grids of runs, written as TOML files, and what carries them out.

`suite_plan.py` is such a file as data, `planned_runs.py` the runs in it, `run_suite.py` makes them.
"""
