"""Comparing schedulers: `compare.py` is the entry point.

`grid.py` makes the runs, `grid_workers.py` in several processes, and `compare/judge.py` the
verdicts. `protocol.py` chooses rivals on some windows and reports on others.
"""
