"""What other schedulers would have done to a log: `whatif.py` is the entry point.

`log_excerpt.py` is the part of the log that is simulated again; `fidelity.py` says how far to trust
the model.
"""
