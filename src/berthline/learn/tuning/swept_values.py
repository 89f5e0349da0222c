"""What a sweep varies: settings of the algorithm, options of the environment, the network.

config.learning_rate=1e-4:1e-2:log     a range; whole numbers if both ends are
set.window=32,64,128                   choices
"""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PLAIN = ("network", "hidden", "envs")
"""Parameters of `train` that a sweep may vary besides settings and options."""
_EXPECTED = "LOW:HIGH, LOW:HIGH:log, or choices A,B,C"


@dataclasses.dataclass(frozen=True)
class Swept:
    """One thing that a sweep varies.

    Attributes:
        name: `config.NAME`, `set.NAME`, or one of PLAIN.
        choices: its values; empty = a range.
        low: the lowest value of a range.
        high: the highest value.
        is_log: whether the scale is logarithmic.
    """

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    is_log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the values of a range are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values to check before the first trial."""
        return self.choices or (self.low, self.high)

    @property
    def text(self) -> str:
        """The values as the command line takes them."""
        if self.choices:
            return ",".join(map(_written, self.choices))
        return f"{self.low}:{self.high}{':log' if self.is_log else ''}"

    def takes(self, value: Any) -> bool:
        """Whether a value is among those that are tried."""
        if self.choices:
            return value in self.choices
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return is_number and self.low <= value <= self.high


def read_swept(given: Mapping[str, Any]) -> list[Swept]:
    """Return what a sweep varies.

    Args:
        given: by name, a text as on the command line, a range (low, high) or (low, high, "log"), or
            a list of choices.

    Raises:
        ConfigError: there is nothing, a name is unknown, or values cannot be read.
    """
    if not given:
        raise ConfigError(
            "there is nothing to vary",
            expected="one parameter or more, such as config.learning_rate=1e-4:1e-2:log",
        )
    return [_swept(name, values) for name, values in given.items()]


def _swept(name: str, values: Any) -> Swept:
    table, dot, field = name.partition(".")
    if not (dot and field and table in ("config", "set")) and name not in PLAIN:
        known = [*PLAIN, "config.NAME", "set.NAME"]
        what, expected, hint = unknown_name("parameter of a sweep", name, known)
        raise ConfigError(what, expected=expected, hint=hint)
    read = _of_text(values) if isinstance(values, str) else values
    where = f"parameter {name}"
    if isinstance(read, list):
        if len(read) < 2:
            raise ConfigError(f"there is one choice, {values!r}", where=where, expected=_EXPECTED)
        return Swept(name, tuple(tuple(v) if isinstance(v, list) else v for v in read))
    numbers: Sequence[Any] = read if isinstance(read, tuple) else ()
    is_log = len(numbers) == 3 and numbers[2] == "log"
    ends = numbers[:2]
    is_range = (
        len(numbers) in (2, 3)
        and (len(numbers) == 2 or is_log)
        and all(isinstance(end, int | float) and math.isfinite(end) for end in ends)
    )
    if not is_range:
        raise ConfigError(f"its values are {values!r}", where=where, expected=_EXPECTED)
    low, high = ends
    if low >= high or (is_log and low <= 0):
        least = " and more than 0" if is_log else ""
        raise ConfigError(
            f"its range is {low:g} to {high:g}", where=where, expected=f"LOW below HIGH{least}"
        )
    return Swept(name, low=low, high=high, is_log=is_log)


def _of_text(text: str) -> Any:
    parts = text.split(":")
    if len(parts) in (2, 3) and "," not in text and all(map(_is_number, parts[:2])):
        ends = tuple(json.loads(part) if _is_json(part) else float(part) for part in parts[:2])
        return (*ends, *parts[2:])
    return [_value(part.strip()) for part in text.split(",")]


def _value(text: str) -> Any:
    return json.loads(text) if _is_json(text) else text


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return "-".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def arguments(values: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `train` with the values of a trial.

    Args:
        values: of a trial, by the names of what is varied.
        given: the arguments that all trials share.
    """
    found = dict(given)
    for table, argument in (("config", "config"), ("set", "env_options")):
        own = {
            name.partition(".")[2]: value
            for name, value in values.items()
            if name.startswith(f"{table}.")
        }
        if own:
            found[argument] = {**(given.get(argument) or {}), **own}
    for name in PLAIN:
        if name in values:
            found[name] = _widths(values[name]) if name == "hidden" else values[name]
    return found


def _widths(value: Any) -> tuple[int, ...]:
    """Return the widths of layers: 64, (64, 32), or the text 64-32."""
    if isinstance(value, str):
        try:
            return tuple(int(part) for part in value.split("-"))
        except ValueError:
            raise ConfigError(
                f"hidden is {value!r}", expected="widths joined by hyphens, such as 64-32"
            ) from None
    return tuple(value) if isinstance(value, tuple | list) else (value,)
