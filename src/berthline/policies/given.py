"""Policies that are Python objects: the table of those that this process has.

`deploy/given_policy.py` makes them. Comparisons and run directories name schedulers by texts, so
each has one, `policy:NAME`, which means something only while the object exists.
"""

from __future__ import annotations

import dataclasses
import re
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from berthline.errors import PolicyError

PREFIX = "policy:"
_TEXT = re.compile(
    r"policy:(?P<name>[\w.-]+)(?:\+(?P<discipline>[a-z-]+))?(?:@(?P<placement>\[[^\]]*\]|[a-z-]+))?"
)
_GIVEN: weakref.WeakValueDictionary[str, Given] = weakref.WeakValueDictionary()


@dataclasses.dataclass(frozen=True, eq=False)
class Given:
    """A policy that is a Python object.

    Attributes:
        name: unique in this process.
        seat: the seat of the scheduler that it fills.
        knowledge: what its environment knows about run times.
        facts: what a checkpoint says about a policy: the options of its environment.
        load: returns what chooses actions, given the layout of observations.
        about: where it runs, in words.
        environments: what `deploy/run_policy.py` keeps of its environment, by cluster.
    """

    name: str
    seat: str
    knowledge: str
    facts: Mapping[str, Any]
    load: Callable[[Any], Any]
    about: str
    environments: dict[Any, Any] = dataclasses.field(default_factory=dict)

    def __reduce__(self) -> NoReturn:
        raise PolicyError(
            f"the policy {self.name!r} is a Python object of this process",
            hint="to use it in other processes, write it to a file: berthline.export_policy",
        )

    @property
    def sentence(self) -> str:
        """How it decides, in a sentence."""
        return (
            f"{PREFIX}{self.name} decides in the seat {self.seat}, with knowledge "
            f"{self.knowledge}: {self.about}, asked one question at a time in Python, which is slow"
        )


def keep(given: Given) -> Given:
    """Make a policy known by its name, or by its name and a number if another one has it."""
    number, name = 1, given.name
    while name in _GIVEN:
        number += 1
        name = f"{given.name}-{number}"
    kept = dataclasses.replace(given, name=name)
    _GIVEN[name] = kept
    return kept


def is_given(text: str) -> bool:
    """Whether a text names a policy that is a Python object."""
    return text.strip().startswith(PREFIX)


def given_of(text: str) -> Given | None:
    """Return the policy that a text names; None = it is not in memory."""
    return find_given(text.strip())[0] if is_given(text) else None


def find_given(text: str) -> tuple[Given, str, str]:
    """Return the policy that a text names, and the discipline and the placement written after it.

    Raises:
        PolicyError: this process does not have it.
    """
    match = _TEXT.fullmatch(text)
    found = None if match is None else _GIVEN.get(match["name"])
    if match is None or found is None:
        raise PolicyError(
            f"there is no policy {text!r} in this process",
            expected="the name of a berthline.Policy that still exists",
            hint="to keep a policy for other processes, use berthline.export_policy",
        )
    return found, match["discipline"] or "", match["placement"] or ""
