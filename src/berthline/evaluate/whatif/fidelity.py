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

FEWEST_WAITED = 20
"""With fewer jobs that waited more than a minute, recorded or simulated, there is nothing to
assess: every model that starts jobs at once is right about the others."""

FEWEST_OF_CLASS = 10
"""A class with fewer jobs has no mean wait worth comparing."""

CANNOT = "cannot be judged"
"""The grade where there is nothing to assess."""

GRADES: tuple[tuple[str, float, float, float], ...] = (
    ("good", 1.25, 0.8, 0.7),
    ("fair", 2, 0.5, 0.4),
)
"""What a grade needs: the means, of all jobs and of classes, within a factor; a share of close
waits; a rank correlation. Anything else is poor."""


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
        waited: jobs that waited more than a minute, as recorded or as simulated.
        class_error_factor: geometric mean over classes of jobs, of the larger over the smaller of
            the two mean waits, each plus 60; None = there are no classes.
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
    waited: int
    class_error_factor: float | None = None


def fidelity(
    simulated: FloatColumn,
    recorded: FloatColumn,
    classes: npt.NDArray[np.int64] | None = None,
) -> Fidelity:
    """Return how close simulated waits are to recorded ones, job by job in the same order.

    Formulas: see Fidelity.

    Args:
        simulated: the waits in a simulation.
        recorded: the waits in the log.
        classes: the class of each job, such as its size; None = there are no classes.
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
        waited=int((np.maximum(simulated, recorded) > FLOOR_SECONDS).sum()),
        class_error_factor=None
        if classes is None
        else group_error_factor(simulated, recorded, classes, fewest=FEWEST_OF_CLASS),
    )


def group_error_factor(
    simulated: FloatColumn,
    recorded: FloatColumn,
    group: npt.NDArray[np.int64],
    *,
    fewest: int = 1,
) -> float:
    """Return the error factor of the mean waits of groups of jobs; 1 is perfect.

    Formula: geometric mean over groups of the larger over the smaller of the two mean waits, each
    plus 60; every group with `fewest` jobs or more has the same weight. If no group has as many,
    all jobs are one group.
    """
    _, member, jobs = np.unique(group, return_inverse=True, return_counts=True)
    if (jobs < fewest).all():
        member, jobs = np.zeros(len(group), np.int64), np.array([len(group)])
    means = [np.bincount(member, column) / jobs + FLOOR_SECONDS for column in (simulated, recorded)]
    off = np.abs(np.log(means[0] / means[1]))
    return math.exp(float(off[jobs >= min(fewest, jobs.max())].mean()))


def mean_error_factor(found: Fidelity) -> float:
    """Return the larger over the smaller of the two mean waits, each plus 60."""
    ratio = (found.simulated_mean + FLOOR_SECONDS) / (found.recorded_mean + FLOOR_SECONDS)
    return max(ratio, 1 / ratio)


def grade(found: Fidelity) -> str:
    """Return how far a model can be trusted: good, fair, poor, or CANNOT.

    GRADES has what good and fair need. The means of all jobs and of classes count with a minute
    added. A model without any order in its waits (no rank correlation) is poor.
    """
    if found.waited < FEWEST_WAITED:
        return CANNOT
    off = max(mean_error_factor(found), found.class_error_factor or 1.0)
    rank = -1.0 if found.rank_correlation is None else found.rank_correlation
    for word, factor, share, least_rank in GRADES:
        if off <= factor and found.within_2x >= share and rank >= least_rank:
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
