"""Trace formats: `format_table.py` lists them; each module has `detect` and `read` for one of them.

`alibaba/`, `google_2011/`, `slurm/` and `lsf/` contain families of formats. `row_filter.py` counts
dropped rows by reason.
"""
