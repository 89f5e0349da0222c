"""The command line: `main.py` dispatches to one room or module per verb, which parses and prints.

- `main.py`: the `berthline` command: list of verbs, dispatch, errors and exit codes
- `VERB/command.py`, or `VERB.py` where a verb is one module: its options, the call, what it prints
- `options.py`: reading options: tyro Structs, checked by msgspec, errors in one form
- `output.py`: tables, numbers, JSON, notes and progress as every verb prints them
- `conditions.py`, `energy_rate.py`, `groups.py`: options that several verbs share
"""
