"""Trace formats: `table.py` lists them; each module has `detect` and `read` for one of them.

`alibaba/`, `google_2011/`, `slurm/` and `lsf/` hold families of formats. `row_filter.py` counts the
rows that are left out, by reason.
"""
