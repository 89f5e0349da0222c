"""Multiples of an interval: when decisions are made under ticks, rounds and timers."""

from __future__ import annotations

import math


def next_multiple(interval: float, now: float, *, at_least: bool = False) -> float:
    """Return the first multiple of an interval after now, or with `at_least` from now on."""
    count = float(math.floor(now / interval))
    while count * interval < now or (count * interval == now and not at_least):
        if count + 1 == count:
            return math.inf  # the clock is too far on to tell multiples apart
        count += 1
    return count * interval
