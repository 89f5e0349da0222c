"""Interquartile mean: the mean of the middle half of all runs on all windows.

It is less noisy than a median over few training seeds, and a lucky or failed run moves it less than
a mean. The failed run is still a result: show the tail too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.statistics.interval import Interval, interval_of, score_table

if TYPE_CHECKING:
    from berthline.evaluate.statistics.interval import Floats

CUT = 0.25
"""Share of the values that is left out at each end."""


def interquartile_mean(scores: npt.ArrayLike) -> float:
    """Return the mean of the scores without the lowest and the highest quarter.

    Formula: of n sorted scores, floor(n / 4) are left out at each end and the rest is averaged; in
    the unit of the scores. This is rliable's definition.

    Example:
        >>> interquartile_mean([1, 2, 3, 4, 5, 6, 7, 800])
        4.5
    """
    return float(_of_resamples([score_table(scores)[np.newaxis]])[0])


def interquartile_mean_interval(
    scores: npt.ArrayLike,
    *,
    seed: int = 0,
    resamples: int = 10_000,
    resample_windows: bool | None = None,
) -> Interval:
    """Return the interquartile mean with its 95 % interval over training seeds.

    Args:
        scores: runs x windows: the score of each training seed on each window, such as its JCT as a
            ratio to the baseline's on that window.
        seed: seed of the resampling.
        resamples: number of resamples.
        resample_windows: also resample windows, for a statement about unseen windows; None = only
            if there is a single run.

    Raises:
        ConfigError: a score is missing.
    """
    return interval_of(
        _of_resamples,
        [score_table(scores)],
        seed=seed,
        resamples=resamples,
        windows_too=resample_windows,
    )


def _of_resamples(tables: list[Floats]) -> Floats:
    [table] = tables
    values = np.sort(table.reshape(len(table), -1), axis=1)
    cut = int(CUT * values.shape[1])
    means: Floats = values[:, cut : values.shape[1] - cut].mean(axis=1)
    return means
