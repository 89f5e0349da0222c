"""Totals: whether the geometric mean over blocks, or windows, agrees with the whole run.

Each block has the same weight in a geometric mean; in the mean of all jobs, a few bad blocks can
outweigh the rest. The two can point in opposite directions, and then neither is the whole truth.
"""

from __future__ import annotations

import math

from berthline.number_text import signed_two_figures

TOLERANCE = 1.02
"""Opposite changes that are both smaller than this ratio do not count as a disagreement."""


def intervals_words(*, is_log: bool, continuous: bool) -> str:
    """Return what the intervals of a comparison are about, in words.

    Args:
        is_log: the jobs are recorded, so there is only one period.
        continuous: the intervals are over blocks of a continuous run.
    """
    told = (
        "they speak of this period of the log; another period can differ by more"
        if is_log
        else "they speak of jobs from this generator with these settings"
    )
    if not continuous:
        return told
    return f"{told}; over blocks of one run they cover less than 95 %, and p99 is that of a block"


def disagree(ratio: float | None, total: float | None) -> bool:
    """Whether the two ratios point in opposite directions, at least one of them clearly.

    Example:
        >>> disagree(0.73, 1.66), disagree(0.99, 1.01), disagree(0.5, 0.9)
        (True, False, False)
    """
    if ratio is None or total is None or not (ratio > 0 and total > 0):
        return False
    ours, theirs = math.log(ratio), math.log(total)
    return ours * theirs < 0 and max(abs(ours), abs(theirs)) > math.log(TOLERANCE)


def with_total(verdict: str, ratio: float | None, total: float | None) -> str:
    """Return a verdict that says so if the whole run disagrees.

    Example:
        >>> with_total("better by 27 % [12, 39]", 0.73, 1.66)
        'better by 27 % [12, 39], but +66 % over all jobs'
    """
    if total is None or not disagree(ratio, total):
        return verdict
    return f"{verdict}, but {signed_two_figures(100 * (total - 1))} % over all jobs"
