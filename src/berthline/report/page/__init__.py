"""The report page: `write_report.py` writes it; `verdict.py` writes its first sentences."""
