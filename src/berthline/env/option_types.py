"""Kinds of values: what an option takes, and the plain Python value it becomes.

NumPy's numbers count as numbers. True does not: `window=True` is a mistake.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import operator
import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from berthline.errors import ConfigError


@dataclasses.dataclass(frozen=True)
class OptionType:
    """What values an option takes.

    Attributes:
        expected: in words.
        convert: returns the plain value; raises TypeError, ValueError or OverflowError to refuse
            it.
    """

    expected: str
    convert: Callable[[Any], Any]

    def take(self, name: str, value: object) -> Any:
        """Return the plain value of an option.

        Raises:
            ConfigError: the option does not accept it.
        """
        try:
            return self.convert(value)
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(f"{name} is {value!r}", expected=self.expected) from None

    def or_none(self) -> OptionType:
        """Return the kind that also takes None."""
        return OptionType(
            f"{self.expected}; or None",
            lambda value: None if value is None else self.convert(value),
        )


def whole(least: int, most: int | None = None) -> OptionType:
    """Return the kind of whole numbers from `least` to `most`; None = no limit."""

    def convert(value: Any) -> int:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)
        if number < least or (most is not None and number > most):
            raise ValueError
        return number

    end = "on" if most is None else f"to {most:,}"
    return OptionType(f"a whole number from {least} {end}", convert)


def number(least: float = -math.inf, most: float = math.inf, *, above: bool = False) -> OptionType:
    """Return the kind of numbers from `least`, or only above it, to `most`."""

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError
        number = float(value)
        if not least <= number <= most or (above and number == least):
            raise ValueError
        return number

    expected = "a number"
    if least > -math.inf:
        expected += f", more than {least:g}" if above else f", {least:g} or more"
    if most < math.inf:
        expected += f", at most {most:g}"
    return OptionType(expected, convert)


def named_or(kind: type) -> OptionType:
    """Return the kind of objects of a type, and of texts and paths that name one."""

    def convert(value: Any) -> Any:
        return value if isinstance(value, kind) else _text(os.fspath(value))

    return OptionType(f"a text, a path or a {kind.__name__}", convert)


def texts(example: str) -> OptionType:
    """Return the kind of lists of texts."""
    return OptionType(f"a list of texts, such as {example}", _texts)


def numbers_by_name(example: str) -> OptionType:
    """Return the kind of mappings of names to numbers."""
    return OptionType(f"a mapping of names to numbers, such as {example}", _numbers)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise TypeError
    return tuple(value)


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError
    return dict(value)


def _numbers(value: Any) -> dict[str, float]:
    return {name: NUMBER.convert(entry) for name, entry in _table(value).items()}


def _number_or_range(value: Any) -> float | tuple[float, float]:
    if not isinstance(value, list | tuple):
        found: float = NUMBER.convert(value)
        return found
    low, high = map(NUMBER.convert, value)
    return low, high


def _range_of_jobs(value: Any) -> tuple[int, int]:
    first, end = (whole(0).convert(number) for number in value)
    if end <= first:
        raise ValueError
    return first, end


def _three_numbers(value: Any) -> tuple[float, float, float]:
    first, second, third = map(NUMBER.convert, value)
    return first, second, third


SEED = whole(0)
TEXT = OptionType("a text", _text)
NUMBER = number()
FLAG = OptionType("True or False", _flag)
TEXTS = OptionType("a list of texts", _texts)
TABLE = OptionType("a mapping of names to values", _table)
RANGE_OF_JOBS = OptionType("two whole numbers, (first job, one past the last)", _range_of_jobs)
THREE_NUMBERS = OptionType("three numbers: train, validation, test", _three_numbers)
NUMBER_OR_RANGE = OptionType("a number, or two of them: (lowest, highest)", _number_or_range)
