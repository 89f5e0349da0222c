"""The table of what may import what, from the test that holds it."""

from __future__ import annotations

import ast
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent / "tests" / "test_layers.py"


def layers() -> str:
    """Return the table LAYERS of tests/test_layers.py, without running it."""
    tree = ast.parse(TEST.read_text(encoding="utf-8"))
    (table,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "LAYERS"
    )
    rows = ["| package | may import |", "| --- | --- |"]
    for package, allowed in table.items():
        shown = (
            "everything" if allowed == "*" else ", ".join(f"`{name}`" for name in allowed.split())
        )
        rows.append(f"| `{package}` | {shown or 'nothing of Berthline'} |")
    return "\n".join(rows)


PARTS = {"layers": layers}
