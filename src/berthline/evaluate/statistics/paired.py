"""Statistics: how one scheduler compares with another over paired windows.

Both have run the same windows, so a window's difficulty cancels in the ratio of their values.
Ratios are averaged as logarithms (a geometric mean), and the interval comes from resampling whole
windows. Everything here is deterministic in (values, seed).
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.evaluate.statistics.change_in_words import (
    decided_in_words,
    size_in_words,
    undecided_in_words,
)
from berthline.evaluate.statistics.t_distribution import t_tail

if TYPE_CHECKING:
    from collections.abc import Sequence

Z_95 = 1.959963984540054
"""The normal quantile of a two-sided 95 % interval."""

FEW_WINDOWS = 6
"""Below this, even the range of all windows covers the truth less often than 95 % of the time."""

_ROUNDING = 1e-12
_DRAWS_PER_CHUNK = 1_000_000


class Ratio(msgspec.Struct, frozen=True, kw_only=True):
    """A geometric-mean ratio to the baseline over paired windows, with its 95 % interval.

    Attributes:
        ratio: below 1 where the values are smaller than the baseline's; None when a window has
            no ratio (a zero on one side only, or no counted job).
        low: lower end of the interval; None with one window.
        high: upper end of the interval; None with one window.
        windows: number of pairs.
        p_value: of the paired t test that the mean log-ratio is 0; None with one window. It orders
            the comparisons when there are several (multiple_comparisons.py).
    """

    ratio: float | None
    low: float | None
    high: float | None
    windows: int
    p_value: float | None = None


def paired_ratio(
    values: Sequence[float],
    baseline: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = 10_000,
) -> Ratio:
    """Return the ratio of `values` to `baseline`, with a paired bootstrap interval.

    Formula: exp(mean over windows of ln(value / baseline value)). The interval is the percentile
    interval over `resamples` draws of windows with replacement, on log-ratios. Its percentiles are
    moved outwards by as much as a t interval exceeds a normal one for this number of windows,
    because plain percentiles cover too rarely with few windows ("expanded percentile": Hesterberg,
    The American Statistician 69(4), 2015).

    Args:
        values: one value per window, 0 or more.
        baseline: the baseline's values on the same windows, in the same order.
        seed: seed of the resampling.
        resamples: number of resamples.

    Raises:
        ConfigError: the two differ in length, or are empty.

    Example:
        >>> paired_ratio([5.0, 10.0], [10.0, 20.0]).ratio
        0.5
    """
    logs = log_ratios(values, baseline)
    if logs is None:
        return Ratio(ratio=None, low=None, high=None, windows=len(values))
    return ratio_of_logs(logs, seed=seed, resamples=resamples)


def ratio_of_logs(
    logs: npt.NDArray[np.float64], *, seed: int = 0, resamples: int = 10_000
) -> Ratio:
    """Return the ratio and its interval, as `paired_ratio`, from the log-ratios of the windows."""
    windows = len(logs)
    ratio = math.exp(logs.mean())
    if windows == 1:
        return Ratio(ratio=ratio, low=None, high=None, windows=1)
    tail = _tail(windows)
    low, high = np.quantile(_bootstrap_means(logs, seed, resamples), (tail, 1 - tail))
    return Ratio(
        ratio=ratio,
        low=math.exp(low),
        high=math.exp(high),
        windows=windows,
        p_value=_p_value(logs),
    )


def log_ratios(
    values: Sequence[float], baseline: Sequence[float]
) -> npt.NDArray[np.float64] | None:
    """Return ln(value / baseline) of every window; None when a window has no ratio.

    Equal values have the ratio 1, even if both are 0.

    Raises:
        ConfigError: the two differ in length, or are empty.
    """
    ours, theirs = np.array(values, dtype=np.float64), np.array(baseline, dtype=np.float64)
    if ours.ndim != 1 or ours.shape != theirs.shape or not ours.size:
        raise ConfigError(
            f"{ours.size} values against {theirs.size} of the baseline",
            expected="one value per window on both sides, and at least one window",
        )
    equal = ours == theirs
    comparable = equal | ((ours > 0) & (theirs > 0) & np.isfinite(ours) & np.isfinite(theirs))
    if not comparable.all():
        return None
    logs = np.zeros(ours.size)
    np.log(np.divide(ours, theirs, out=np.ones(ours.size), where=~equal), out=logs)
    return logs


def includes_one(low: float, high: float) -> bool:
    """Whether an interval of a ratio leaves its direction open.

    An end that is 1 but for rounding decides nothing.
    """
    return low - _ROUNDING <= 1 <= high + _ROUNDING


def _exact(end: float) -> float:
    return 1.0 if abs(end - 1) <= _ROUNDING else end


def verdict(ratio: Ratio, *, higher_is_better: bool = False) -> str:
    """Return the verdict of a ratio in words: better, worse or not distinguishable.

    Percentages are changes against the baseline; large changes are factors. If there are fewer
    windows than an interval needs, the sentence says so.

    Args:
        ratio: from `paired_ratio`.
        higher_is_better: for values such as utilisation; times are better when lower.

    Example:
        >>> verdict(Ratio(ratio=0.88, low=0.84, high=0.93, windows=30))
        'better by 12 % [7, 16]'
        >>> verdict(Ratio(ratio=1.01, low=0.97, high=1.05, windows=30))
        'not distinguishable [-3, +5] %'
        >>> verdict(Ratio(ratio=0.99, low=0.97, high=1 - 1e-16, windows=30))
        'not distinguishable [-3, 0] %'
        >>> verdict(Ratio(ratio=0.002, low=0.001, high=0.004, windows=30))
        'better, 500 x lower [250, 1,000]'
    """
    if ratio.ratio is None:
        return "no ratio: a window has the value 0, or none"
    if ratio.low is None or ratio.high is None:
        equal = abs(ratio.ratio - 1) <= _ROUNDING
        return f"1 window: no interval ({'equal' if equal else size_in_words(ratio.ratio)})"
    if max(abs(ratio.low - 1), abs(ratio.high - 1)) <= _ROUNDING:
        return "equal in every window"
    if includes_one(ratio.low, ratio.high):
        text = f"not distinguishable {undecided_in_words(_exact(ratio.low), _exact(ratio.high))}"
    else:
        word = "better" if (ratio.ratio > 1) == higher_is_better else "worse"
        text = decided_in_words(word, ratio.ratio, ratio.low, ratio.high)
    return text if ratio.windows >= FEW_WINDOWS else f"{text} (only {ratio.windows} windows)"


def _p_value(logs: npt.NDArray[np.float64]) -> float:
    """Return the probability of a mean at least this far from 0, for log-ratios normal around 0.

    Formula: 2 P(T > |mean| sqrt(n) / s), T Student's with n - 1 degrees of freedom and s the
    standard deviation of the log-ratios; 0 or 1 if s is 0.
    """
    mean, spread = abs(float(logs.mean())), float(logs.std(ddof=1))
    if spread <= _ROUNDING * mean:
        return 0.0 if mean > _ROUNDING else 1.0
    return 2 * t_tail(mean * math.sqrt(logs.size) / spread, logs.size - 1)


def _bootstrap_means(
    logs: npt.NDArray[np.float64], seed: int, resamples: int
) -> npt.NDArray[np.float64]:
    """Return the mean of each resample of `logs`, drawn in chunks to bound memory."""
    if resamples * logs.size <= _DRAWS_PER_CHUNK:
        few: npt.NDArray[np.float64] = logs[_draws(seed, resamples, logs.size)].mean(axis=1)
        return few
    generator = np.random.Generator(np.random.Philox(seed))
    means = np.empty(resamples)
    chunk = max(1, _DRAWS_PER_CHUNK // logs.size)
    for begin in range(0, resamples, chunk):
        part = means[begin : begin + chunk]
        logs[generator.integers(0, logs.size, (len(part), logs.size))].mean(axis=1, out=part)
    return means


@functools.lru_cache(maxsize=1)
def _draws(seed: int, resamples: int, windows: int) -> npt.NDArray[np.int64]:
    """Return the windows of each resample. A comparison needs the same ones repeatedly."""
    generator = np.random.Generator(np.random.Philox(seed))
    return generator.integers(0, windows, (resamples, windows))


def _tail(windows: int) -> float:
    """Return the percentile (as a share) at which the expanded interval ends on each side.

    Formula: Phi(-t sqrt(n / (n - 1))), t the quantile of Student's distribution with n - 1 degrees
    of freedom, here by its expansion around the normal quantile (Abramowitz and Stegun 26.7.5; it
    is inaccurate with 1 or 2 degrees of freedom, but there the tail is far below 1/resamples).
    """
    z, nu = Z_95, windows - 1
    t = (
        z
        + (z**3 + z) / (4 * nu)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * nu**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * nu**3)
    )
    return math.erfc(t * math.sqrt(windows / nu) / math.sqrt(2)) / 2
