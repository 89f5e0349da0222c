"""Dials: the named settings of a generator, converted and checked in one place.

Values are Python numbers or, from `--set key=value`, text. Both are converted to the same number or
choice, or raise a ConfigError that states the accepted values.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, unknown_name
from berthline.size_limits import MOST

if TYPE_CHECKING:
    from collections.abc import Iterable

Value = int | float | str
Settings = Mapping[str, Value]
"""The value of every dial of a generator."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Dial:
    """One setting of a generator.

    Attributes:
        name: its name for `--set` and keyword arguments.
        default: its value if none is given; an int makes the dial take whole numbers, a text makes
            it take a choice.
        meaning: one line for lists, with the unit if it has one.
        lowest: the smallest value allowed.
        highest: the largest value allowed.
        choices: the texts allowed, for a dial that takes a choice.
        check: whether a text that is not a choice is accepted, for a dial that takes other texts.
        form: the form of such a text.
    """

    name: str
    default: Value
    meaning: str
    lowest: float = 0
    highest: float = math.inf
    choices: tuple[str, ...] = ()
    check: Callable[[str], bool] | None = None
    form: str = ""

    @property
    def default_text(self) -> str:
        """The default, as text."""
        return self.default if isinstance(self.default, str) else f"{self.default:.15g}"

    @property
    def is_whole(self) -> bool:
        """Whether the dial takes whole numbers only."""
        return isinstance(self.default, int)

    @property
    def accepted(self) -> str:
        """The values allowed, in words."""
        if isinstance(self.default, str):
            named = f"one of {', '.join(self.choices)}"
            return f"{named}; or {self.form}" if self.form else named
        kind = "a whole number" if self.is_whole else "a number"
        high = "or more" if math.isinf(self.highest) else f"to {self.highest:.15g}"
        return f"{kind}, {self.lowest:g} {high}"

    def convert(self, value: object, *, where: str) -> Value:
        """Return `value` as a number or choice that this dial accepts.

        Args:
            value: a number, its text, or a choice.
            where: the owner of the dial, for the error.

        Raises:
            ConfigError: it is not a number, out of range, or not one of the choices.
        """
        if isinstance(self.default, str):
            return self._choice(value, where=where)
        number = _whole_number(value) if self.is_whole else _number(value)
        if number is None or not self.lowest <= number <= self.highest:
            raise ConfigError(f"{self.name} is {value!r}", where=where, expected=self.accepted)
        return number

    def _choice(self, value: object, *, where: str) -> str:
        text = value.strip() if isinstance(value, str) else ""
        if text in self.choices or (text and self.check is not None and self.check(text)):
            return text
        _, _, hint = unknown_name(self.name, text, self.choices)
        raise ConfigError(
            f"{self.name} is {value!r}", where=where, expected=self.accepted, hint=hint
        )


# Dials of every generator, and of trace files where they apply. The bounds keep times within the
# range of float64 seconds.
JOBS = Dial(name="jobs", default=1000, meaning="how many jobs", lowest=1, highest=MOST["jobs"])
LOAD = Dial(
    name="load",
    default=0.9,
    meaning="GPU-seconds requested per GPU-second of the cluster, on average",
    lowest=1e-6,
    highest=1e6,
)
SEED = Dial(name="seed", default=0, meaning="selects the random numbers")


def set_dials(
    dials: Iterable[Dial], given: Mapping[str, object], *, where: str
) -> dict[str, Value]:
    """Return the value of every dial: the given one, else its default.

    Raises:
        ConfigError: an unknown dial, or a value that is not accepted.
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


def with_defaults(dials: Iterable[Dial], **defaults: Value) -> tuple[Dial, ...]:
    """Return the same dials, some of them with another default."""
    return tuple(
        dataclasses.replace(dial, default=defaults.get(dial.name, dial.default)) for dial in dials
    )


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
            return int(value)  # not through float, which would round a large seed
        except ValueError:
            return None
    if isinstance(value, numbers.Integral):
        return int(value)
    number = _number(value)
    return int(number) if number is not None and number.is_integer() else None
