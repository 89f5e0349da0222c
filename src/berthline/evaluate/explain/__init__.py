"""Why a job waited (`explain.py`, the entry point), and when it will start (`forecast.py`)."""
