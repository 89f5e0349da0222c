"""Performance profiles: the whole distribution of results over runs and windows, as a curve.

A curve that lies above another everywhere is better everywhere. Where two cross, a mean hides that
one wins the easy windows and the other the hard ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.evaluate.statistics.interval import TAIL, score_table, stratified

if TYPE_CHECKING:
    from berthline.evaluate.statistics.interval import Floats


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """A performance profile.

    Attributes:
        at: the thresholds, in the unit of the scores.
        share: of runs and windows that are as good as the threshold, between 0 and 1.
        low: lower edge of the 95 % band, for each threshold by itself; None if there is nothing to
            resample.
        high: upper edge; None in the same case.
    """

    at: list[float]
    share: list[float]
    low: list[float] | None
    high: list[float] | None


def performance_profile(
    scores: npt.ArrayLike,
    at: npt.ArrayLike,
    *,
    higher_is_better: bool = False,
    seed: int = 0,
    resamples: int = 2_000,
) -> Profile:
    """Return the share of runs and windows that are as good as each threshold.

    Formula: number of scores <= threshold / number of scores; with `higher_is_better`, scores >
    threshold, as in rliable. The band resamples the runs of each window, or the windows if there is
    one run.

    Args:
        scores: runs x windows; a list of values is one run.
        at: thresholds.
        higher_is_better: for values such as utilisation.
        seed: seed of the resampling.
        resamples: number of resamples.

    Example:
        >>> performance_profile([1.0, 1.2, 1.9, 3.0], [1.0, 2.0]).share
        [0.25, 0.75]
    """
    table = score_table(scores)
    thresholds = np.atleast_1d(np.array(at, dtype=np.float64))

    def shares(values: Floats) -> Floats:
        flat = np.sort(values.reshape(len(values), -1), axis=1)
        counts = [np.searchsorted(row, thresholds, side="right") for row in flat]
        below: Floats = np.array(counts) / flat.shape[1]
        return 1.0 - below if higher_is_better else below

    low = high = None
    single = len(table) == 1
    if table.shape[1] > 1 or not single:
        drawn = stratified([table], seed=seed, resamples=resamples, windows_too=single)
        curves = np.concatenate([shares(part) for [part] in drawn])
        low, high = np.quantile(curves, (TAIL, 1 - TAIL), axis=0).tolist()
    return Profile(
        at=thresholds.tolist(), share=shares(table[np.newaxis])[0].tolist(), low=low, high=high
    )


def ratios_to_best(values: npt.ArrayLike, *, higher_is_better: bool = False) -> Floats:
    """Return every value as a ratio to the best on its window; 1 = the best, more = worse.

    Formula: value / lowest value on that window (highest / value where higher is better); the
    ratios of Dolan and More's performance profiles (Mathematical Programming 91, 2002). 0 / 0
    counts as 1, and any other value / 0 as infinity.

    Args:
        values: schedulers x windows, 0 or more.
        higher_is_better: for values such as utilisation.

    Raises:
        ConfigError: a value is negative or missing.
    """
    table = score_table(values)
    if (table < 0).any():
        raise ConfigError("a value is below 0", expected="values of 0 or more")
    best = table.max(axis=0) if higher_is_better else table.min(axis=0)
    above, below = (
        (np.broadcast_to(best, table.shape), table) if higher_is_better else (table, best)
    )
    ratios = np.full(table.shape, np.inf)
    np.divide(above, below, out=ratios, where=np.broadcast_to(below > 0, table.shape))
    ratios[table == best] = 1.0
    return ratios
