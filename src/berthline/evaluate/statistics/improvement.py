"""Probability of improvement: how likely a run of one policy is to beat a run of another.

It says how often, not by how much: a policy that wins nine of ten windows by a little and loses the
tenth by a lot has 0.9 here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.evaluate.statistics.interval import Interval, interval_of, score_table

if TYPE_CHECKING:
    from berthline.evaluate.statistics.interval import Floats


def probability_of_improvement(
    scores: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    higher_is_better: bool = False,
    seed: int = 0,
    resamples: int = 10_000,
) -> Interval:
    """Return the probability that a random run beats one of the baseline on the same window.

    Formula: mean over windows of (pairs of runs in which ours is better + half the ties) / pairs,
    which is Mann and Whitney's U / (runs x baseline runs); between 0 and 1. The interval resamples
    the runs of each window on both sides, or the windows if both sides have a single run.

    Args:
        scores: runs x windows; a list of values is one run.
        baseline: the baseline's runs x the same windows.
        higher_is_better: for values such as utilisation; times are better when lower.
        seed: seed of the resampling.
        resamples: number of resamples.

    Raises:
        ConfigError: the two differ in their number of windows, or a score is missing.

    Example:
        >>> probability_of_improvement([1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 4.0, 5.0]).value
        0.875
    """
    ours, theirs = score_table(scores), score_table(baseline)
    if ours.shape[1] != theirs.shape[1]:
        raise ConfigError(
            f"{ours.shape[1]} windows against {theirs.shape[1]} of the baseline",
            expected="the same windows on both sides",
        )
    sign = 1.0 if higher_is_better else -1.0
    return interval_of(_of_resamples, [sign * ours, sign * theirs], seed=seed, resamples=resamples)


def _of_resamples(tables: list[Floats]) -> Floats:
    ours, theirs = tables
    wins: Floats = np.zeros(len(ours))
    for run in range(ours.shape[1]):
        one = ours[:, run : run + 1]
        wins += ((one > theirs) + 0.5 * (one == theirs)).mean(axis=(1, 2))
    wins /= ours.shape[1]
    return wins
