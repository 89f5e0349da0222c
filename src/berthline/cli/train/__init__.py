"""`berthline train`: options, run directories, and what is printed; `es.py` tunes schedulers."""
