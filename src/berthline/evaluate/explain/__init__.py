"""Why a job waited (`explain.py`, the entry point), and what would have helped (`unblock.py`)."""
