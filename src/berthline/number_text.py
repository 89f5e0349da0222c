"""Numbers as text: durations and changes in per cent, the same in tables, figures and pages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))
_LEAST = 0.2
"""Shortest duration of a column, in its unit."""


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit.

    Example:
        >>> duration(5400.0), duration(0.5), duration(200_000.0)
        ('1.5 h', '0.5 s', '2.3 d')
    """
    if not math.isfinite(seconds):
        return "-"
    for unit, name in _UNITS:
        if abs(seconds) >= 1.5 * unit:
            return f"{_digits(seconds / unit)} {name}"
    return f"{_digits(seconds)} s"


def duration_in_two_units(seconds: float) -> str:
    """Return a duration in whole seconds, or in two neighbouring units.

    Example:
        >>> duration_in_two_units(8.2), duration_in_two_units(754), duration_in_two_units(93784)
        ('8 s', '12 min 34 s', '26 h 3 min')
    """
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


def signed_percent(change: float, digits: int | None = None) -> str:
    """Return a relative change in per cent, with its sign and without the unit.

    Args:
        change: as a fraction: 0.1 = 10 %.
        digits: after the decimal point; None = 1, or 0 from 10 % on.

    Example:
        >>> signed_percent(-0.0321), signed_percent(0.5), signed_percent(0.5, 1)
        ('-3.2', '+50', '+50.0')
    """
    percent = 100 * change
    if digits is None:
        digits = 0 if abs(percent) >= 9.95 else 1
    return f"{percent:+z.{digits}f}"


class Column(NamedTuple):
    """A column of a table: all values in one unit, with the same number of decimals.

    Attributes:
        unit: of all values.
        texts: a text for each value, without the unit.
    """

    unit: str
    texts: list[str]


def column_of_times(seconds: Sequence[float], *, like: Sequence[float] = ()) -> Column:
    """Return durations in one unit, the largest in which the shortest is still readable.

    Args:
        seconds: the durations.
        like: those of another column, whose unit is used.

    Example:
        >>> column_of_times([2220.0, 7560.0, 622_080.0])
        Column(unit='h', texts=['0.62', '2.10', '172.80'])
        >>> column_of_times([0.0, 11.0])
        Column(unit='s', texts=['0', '11.0'])
    """
    shortest = min((value for value in like or seconds if value > 0), default=0.0)
    unit, name = next(((u, n) for u, n in _UNITS if shortest >= _LEAST * u), (1.0, "s"))
    return Column(name, column_of_numbers([value / unit for value in seconds]))


def column_of_numbers(values: Sequence[float]) -> list[str]:
    """Return numbers with the same number of decimals, three digits for the smallest.

    Example:
        >>> column_of_numbers([1.234, 12.3]), column_of_numbers([16.7, 8147.66])
        (['1.23', '12.30'], ['16.7', '8,147.7'])
    """
    known = [abs(value) for value in values if math.isfinite(value) and value]
    smallest = min(known, default=10.0)
    digits = 0 if smallest >= 99.5 else 1 if smallest >= 9.95 else 2
    return [_fixed(value, digits) for value in values]


def _fixed(value: float, digits: int) -> str:
    if not math.isfinite(value):
        return "-"
    return f"{value:,.{digits if value else 0}f}"


def two_figures(value: float) -> str:
    """Return a number with two significant digits, or a whole number from 10 on.

    Example:
        >>> two_figures(0.1234), two_figures(123.4)
        ('0.12', '123')
    """
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.2g}"


def signed_two_figures(value: float) -> str:
    """Return the same with a sign; 0 has none.

    Example:
        >>> signed_two_figures(5.0), signed_two_figures(-3.21), signed_two_figures(0.0)
        ('+5', '-3.2', '0')
    """
    return ("+" if value > 0 else "") + two_figures(value)


def _digits(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2g}"
