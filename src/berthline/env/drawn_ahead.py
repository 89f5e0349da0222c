"""DrawnAhead: draws the next episodes of several slots together, before they are asked for.

Slots finish one at a time, and one episode alone costs several times its share of many. So a draw
of few goes along with the next episodes of other slots, which are kept until their slots finish:
at most one per slot. Nobody can tell the difference, as an episode is a function of its key.
"""

from __future__ import annotations

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
_NONE = -1


class DrawnAhead:
    """Hands out episodes, and draws ahead.

    Args:
        draw: returns the columns of keys, (slot, episode) pairs, one row each.
    """

    def __init__(self, draw: Callable[[Keys], Columns]) -> None:
        self._draw = draw
        self._running = np.full(0, _NONE, np.int64)  # the episode that each slot had last
        self._kept = np.full(0, _NONE, np.int64)  # the episode that is kept for each slot
        self._tables: Columns = {}

    def forget(self) -> None:
        """Throw away what is kept, as it would now be drawn differently."""
        self._kept[:] = _NONE

    def draw(self, keys: Keys) -> Columns:
        """Return the columns of these keys."""
        slots, episodes = keys[:, 0], keys[:, 1]
        if not len(keys) or slots.max() >= _MOST_SLOTS:
            return self._draw(keys)
        self._make_room(int(slots.max()) + 1)
        self._running[slots] = episodes
        if len(keys) >= ENOUGH or len(set(slots.tolist())) < len(keys):
            return self._draw(keys)
        if not (self._kept[slots] == episodes).all():
            self._fetch(keys)
        return {name: table[slots] for name, table in self._tables.items()}

    def _fetch(self, keys: Keys) -> None:
        """Draw what is missing of the keys, and what else slots will ask for next."""
        missing = keys[self._kept[keys[:, 0]] != keys[:, 1]]
        coming = self._running + 1
        is_idle = (self._running != _NONE) & (self._kept != coming)
        is_idle[keys[:, 0]] = False
        others = np.flatnonzero(is_idle)[: ENOUGH - len(missing)]
        wanted = np.concatenate((missing, np.stack((others, coming[others]), axis=1)))
        drawn = self._draw(wanted)
        rows = wanted[:, 0]
        for name, table in drawn.items():
            if name not in self._tables:
                self._tables[name] = np.empty((len(self._kept), table.shape[1]), table.dtype)
            self._tables[name][rows] = table
        self._kept[rows] = wanted[:, 1]

    def _make_room(self, slots: int) -> None:
        have = len(self._kept)
        if slots <= have:
            return
        more = max(slots, 2 * have) - have
        self._running = np.concatenate((self._running, np.full(more, _NONE, np.int64)))
        self._kept = np.concatenate((self._kept, np.full(more, _NONE, np.int64)))
        for name, table in self._tables.items():
            room = np.empty((more, table.shape[1]), table.dtype)
            self._tables[name] = np.concatenate((table, room))
