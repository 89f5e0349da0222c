"""Oracle: the best fixed scheduler in hindsight. It is a reference value, not a scheduler.

A user who knew the results in advance would take the best scheduler overall, or the best for each
window. The mean of the latter is what a perfect choice among these schedulers would have given. It
is not a bound: another scheduler may be better, and the lower bound (bounds.py) limits by how much.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


class Oracle(msgspec.Struct, frozen=True, kw_only=True):
    """The best of some schedulers in hindsight, by one metric.

    Attributes:
        overall: the scheduler with the best mean over windows; in a tie, the first.
        overall_mean: that mean.
        per_window: the best scheduler of each window; in a tie, the first.
        per_window_mean: the mean over windows of the best values.
    """

    overall: str
    overall_mean: float
    per_window: list[str]
    per_window_mean: float


def oracle(
    names: Sequence[str], values: Sequence[Sequence[float]], *, higher_is_better: bool = False
) -> Oracle:
    """Return the best scheduler in hindsight, overall and for each window.

    Formula: argmin (argmax) over schedulers of the mean over windows, and of each window's value.

    Args:
        names: the schedulers.
        values: for each of them, one value per window.
        higher_is_better: for values such as utilisation; times are better when lower.

    Example:
        >>> found = oracle(["a", "b"], [[1.0, 9.0], [3.0, 4.0]])
        >>> found.overall, found.per_window, found.per_window_mean
        ('b', ['a', 'b'], 2.5)
    """
    choose = max if higher_is_better else min
    means = [sum(each) / len(each) for each in values]
    best = means.index(choose(means))
    winners = [window.index(choose(window)) for window in zip(*values, strict=True)]
    chosen = [values[winner][window] for window, winner in enumerate(winners)]
    return Oracle(
        overall=names[best],
        overall_mean=means[best],
        per_window=[names[winner] for winner in winners],
        per_window_mean=sum(chosen) / len(chosen),
    )
