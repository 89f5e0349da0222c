"""Overall: the combined result of several comparisons, over all cells and windows.

Cells differ in difficulty, so values are compared as ratios to the baseline's on the same window.
The interquartile mean of the ratios says by how much a scheduler is better, and the probability of
improvement says how often.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.compare.comparison import Comparison, PerMetric
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.improvement import probability_of_improvement
from berthline.evaluate.statistics.interquartile_mean import interquartile_mean_interval
from berthline.evaluate.statistics.interval import Interval
from berthline.evaluate.statistics.paired import log_ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

RESAMPLES = 2_000
"""Each scheduler has six metrics to resample, and intervals are shown with two digits."""


class OverallResult(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler over all cells and windows.

    Attributes:
        scheduler: its text.
        ratio: interquartile mean of the ratios to the baseline; None where a window has no ratio.
        improvement: how often it is better than the baseline, between 0 and 1.
        gap_to_bound: mean JCT / lower bound - 1, averaged over cells.
        trades: number of cells in which it trades JCT for slowdown.
    """

    scheduler: str
    ratio: PerMetric[Interval | None]
    improvement: PerMetric[Interval]
    gap_to_bound: float | None
    trades: int


class Overall(msgspec.Struct, frozen=True, kw_only=True):
    """The combined result of several comparisons of the same schedulers.

    Attributes:
        baseline: the scheduler that the others are compared with.
        cells: number of comparisons.
        windows: total number of windows.
        schedulers: one result each, in the order given.
        best: the scheduler with the best ratio, by each metric; in a tie, the first.
    """

    baseline: str
    cells: int
    windows: int
    schedulers: list[OverallResult]
    best: PerMetric[str]


def overall_of(comparisons: Sequence[Comparison]) -> Overall:
    """Return the combined result of comparisons of the same schedulers on several cells."""
    first = comparisons[0]
    names = [result.scheduler for result in first.schedulers]
    reference = names.index(first.baseline)
    values = {
        metric: [
            [
                value
                for comparison in comparisons
                for value in _independent(comparison, number, metric)
            ]
            for number in range(len(names))
        ]
        for metric in METRICS
    }
    found = [
        OverallResult(
            scheduler=name,
            ratio=PerMetric(
                **{
                    metric: _ratio(values[metric][i], values[metric][reference], first.seed)
                    for metric in METRICS
                }
            ),
            improvement=PerMetric(
                **{
                    metric: probability_of_improvement(
                        values[metric][i],
                        values[metric][reference],
                        higher_is_better=METRICS[metric].higher_is_better,
                        seed=first.seed,
                        resamples=RESAMPLES,
                    )
                    for metric in METRICS
                }
            ),
            gap_to_bound=_mean_gap([c.schedulers[i].gap_to_bound for c in comparisons]),
            trades=sum(comparison.schedulers[i].trades for comparison in comparisons),
        )
        for i, name in enumerate(names)
    ]
    return Overall(
        baseline=first.baseline,
        cells=len(comparisons),
        windows=sum(1 if each.continuous else each.windows for each in comparisons),
        schedulers=found,
        best=PerMetric(**{metric: _best(found, metric) for metric in METRICS}),
    )


def _independent(comparison: Comparison, number: int, metric: str) -> list[float]:
    """Return a scheduler's values in the windows; the replicates of a run are one value."""
    values: list[float] = getattr(comparison.schedulers[number].per_window, metric)
    return [sum(values) / len(values)] if comparison.continuous else values


def _ratio(ours: list[float], baseline: list[float], seed: int) -> Interval | None:
    logs = log_ratios(ours, baseline)
    if logs is None:
        return None
    return interquartile_mean_interval(np.exp(logs), seed=seed, resamples=RESAMPLES)


def _mean_gap(gaps: list[float | None]) -> float | None:
    known = [gap for gap in gaps if gap is not None]
    return sum(known) / len(known) if len(known) == len(gaps) else None


def _best(results: list[OverallResult], metric: str) -> str:
    sign = -1.0 if METRICS[metric].higher_is_better else 1.0

    def rank(result: OverallResult) -> float:
        ratio: Interval | None = getattr(result.ratio, metric)
        return np.inf if ratio is None else sign * ratio.value

    return min(results, key=rank).scheduler
