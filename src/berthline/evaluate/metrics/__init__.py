"""Metrics of one run; `measure.py` puts them together.

- `job_table.py`: wait and JCT of each job
- `slowdown.py`: slowdown and bounded slowdown
- `stretches.py`: what jobs held, and when
"""
