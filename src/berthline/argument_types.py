"""Types of the arguments of public functions: a wrong one is an error in the usual form.

    check_arguments(seed=seed, loads=loads)

Each name has one kind everywhere. None passes where it means "not given".
"""

from __future__ import annotations

import numbers
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from berthline.errors import ConfigError


class _Kind(NamedTuple):
    """A kind of argument: what it must be, the check, and whether None means "not given"."""

    expected: str
    is_one: Callable[[object], bool]
    optional: bool = True


def _is_whole(value: object) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return operator.index(value) >= 0  # type: ignore[arg-type]
    except TypeError:
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in value)


def _is_pair(value: object) -> bool:
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    return all(map(_is_number, value))


_KINDS = {
    "seed": _Kind("a whole number, 0 or more", _is_whole, optional=False),
    "horizon": _Kind("a number of seconds", _is_number),
    "energy_period": _Kind("a number of seconds", _is_number),
    "schedulers": _Kind(
        "a list of schedulers, such as ['fcfs', 'sjf+easy']", _is_list, optional=False
    ),
    "loads": _Kind("a list of numbers, such as [0.7, 0.9]", _is_list),
    "against": _Kind("a list of schedulers, such as ['fcfs', 'sjf+easy']", _is_list),
    "by": _Kind("a list of groupings, such as ['user', 'pool']", _is_list, optional=False),
    "measure": _Kind("two numbers of seconds, (FROM, TO)", _is_pair),
    "conditions": _Kind("a mapping, such as {'restart': 30}", _is_mapping),
    "settings": _Kind("a mapping, such as {'users': 100}", _is_mapping),
    "name": _Kind("a text", lambda value: isinstance(value, str), optional=False),
    "formula": _Kind("a text", lambda value: isinstance(value, str), optional=False),
}


def check_arguments(**given: object) -> None:
    """Raise unless every argument is of the kind that its name has.

    Raises:
        ConfigError: one is not.

    Example:
        >>> check_arguments(seed=7, loads=None)
    """
    for argument, value in given.items():
        kind = _KINDS[argument]
        if value is None and kind.optional:
            continue
        if not kind.is_one(value):
            raise ConfigError(f"{argument} is {value!r}", expected=kind.expected)
