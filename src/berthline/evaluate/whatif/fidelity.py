"""Fidelity: how close simulated waits come to those that were recorded.

Pure functions of two columns of waits. Means and medians are compared by ratios, single jobs by an
error factor. Waits below a minute hardly count, because the seconds that a batch system takes to
start a job are not modelled.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.model.workload import FloatColumn

FLOOR_SECONDS = 60.0
"""Added to both waits before they are compared job by job."""

CLOSE = 2.0
"""A simulated wait is close if it is within this factor of the recorded one."""


class Fidelity(msgspec.Struct, frozen=True, kw_only=True):
    """Simulated against recorded waits of the same jobs, in seconds.

    Attributes:
        jobs: number of jobs.
        recorded_mean: mean of the recorded waits.
        simulated_mean: mean of the simulated ones.
        recorded_median: median of the recorded waits.
        simulated_median: median of the simulated ones.
        mean_ratio: simulated_mean / recorded_mean; None when no job waited.
        median_ratio: the same for medians plus a minute.
        rank_correlation: Spearman's; None when either side has only one value.
        within_2x: share of jobs with (simulated + 60) / (recorded + 60) from 1/2 to 2.
        error_factor: geometric mean of the larger over the smaller of the two, each plus 60; 1 is
            perfect.
    """

    jobs: int
    recorded_mean: float
    simulated_mean: float
    recorded_median: float
    simulated_median: float
    mean_ratio: float | None
    median_ratio: float
    rank_correlation: float | None
    within_2x: float
    error_factor: float


def fidelity(simulated: FloatColumn, recorded: FloatColumn) -> Fidelity:
    """Return how close simulated waits are to recorded ones, job by job in the same order.

    Formulas: see Fidelity.
    """
    means = float(simulated.mean()), float(recorded.mean())
    medians = float(np.median(simulated)), float(np.median(recorded))
    logs = np.abs(np.log((simulated + FLOOR_SECONDS) / (recorded + FLOOR_SECONDS)))
    return Fidelity(
        jobs=len(recorded),
        recorded_mean=means[1],
        simulated_mean=means[0],
        recorded_median=medians[1],
        simulated_median=medians[0],
        mean_ratio=means[0] / means[1] if means[1] > 0 else None,
        median_ratio=(medians[0] + FLOOR_SECONDS) / (medians[1] + FLOOR_SECONDS),
        rank_correlation=rank_correlation(simulated, recorded),
        within_2x=float((logs <= math.log(CLOSE)).mean()),
        error_factor=math.exp(logs.mean()),
    )


def group_error_factor(
    simulated: FloatColumn, recorded: FloatColumn, group: npt.NDArray[np.int64]
) -> float:
    """Return the error factor of the mean waits of groups of jobs; 1 is perfect.

    Formula: geometric mean over groups of the larger over the smaller of the two mean waits, each
    plus 60; every group has the same weight.
    """
    _, member, jobs = np.unique(group, return_inverse=True, return_counts=True)
    means = [np.bincount(member, column) / jobs + FLOOR_SECONDS for column in (simulated, recorded)]
    return math.exp(float(np.abs(np.log(means[0] / means[1])).mean()))


def grade(found: Fidelity) -> str:
    """Return how far a model can be trusted, in a word.

    good: the mean is within a quarter and four waits of five are close. fair: the mean is within a
    factor of 2 and half of the waits are close. poor: otherwise. All with a minute added.
    """
    ratio = (found.simulated_mean + FLOOR_SECONDS) / (found.recorded_mean + FLOOR_SECONDS)
    for word, factor, share in (("good", 1.25, 0.8), ("fair", 2.0, 0.5)):
        if 1 / factor <= ratio <= factor and found.within_2x >= share:
            return word
    return "poor"


def rank_correlation(a: FloatColumn, b: FloatColumn) -> float | None:
    """Return Spearman's correlation: Pearson's of the ranks, equal values sharing their mean rank.

    None when one of the two has a single value.

    Example:
        >>> round(rank_correlation(np.array([1.0, 2.0, 9.0]), np.array([3.0, 4.0, 5.0])), 6)
        1.0
    """
    ranks = [_ranks(values) for values in (a, b)]
    ranks = [each - each.mean() for each in ranks]
    norm = math.sqrt(float(ranks[0] @ ranks[0]) * float(ranks[1] @ ranks[1]))
    return float(ranks[0] @ ranks[1]) / norm if norm > 0 else None


def daily_error(simulated: FloatColumn, recorded: FloatColumn, day: npt.NDArray[np.int64]) -> float:
    """Return the error of the mean wait of a day in seconds, on average over jobs.

    Formula: sum over days of |sum of simulated - sum of recorded waits| / number of jobs. This is
    at least the error of the mean over all days, in which errors of opposite sign cancel.
    """
    difference = np.bincount(day - day.min(), simulated - recorded)
    return float(np.abs(difference).sum() / len(recorded))


def _ranks(values: FloatColumn) -> FloatColumn:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2
    return middle[place.reshape(-1)]
