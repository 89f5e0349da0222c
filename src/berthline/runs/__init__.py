"""Run directories: what `--out DIR` writes and `open_run` reads.

- `run_layout.py`: the names of the files, and the kinds of run
- `open_run.py`: reading; `bl.open_run(path)` returns a `Run`
- `run_directory.py`: writing a run that is computed first and then written at once
- `job_tables.py`: the tables of such a run
- `kept_runs.py`: the finished runs of an unfinished comparison
- `training_directory.py`, `growing_files.py`: training runs, written while they run

The package imports `model`, `traces` (to read workload files) and nothing above them.
"""
