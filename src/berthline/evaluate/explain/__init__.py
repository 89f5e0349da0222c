"""Why a job waited: `explain.py` is the entry; `forecast.py` says when a waiting job will start."""
