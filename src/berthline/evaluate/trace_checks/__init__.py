"""What a trace holds, what is wrong with it, and how close a generated one comes to it.

- `card.py`: the numbers of a workload, also on a cluster
- `validate.py`: errors and warnings of a trace file, with line numbers
- `closeness.py`, `wait_check.py`: a generated workload beside the trace it was fitted to

It stands above `sim/`: the simulator decides which jobs a cluster can never run, and how long jobs
wait.
"""
