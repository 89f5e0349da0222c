"""Generators learned from a trace: `fit.py` learns, `fitted_generator.py` draws.

`berthline.evaluate.trace_checks` measures how close the generated jobs come to the trace.
"""
