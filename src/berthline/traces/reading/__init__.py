"""Code that trace formats share: bytes, text tables, JSON records, dates, columns.

Every error names its file and line.
"""
