"""Contents and problems of a trace, and how close a generated workload is to it.

- `card.py`: the figures of a workload, also on a cluster
- `validate.py`: errors and warnings of a trace file, with line numbers
- `closeness.py`, `wait_check.py`: a generated workload compared with the trace it was fitted to

The package is above `sim/`, because the simulator decides which jobs a cluster can never run, and
how long jobs wait.
"""
