"""The report page: `write_report.py` writes it; `verdict.py` has its first sentences."""
