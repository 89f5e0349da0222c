"""Systems that a controller can look at and act on, behind one contract (`contract.py`)."""
