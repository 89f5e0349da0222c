"""Dials: the named settings of a generator, converted and checked in one place.

Values come as Python numbers or, from `--set key=value`, as text; both end up as the same number
or as a ConfigError that says which values would do.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dial:
    """One setting of a generator.

    Attributes:
        name: what `--set` and keyword arguments call it.
        default: its value when nothing is said; a whole number makes the dial whole-numbered.
        meaning: one line for lists, with the unit if it has one.
        lowest: the smallest value allowed.
        highest: the largest value allowed.
    """

    name: str
    default: int | float
    meaning: str
    lowest: float = 0
    highest: float = math.inf

    @property
    def is_whole(self) -> bool:
        """Whether the dial takes whole numbers only."""
        return isinstance(self.default, int)

    @property
    def accepted(self) -> str:
        """The values allowed, in words."""
        kind = "a whole number" if self.is_whole else "a number"
        high = "or more" if math.isinf(self.highest) else f"to {self.highest:.15g}"
        return f"{kind}, {self.lowest:g} {high}"

    def convert(self, value: object, *, where: str) -> int | float:
        """Return `value` as a number this dial accepts.

        Args:
            value: a number, or the text of one.
            where: whose dial it is, for the error.

        Raises:
            ConfigError: it is no number, or out of range.
        """
        number = _whole_number(value) if self.is_whole else _number(value)
        if number is None or not self.lowest <= number <= self.highest:
            raise ConfigError(f"{self.name} is {value!r}", where=where, expected=self.accepted)
        return number


# What every generator takes, and a trace file too where it makes sense. The bounds keep times
# within what float64 seconds can hold.
JOBS = Dial(name="jobs", default=1000, meaning="how many jobs", lowest=1, highest=100_000_000)
LOAD = Dial(
    name="load",
    default=0.9,
    meaning="GPU-seconds asked for per GPU-second of the cluster, on average",
    lowest=1e-6,
    highest=1e6,
)
SEED = Dial(name="seed", default=0, meaning="selects the random numbers")


def set_dials(
    dials: Iterable[Dial], given: Mapping[str, object], *, where: str
) -> dict[str, int | float]:
    """Return the value of every dial: as given, else its default.

    Raises:
        ConfigError: a name is not that of a dial, or a value is refused.
    """
    by_name = {dial.name: dial for dial in dials}
    for name in given:
        if name not in by_name:
            what, expected, hint = unknown_name("dial", name, by_name)
            raise ConfigError(what, where=where, expected=expected, hint=hint)
    return {
        name: dial.convert(given[name], where=where) if name in given else dial.default
        for name, dial in by_name.items()
    }


def _number(value: object) -> float | None:
    """Return `value` as a finite number, or None if it is not one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _whole_number(value: object) -> int | None:
    """Return `value` as a whole number, or None if it is not one."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            return int(value)  # not by way of float, which would round a large seed
        except ValueError:
            return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None
