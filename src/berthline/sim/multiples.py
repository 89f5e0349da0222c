"""Multiples of an interval: when decisions are made under ticks, rounds and timers."""

from __future__ import annotations

import math


def next_multiple(interval: float, now: float, *, at_least: bool = False) -> float:
    """Return the first multiple of an interval after now; with `at_least`, now counts too."""
    count = float(math.floor(now / interval))
    while count * interval < now or (count * interval == now and not at_least):
        if count + 1 == count:
            return math.inf  # the clock is too large to distinguish multiples
        count += 1
    return count * interval
