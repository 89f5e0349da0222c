"""Power: how many windows it takes to distinguish two schedulers.

"Not distinguishable" may mean that there is no difference, or that there were too few windows. The
scatter of the log-ratios between windows tells which.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.statistics.paired import FEW_WINDOWS, log_ratios
from berthline.evaluate.statistics.t_distribution import t_quantile

if TYPE_CHECKING:
    from collections.abc import Sequence

POWER = 0.8
"""Probability of detecting a true difference."""

_LEVEL = 0.05
_MOST_WINDOWS = 10_000_000


class Power(msgspec.Struct, frozen=True, kw_only=True):
    """What a paired comparison can detect.

    Attributes:
        windows: number of windows.
        difference: the difference in question, as a share: 0.05 = 5 %.
        needed: windows that detect this difference four times out of five; None if the difference
            is 0, or more than ten million would be needed.
        detectable: the smallest difference that this many windows detect four times out of five, as
            a share.
    """

    windows: int
    difference: float
    needed: int | None
    detectable: float


def power(
    values: Sequence[float], baseline: Sequence[float], *, difference: float | None = None
) -> Power | None:
    """Return how many windows would detect a difference; None if ratios have no scatter.

    Formula: the smallest n with n >= (t(0.975) + t(0.8))^2 s^2 / d^2, t the quantiles of Student's
    distribution with n - 1 degrees of freedom, s the standard deviation of the log-ratios and d =
    ln(1 + difference); at least as many as an interval needs. The detectable difference solves the
    same equation for d. The observed scatter is taken as the true one, so with few windows the
    result is rough.

    Args:
        values: one value per window.
        baseline: the baseline's values on the same windows.
        difference: as a share, such as 0.05; None = the observed one.

    Raises:
        ConfigError: the two differ in length, or are empty.

    Example:
        >>> power([9.0, 10.5, 9.8, 11.0], [10.0, 10.0, 10.0, 10.0], difference=0.05).needed
        28
    """
    logs = log_ratios(values, baseline)
    if logs is None or logs.size < 2 or not logs.std() > 0:
        return None
    spread = float(logs.std(ddof=1))
    seen = abs(math.expm1(float(logs.mean()))) if difference is None else abs(difference)
    effect = abs(float(logs.mean())) if difference is None else math.log1p(abs(difference))
    return Power(
        windows=logs.size,
        difference=seen,
        needed=windows_needed(effect / spread),
        detectable=math.expm1(_quantiles(logs.size) * spread / math.sqrt(logs.size)),
    )


def windows_needed(effect: float) -> int | None:
    """Return the windows that detect a mean log-ratio of `effect` standard deviations.

    Example:
        >>> windows_needed(0.5)
        34
    """
    if not effect > 0:
        return None
    normal = (1.959964 + 0.841621) ** 2 / effect**2
    if normal > _MOST_WINDOWS:
        return None
    count = max(2, math.floor(normal))
    while count < (_quantiles(count) / effect) ** 2:
        count += 1
    return max(count, FEW_WINDOWS)


def power_in_words(found: Power) -> str:
    """Return the power in a sentence.

    Example:
        >>> power_in_words(Power(windows=30, difference=0.012, needed=412, detectable=0.046))
        '30 windows detect 4.6 %; 1.2 % would take about 410 windows'
    """
    told = f"{found.windows} windows detect {100 * found.detectable:.2g} %"
    if found.needed is None or found.needed <= found.windows:
        return told
    # Two digits: the scatter is not known more precisely.
    digits = max(0, int(np.log10(found.needed)) - 1)
    about = f"{round(found.needed, -digits):,} windows"
    return f"{told}; {100 * found.difference:.2g} % would take about {about}"


@functools.lru_cache(maxsize=1024)  # all schedulers of a comparison have the same windows
def _quantiles(windows: int) -> float:
    degrees = windows - 1
    return t_quantile(1 - _LEVEL / 2, degrees) + t_quantile(POWER, degrees)
