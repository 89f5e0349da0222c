"""Corrections of forecast intervals, from how far earlier forecasts of the same run were off.

A forecast says by how much draws differ, not by how much the model behind them is wrong: habits
change, and the error of a long queue is the sum of many. What forecasts of the run's own past
missed is known, so their intervals are stretched, around the median, until as many of the past
starts are inside as should be (split conformal prediction). They are never made shorter: the few
instants that a run has would then be wrong as often as the draws.

Only what is known at an instant is used for a forecast of that instant: starts that have happened,
and waits that are longer by then than an interval was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

LEAST_SECONDS = 60.0
"""Added to the length of an interval, which may be 0."""

FEWEST_INSTANTS = 10
"""With forecasts of fewer instants, nothing is corrected."""


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """By how much intervals are stretched; each part is a minute longer besides.

    Attributes:
        earlier: factor of the part before the median, at least 1.
        later: factor of the part after it, at least 1.
        instants: number of instants of the run whose forecasts say so.
    """

    earlier: float
    later: float
    instants: int

    def low(self, time: Floats | float, low: Floats, median: Floats) -> Floats:
        """Return where intervals begin: never before the instant itself."""
        with np.errstate(invalid="ignore"):
            moved = median - self.earlier * (median - low + LEAST_SECONDS)
        # Without a median, nothing is known of how far off it is.
        return np.where(np.isfinite(median), np.maximum(moved, time), low)

    def high(self, median: Floats, high: Floats) -> Floats:
        """Return where intervals end."""
        with np.errstate(invalid="ignore"):
            moved = median + self.later * (high - median + LEAST_SECONDS)
        return np.where(np.isfinite(median), moved, high)


class Forecasts(NamedTuple):
    """Forecasts of past instants, one row for each waiting job.

    Attributes:
        instant: the number of the instant.
        time: the instant.
        start: when the job did start; infinity = it did not.
        low: where its interval began.
        median: the median of the draws.
        high: where its interval ended.
    """

    instant: Floats
    time: Floats
    start: Floats
    low: Floats
    median: Floats
    high: Floats

    def of(self, rows: npt.NDArray[np.bool_]) -> Forecasts:
        """Return some of the rows."""
        return Forecasts(*(column[rows] for column in self))


def correction_of(past: Forecasts, *, now: float, level: float) -> Correction | None:
    """Return the correction that past forecasts call for; None = there are too few.

    Args:
        past: forecasts of instants until now.
        now: only what is known now is used.
        level: the share of starts that should be inside.
    """
    is_known = (past.start <= now) | (now > past.high)
    is_known &= np.isfinite(past.median)
    instant, _, start, low, median, high = (column[is_known] for column in past)
    start = np.minimum(start, now)
    group, counts = np.unique(instant, return_inverse=True, return_counts=True)[1:]
    if len(counts) < FEWEST_INSTANTS:
        return None
    # Jobs that wait at the same instant are off together: a hundred of them say as much as ten.
    weight = 1 / np.sqrt(counts[group.reshape(-1)])
    later = (start - median) / (high - median + LEAST_SECONDS)
    earlier = (median - start) / (median - low + LEAST_SECONDS)
    share = (1 + level) / 2
    return Correction(
        earlier=max(_quantile(earlier, weight, share), 1.0),
        later=max(_quantile(later, weight, share), 1.0),
        instants=len(counts),
    )


def _quantile(values: Floats, weight: Floats, share: float) -> float:
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    place = int(np.searchsorted(passed, share * passed[-1]))
    return float(values[order][min(place, len(values) - 1)])
