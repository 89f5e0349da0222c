"""The days of a log on which the model of today's scheduler is chosen, and evaluated."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.whatif.log_excerpt import eligible_since, recorded_starts

if TYPE_CHECKING:
    from berthline.evaluate.whatif.log_excerpt import LogExcerpt
    from berthline.model.workload import Workload

DAY = 86_400.0
LEAD = 28 * DAY
"""At most this much of the log before the period is used to choose the model. Waits of a single
week are too few to tell hidden limits from chance."""

TAIL = 7 * DAY
"""This much after the period is simulated too: later jobs may overtake those of the period."""

FEWEST_JOBS = 20
"""The fewest jobs with a recorded start that a result needs."""

FEWEST_TO_CHOOSE = 50
SHORTEST_TO_CHOOSE = 2 * DAY


@dataclasses.dataclass(frozen=True, eq=False)
class Days:
    """The jobs on which the model is chosen and evaluated, and alternatives are measured."""

    chosen: npt.NDArray[np.bool_]
    judged: npt.NDArray[np.bool_]
    measured: npt.NDArray[np.bool_]
    day: npt.NDArray[np.int64]
    how: str


def begin_of_excerpt(workload: Workload, begin: float) -> float:
    """Return where the excerpt begins: up to LEAD before the period, if the log has enough jobs."""
    since, start = eligible_since(workload), recorded_starts(workload)
    earliest = max(begin - LEAD, float(since.min()))
    before = np.isfinite(start) & (since >= earliest) & (since < begin)
    enough = begin - earliest >= SHORTEST_TO_CHOOSE and int(before.sum()) >= FEWEST_TO_CHOOSE
    return earliest if enough else begin


def days_of(excerpt: LogExcerpt, begin: float, end: float) -> Days:
    """Return the split: earlier days to choose on; else every other day of the period."""
    since = excerpt.since
    fresh = np.arange(len(since)) >= excerpt.running + excerpt.queued
    measured = fresh & (since >= begin) & (since < end)
    before = fresh & (since < begin)
    day = np.floor((since - begin) / DAY).astype(np.int64)
    if before.any():
        days = (begin - excerpt.begin) / DAY
        return Days(before, measured, measured, day, f"the {days:.2g} days before the period")
    odd, even = measured & (day % 2 == 0), measured & (day % 2 == 1)
    if min(odd.sum(), even.sum()) >= FEWEST_JOBS:
        return Days(odd, even, measured, day, "every other day of the period")
    return Days(
        measured, measured, measured, day, "the same jobs it is tested on: there are no other days"
    )
