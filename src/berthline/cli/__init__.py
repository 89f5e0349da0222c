"""The command line: `main` dispatches, one module per verb does the work.

- `main.py`: the `berthline` command: verb list, dispatch, errors and exit codes
- `demo.py`, `sim.py`, `compare.py`, `policies.py`, `bench.py`, `doctor.py`: the verbs
- `traces.py`: the verb `traces`, and its own verbs in `traces_*.py`
- `options.py`: reading options: tyro Structs, checked by msgspec, errors in one form
- `output.py`: tables, numbers and JSON as every verb prints them
- `run_directory.py`: writing results to a directory, whole or not at all
- `speed.py`, `machine.py`: measuring the simulator, describing the machine
"""
