"""Multiple comparisons: verdicts corrected for their number.

Of twenty schedulers that are all as good as the baseline, one looks better or worse at 95 % by
chance. Holm's procedure keeps the chance of even one such verdict below 5 %, whatever the
dependence between the comparisons (Scandinavian Journal of Statistics 6(2), 1979).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.evaluate.statistics.paired import Ratio, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

LEVEL = 0.05
"""Accepted probability of a wrong verdict, over all comparisons together."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the p-values adjusted for their number.

    Formula: adjusted p(k) = min(1, max over j <= k of (m - j) p(j)), with the m p-values p(0),
    p(1), ... in ascending order. None = not a comparison.

    Example:
        >>> holm([0.01, 0.04, None, 0.03])
        [0.03, 0.06, None, 0.06]
    """
    known = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, index) in enumerate(known):
        largest = min(1.0, max(largest, p * (len(known) - rank)))
        adjusted[index] = largest
    return adjusted


def corrected_verdicts(
    ratios: Sequence[Ratio | None], *, higher_is_better: bool = False
) -> list[str | None]:
    """Return the verdict of each ratio in words, corrected for the number of ratios.

    A verdict that does not hold after the correction says so. A single comparison needs no
    correction.

    Args:
        ratios: one metric's ratios of all schedulers to the same baseline; None = the baseline.
        higher_is_better: for values such as utilisation; times are better when lower.

    Example:
        >>> ratio = Ratio(ratio=0.9, low=0.82, high=0.99, windows=30, p_value=0.03)
        >>> corrected_verdicts([None, ratio, ratio])[1]
        'better by 10 % [1, 18], but not after correction for 2 comparisons'
    """
    adjusted = holm([None if ratio is None else ratio.p_value for ratio in ratios])
    comparisons = sum(p is not None for p in adjusted)
    words: list[str | None] = []
    for ratio, p in zip(ratios, adjusted, strict=True):
        if ratio is None:
            words.append(None)
            continue
        text = verdict(ratio, higher_is_better=higher_is_better)
        says_something = text.startswith(("better", "worse"))
        if says_something and comparisons > 1 and p is not None and p > LEVEL:
            text += f", but not after correction for {comparisons} comparisons"
        words.append(text)
    return words
