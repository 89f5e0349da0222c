"""Comparing schedulers: `compare.py` is the entry, `grid.py` makes runs, `judge.py` verdicts.

`protocol.py` chooses rivals on some windows and reports on others; `grid_workers.py` makes the runs
in several processes.
"""
