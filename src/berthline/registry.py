"""Registry: a table of named things to which other packages may add.

Names come from Berthline itself, from functions such as `register_reward`, and from entry points of
installed packages. An entry point's name is the name that it adds, so that a list of names imports
nothing; what it names is imported when that name is first used:

    [project.entry-points."berthline.rewards"]
    my-reward = "my_package.rewards:MY_REWARD"
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from berthline.errors import BerthlineError, ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.metadata import EntryPoint

T = TypeVar("T")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_new_name(kind: str, name: object) -> str:
    """Return a name that something new may have.

    Raises:
        ConfigError: it is malformed.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigError(
            f"bad name for {kind} {name!r}", expected="lower-case words joined by hyphens"
        )
    return name


class Registry(Mapping[str, T], Generic[T]):
    """A table of named things, which looks into installed packages for names it does not have.

    Args:
        kind: what it holds, with its article, for errors: `a reward`.
        group: the group of entry points: `berthline.rewards`.
        own: Berthline's own entries.
        register: adds what an entry point names, given its name; it calls `add`.
    """

    def __init__(
        self, kind: str, group: str, own: Mapping[str, T], register: Callable[[str, Any], object]
    ) -> None:
        self._kind, self._group, self._register = kind, group, register
        self._entries: dict[str, T] = dict(own)
        self._own = frozenset(own)

    def add(self, name: str, value: T, *, is_same: Callable[[T, T], bool] = operator.eq) -> T:
        """Add an entry.

        Args:
            name: lower-case words joined by hyphens.
            value: the entry.
            is_same: whether two entries are the same thing, perhaps defined again, as when a cell
                of a notebook is run twice; then the new one replaces the old one.

        Raises:
            ConfigError: the name is malformed, or something else has it.
        """
        check_new_name(self._kind, name)
        if name in self._entries and not is_same(self._entries[name], value):
            owner = "Berthline's own" if name in self._own else "registered before"
            raise ConfigError(
                f"there is already {self._kind} {name!r}, {owner}", expected="another name"
            )
        self._entries[name] = value
        return value

    def __getitem__(self, name: str) -> T:
        if name not in self._entries and name in self._points:
            self._load(self._points[name])
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self._points

    def __iter__(self) -> Iterator[str]:
        return iter([*self._entries, *(name for name in self._points if name not in self._entries)])

    def __len__(self) -> int:
        return len(list(iter(self)))

    @functools.cached_property
    def _points(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages, by name.

        Raises:
            ConfigError: two packages add the same name, or one adds a name of Berthline's own.
        """
        from importlib.metadata import entry_points

        found: dict[str, EntryPoint] = {}
        for point in sorted(entry_points(group=self._group), key=lambda one: one.name):
            check_new_name(self._kind, point.name)
            other = found.get(point.name)
            # A package may be found twice: installed, and in the working directory.
            same = other is not None and other.value == point.value
            if point.name in self._own or (other is not None and not same):
                owner = "Berthline itself" if other is None else _package_of(other)
                raise ConfigError(
                    f"{_package_of(point)} adds {self._kind} {point.name!r}, which {owner} has",
                    where=f"entry point group {self._group!r}",
                    hint=f"uninstall {_package_of(point)}, or rename its entry point",
                )
            found[point.name] = point
        return found

    def _load(self, point: EntryPoint) -> None:
        where = f"entry point {point.name!r} of {_package_of(point)}, {point.value}"
        try:
            value = point.load()
        except Exception as error:  # whatever the module of another package raises
            raise ConfigError(
                f"cannot import {self._kind}: {type(error).__name__}: {error}", where=where
            ) from error
        try:
            # Importing the module may already have registered it, with a decorator.
            if point.name not in self._entries:
                self._register(point.name, value)
        except BerthlineError as error:
            error.where = f"{error.where}; {where}" if error.where else where
            raise


def _package_of(point: EntryPoint) -> str:
    return "a package" if point.dist is None else str(point.dist.name)


def keywords_of(kind: str, value: Any, function: Callable[..., object]) -> dict[str, Any]:
    """Return what an entry point names as the keywords of a function that registers it.

    Raises:
        ConfigError: it is not a mapping of these keywords.
    """
    import inspect

    known = [name for name in inspect.signature(function).parameters if name != "name"]
    expected = f"a mapping with the parameters of {function.__name__}: {', '.join(known)}"
    if not isinstance(value, Mapping):
        raise ConfigError(f"{kind} is {type(value).__name__}", expected=expected)
    for key in value:
        if key not in known:
            raise ConfigError(f"unknown parameter {key!r} of {kind}", expected=expected)
    return dict(value)
