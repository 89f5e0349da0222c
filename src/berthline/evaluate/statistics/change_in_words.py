"""Ratios in words: changes in per cent, or factors where per cent cannot be read.

"Better by 100 % [100, 100]" and "+52603 %" say nothing, "90 x lower" does. All verdicts, tables and
pages take their wording from here.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from berthline.number_text import signed_percent, signed_two_figures, two_figures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.evaluate.statistics.paired import Ratio

FACTOR = 5.0
"""From this ratio on, or below its inverse, a factor is easier to read than a percentage."""
DOUBLE = 2.0
"""Beside a factor, a smaller one is a factor too."""
LONG_END = 10.0
"""An interval that reaches this ratio, or its inverse, is written in factors as well."""

PERCENT, RATIO = "%", "ratio"
WithEnds = tuple[float | None, float | None, float | None]
"""A ratio with the lower and upper end of its interval."""


def is_factor(ratio: float, at: float = FACTOR) -> bool:
    """Whether a ratio is so far from 1 that it is written as a factor.

    Example:
        >>> is_factor(0.3), is_factor(0.1), is_factor(7.0)
        (False, True, True)
    """
    return ratio > 0 and abs(math.log(ratio)) >= math.log(at) - 1e-12


def times(factor: float) -> str:
    """Return a factor with two significant digits, or as a whole number from 10 on.

    Example:
        >>> times(5.25), times(0.034), times(31563.0)
        ('5.2', '0.034', '31,563')
    """
    return f"{factor:,.0f}" if factor >= 9.95 else f"{factor:.2g}"


def size_in_words(ratio: float, at: float = FACTOR) -> str:
    """Return by how much a value is higher or lower; from a ratio on, as a factor.

    Example:
        >>> size_in_words(0.88), size_in_words(1 / 90), size_in_words(12.3)
        ('12 % lower', '90 x lower', '12 x higher')
    """
    way = "higher" if ratio > 1 else "lower"
    if is_factor(ratio, at):
        return f"{times(ratio if ratio > 1 else 1 / ratio)} x {way}"
    return f"{two_figures(abs(100 * (ratio - 1)))} % {way}"


def undecided_in_words(low: float, high: float) -> str:
    """Return an interval around "no change".

    Example:
        >>> undecided_in_words(0.97, 1.05), undecided_in_words(0.01, 3.4)
        ('[-3, +5] %', '[100 x lower to 3.4 x higher]')
    """
    if is_factor(low) or is_factor(high):
        return f"[{size_in_words(low, DOUBLE)} to {size_in_words(high, DOUBLE)}]"
    ends = (signed_two_figures(100 * (end - 1)) for end in (low, high))
    return f"[{', '.join(ends)}] %"


def decided_in_words(word: str, ratio: float, low: float, high: float) -> str:
    """Return a change with its interval, all of which is on one side of "no change".

    Args:
        word: better or worse.
        ratio: the value / the baseline's.
        low: the lower end of its interval.
        high: the upper end.

    Example:
        >>> decided_in_words("better", 0.88, 0.84, 0.93)
        'better by 12 % [7, 16]'
        >>> decided_in_words("better", 1 / 90, 1 / 213, 1 / 41)
        'better, 90 x lower [41, 213]'
    """
    if is_factor(ratio) or high >= LONG_END:
        way = "higher" if ratio > 1 else "lower"
        factor, *ends = (end if ratio > 1 else 1 / end for end in (ratio, low, high))
        near, far = sorted(ends)
        return f"{word}, {times(factor)} x {way} [{times(near)}, {times(far)}]"
    near, far = sorted(abs(100 * (end - 1)) for end in (low, high))
    size = two_figures(abs(100 * (ratio - 1)))
    return f"{word} by {size} % [{two_figures(near)}, {two_figures(far)}]"


def change_in_words(ratio: Ratio, unit: str = "") -> str:
    """Return the change of a value against the baseline with its interval and its unit.

    Args:
        ratio: the value / the baseline's.
        unit: PERCENT or RATIO, if its column has one.
    """
    found = (ratio.ratio, ratio.low, ratio.high)
    unit = unit or unit_of_changes([found])
    text = _with_interval(found, unit)
    if text == "-":
        return text
    return f"{text} %" if unit == PERCENT else f"x {text}"


class Changes(NamedTuple):
    """Changes against the baseline as texts, all in one unit.

    Attributes:
        texts: a text for each ratio, with its interval.
        unit: PERCENT or RATIO.
    """

    texts: list[str]
    unit: str


def column_of_changes(ratios: Sequence[WithEnds]) -> Changes:
    """Return the changes of a column of a table: per cent, or ratios if one of them is large.

    Args:
        ratios: each with the ends of its interval, or None.

    Example:
        >>> column_of_changes([(1.5, 0.9, 1.6), (0.9, 0.8, 0.95)])
        Changes(texts=['+50 [-10, +60]', '-10 [-20, -5.0]'], unit='%')
        >>> column_of_changes([(11.0, 0.19, 527.0), (0.9, None, None)])
        Changes(texts=['11 [0.19, 527]', '0.90'], unit='ratio')
    """
    unit = unit_of_changes(ratios)
    return Changes([_with_interval(ratio, unit) for ratio in ratios], unit)


def unit_of_changes(ratios: Sequence[WithEnds]) -> str:
    """Return the unit in which a column of changes is written."""
    large = any(
        (ratio is not None and is_factor(ratio))
        or any(end is not None and is_factor(end, LONG_END) for end in ends)
        for ratio, *ends in ratios
    )
    return RATIO if large else PERCENT


def signed_change(ratio: float) -> str:
    """Return a ratio as a change in per cent; no change has no sign."""
    text = signed_percent(ratio - 1)
    return "0.0" if text == "+0.0" else text


def change_in(unit: str, ratio: float) -> str:
    """Return a ratio in the unit of its column, without the unit."""
    if unit == PERCENT:
        return signed_change(ratio)
    return f"{ratio:.2f}" if 0.1 <= ratio < 9.95 else times(ratio)


def _with_interval(found: WithEnds, unit: str) -> str:
    ratio, low, high = found
    if ratio is None:
        return "-"
    change = change_in(unit, ratio)
    if low is None or high is None:
        return change
    return f"{change} [{change_in(unit, low)}, {change_in(unit, high)}]"
