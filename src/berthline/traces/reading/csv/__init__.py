"""Text tables with separators: `csv_table.py` is what formats use.

`csv_reader.py` reads in pieces, with `csv_native.py` where the text is plain and `csv_careful.py`
where it is not.
"""
