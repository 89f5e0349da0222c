"""Reports: figures, the page around them, and exports for other tools.

- `figures/`: one module per kind of figure; `figure_table.py` lists them
- `page/`: the HTML page: verdict, tables, losses
- `exports/`: runs in the formats of Perfetto and Batsim

Figures and the page need the extra `report`.
"""
