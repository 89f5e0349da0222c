"""The clock of the reference simulator: SimPy's, with events at given times."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from berthline.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

try:
    import simpy
except ImportError:
    raise MissingExtraError("simpy", "dev", "the reference simulator") from None


class Clock(simpy.Environment):
    """SimPy's clock, with events at given times: a delay added to now may miss one by a bit."""

    def at(self, time: float, callback: Callable[[object], None]) -> None:
        """Call back at a time, after what is already due then."""
        event: simpy.Event = self.event()
        event._ok, event._value = True, None
        event.callbacks.append(callback)
        queue: list[tuple[float, int, int, simpy.Event]] = self._queue  # type: ignore[assignment]
        heapq.heappush(queue, (time, 1, next(self._eid), event))
