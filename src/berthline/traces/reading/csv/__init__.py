"""Text tables with separators: formats use `csv_table.py`.

`csv_reader.py` reads in pieces, with `csv_native.py` if the text is plain and `csv_careful.py` if
it is not.
"""
