"""DrawnAhead: draws the next episodes of several slots together, before they are asked for.

Slots finish one at a time, and one episode alone costs several times its share of many. So a draw
of few goes along with the next episodes of other slots, which are kept until their slots finish:
at most one per slot. Nobody can tell the difference, as an episode is a function of its key.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable

Keys = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]

ENOUGH = 32
"""Episodes that are drawn at once, if slots have as many to come."""
_MOST_SLOTS = 65_536  # slots beyond are drawn as they come: their episodes would take too much room


class DrawnAhead:
    """Hands out episodes, and draws ahead.

    Args:
        draw: returns the columns of keys, (slot, episode) pairs, one row each.
    """

    def __init__(self, draw: Callable[[Keys], Columns]) -> None:
        self._draw = draw
        self._kept: dict[int, int] = {}  # by slot, the episode that is drawn and not yet asked for
        self._due: dict[int, int] = {}  # by slot, the episode it will ask for, not yet drawn
        self._tables: Columns = {}  # what is kept, in the row of its slot

    def forget(self) -> None:
        """Throw away what is kept, as it would now be drawn differently."""
        self._due.update(self._kept)
        self._kept.clear()

    def draw(self, keys: Keys) -> Columns:
        """Return the columns of these keys."""
        pairs = keys.tolist()
        slots = [slot for slot, _ in pairs]
        if (
            len(pairs) >= ENOUGH
            or len(set(slots)) < len(slots)
            or max(slots, default=0) >= _MOST_SLOTS
        ):
            drawn = self._draw(keys)
        else:
            missing = [pair for pair in pairs if self._kept.get(pair[0]) != pair[1]]
            if missing:
                self._fetch(missing, set(slots))
            # A slice, as numpy's general way to index costs more than the copying.
            rows = slice(slots[0], slots[0] + 1) if len(slots) == 1 else slots
            drawn = {name: table[rows].copy() for name, table in self._tables.items()}
        for slot, episode in pairs:
            self._kept.pop(slot, None)
            if slot < _MOST_SLOTS:
                self._due[slot] = episode + 1
        return drawn

    def _fetch(self, missing: list[list[int]], asked: set[int]) -> None:
        """Draw and keep what is missing, and what other slots than those asked for ask for next."""
        others = ([slot, episode] for slot, episode in self._due.items() if slot not in asked)
        wanted = missing + list(itertools.islice(others, ENOUGH - len(missing)))
        drawn = self._draw(np.array(wanted, np.int64))
        rows = [slot for slot, _ in wanted]
        for name, table in drawn.items():
            self._room(name, max(rows) + 1, table)[rows] = table
        for slot, episode in wanted:
            self._kept[slot] = episode
            self._due.pop(slot, None)

    def _room(self, name: str, slots: int, like: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the table of a column, made larger if it has too few rows."""
        table = self._tables.get(name)
        have = 0 if table is None else len(table)
        if table is None or have < slots:
            larger = np.empty((max(slots, 2 * have), like.shape[1]), like.dtype)
            if table is not None:
                larger[:have] = table
            self._tables[name] = table = larger
        return table
