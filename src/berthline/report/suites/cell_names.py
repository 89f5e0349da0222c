"""Names of cells that fit into a figure: what they share is left out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

LONGEST = 34


def short_cells(cells: Sequence[str]) -> dict[str, str]:
    """Return a name for each cell without the parts that all of them have.

    Example:
        >>> cells = ["drift@uniform:4x8:V100,load=0.9", "lublin@uniform:4x8:V100,load=0.9"]
        >>> list(short_cells(cells).values())
        ['drift', 'lublin']
    """
    parts = {cell: re.split(r"[@,~]", cell) for cell in cells}
    shared = set.intersection(*(set(own) for own in parts.values())) if len(cells) > 1 else set()
    names: dict[str, str] = {}
    for cell, own in parts.items():
        name = ", ".join(part for part in own if part not in shared) or cell
        name = name.replace("uniform:", "")
        if len(name) > LONGEST:
            name = name[: LONGEST - 1] + "…"
        names[cell] = name if name not in names.values() else cell
    return names
