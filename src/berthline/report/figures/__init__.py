"""Figures, one module each; `figure_table.py` lists them, `drawing.py` and `axes.py` are shared."""
