"""When waiting jobs will start (`forecast.py`), and how often that was right (`calibrate.py`)."""
