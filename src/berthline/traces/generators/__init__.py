"""Generators: workloads drawn from a seed and a few dials; `synthetic.py` lists all of them.

`arrivals.py`, `run_times.py`, `gpu_mix.py`, `estimates.py` and `job_columns.py` draw the parts of a
job. `fitted/` learns a generator from a trace.
"""
