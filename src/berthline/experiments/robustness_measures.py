"""Robustness: what a perturbation does to a scheduler, measured against its clean twin.

The twin is the same scheduler with the same seed on the unchanged jobs and nodes. A ratio is the
perturbed value over the twin's, so it says what the perturbation costs this scheduler, not which
scheduler is better. The *queue curve* of a run is the mean number of waiting jobs in each of 100
equal parts of the time in which the twin's jobs are submitted. What comes after that time is left
out: without new jobs every queue empties.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.evaluate.statistics.t_distribution import t_quantile
from berthline.model.schedule import PREEMPT, REJECT, SUBMIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.schedule import Schedule
    from berthline.sim.simulate import Result

Floats = npt.NDArray[np.float64]

PARTS = 100
"""Of a queue curve."""

EXPLODES, SMALL_QUEUE = 3.0, 10.0
"""A queue explodes if it gets longer than 3 times the longest of the twin, or than 3 times 10 jobs
where the twin's is shorter than that."""

HOLDS = 5
"""Parts for which a queue must stay in the band to have recovered."""

COLUMNS: Mapping[str, str] = {
    "queue_max_ratio": "number",
    "queue_exploded": "number",
    "queue_curve_seconds": "number",
    "queue_curve": "list",
    "twin_queue_curve": "list",
}
"""What `measures` returns, by name."""


def measures(clean: Result, perturbed: Result) -> dict[str, float | list[float] | None]:
    """Return what a table of runs keeps of a perturbed run and its twin.

    Args:
        clean: the twin.
        perturbed: the run.

    Returns:
        queue_max_ratio: the longest queue over the twin's; infinity if only the twin has none.
        queue_exploded: 1 if the queue exploded, else 0.
        queue_curve_seconds: the time that both curves span, from the twin's first submission.
        queue_curve: of the run.
        twin_queue_curve: of the twin.
    """
    submit = clean.workload.submit
    begin, end = float(submit[0]), float(submit[-1])
    longest, usual = (result.metrics().queue.max for result in (perturbed, clean))
    return {
        "queue_max_ratio": _ratio(longest, usual),
        "queue_exploded": float(explodes(longest, usual)),
        "queue_curve_seconds": end - begin,
        "queue_curve": queue_curve(perturbed.log, begin, end),
        "twin_queue_curve": queue_curve(clean.log, begin, end),
    }


def explodes(longest: float, usual: float) -> bool:
    """Whether a queue exploded.

    Formula: longest > 3 x max(the twin's longest, 10).
    """
    return longest > EXPLODES * max(usual, SMALL_QUEUE)


def queue_curve(log: Schedule, begin: float, end: float, *, parts: int = PARTS) -> list[float]:
    """Return the mean number of waiting jobs in equal parts of a time, preempted jobs included.

    Args:
        log: of a run.
        begin: of the first part.
        end: of the last part.
        parts: how many.
    """
    if not end > begin:
        return [0.0] * parts
    change = np.zeros(len(log))
    change[(log.kind == SUBMIT) | (log.kind == PREEMPT)] = 1
    change[log.is_start | (log.kind == REJECT)] = -1
    # The integral of a step function is linear between its steps.
    waiting = np.cumsum(change)
    edges = np.linspace(begin, end, parts + 1)
    times = np.concatenate((log.time, [max(float(log.time[-1]), end) + 1.0]))
    areas = np.concatenate(([0.0], np.cumsum(waiting * np.diff(times))))
    passed = np.interp(edges, times, areas, left=0.0)
    return [float(mean) for mean in np.diff(passed) / np.diff(edges)]


class Band(NamedTuple):
    """Where a queue curve of the clean twin lies with a probability of 95 %, part by part."""

    mean: Floats
    low: Floats
    high: Floats


def twin_band(curves: npt.ArrayLike) -> Band | None:
    """Return the band of the twin's queue curves; None with fewer than two.

    Formula: mean -+ t s sqrt(1 + 1/n) over the seeds, in each part by itself: the prediction
    interval of one more curve. Below, it ends at 0.

    Args:
        curves: seeds x parts.
    """
    table = np.asarray(curves, np.float64)
    seeds = len(table)
    if seeds < 2:
        return None
    mean, spread = table.mean(axis=0), table.std(axis=0, ddof=1)
    half = t_quantile(0.975, seeds - 1) * math.sqrt(1 + 1 / seeds) * spread
    return Band(mean, np.maximum(mean - half, 0.0), mean + half)


def recovery_seconds(curve: npt.ArrayLike, band: Band, *, begins: float, seconds: float) -> float:
    """Return how long after the begin of a perturbation the queue is back in the twin's band.

    It is back where it stays at or below the upper end of the band for 5 parts, or for those that
    are left. 0 = it never left the band; infinity = it was not back before the last submission.

    Args:
        curve: of the perturbed run.
        band: of the twin.
        begins: when the perturbation begins, as a share of the curve's time.
        seconds: the time that the curve spans.
    """
    above = np.asarray(curve, np.float64) > band.high
    parts = len(above)
    first = math.floor(begins * parts + 1e-9)
    left = np.flatnonzero(above[first:])
    if not len(left):
        return 0.0
    for part in range(first + int(left[0]) + 1, parts):
        if not above[part : part + HOLDS].any():
            return (part / parts - begins) * seconds
    return math.inf


def variation(values: npt.ArrayLike) -> float | None:
    """Return the coefficient of variation: standard deviation over mean; None = not defined."""
    numbers: Any = np.asarray(values, np.float64)
    if len(numbers) < 2 or not numbers.mean() > 0:
        return None
    return float(numbers.std(ddof=1) / numbers.mean())


def _ratio(value: float, usual: float) -> float:
    if value == usual:
        return 1.0
    return value / usual if usual else math.inf
