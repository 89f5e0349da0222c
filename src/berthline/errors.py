"""Every error a user can cause, in one form: what, where, expected, hint.

    BerthlineError            root; the command line prints it and exits with `exit_code`
    +-- ConfigError           a wrong option, name or cluster file            exit 2
    +-- TraceError            a workload file or column that cannot be used   exit 2
    +-- PolicyError           a scheduler string or formula that is wrong     exit 2
    +-- MissingExtraError     an optional dependency is not installed         exit 2
    +-- SimulationError       a run that could not be completed               exit 1

Messages are lower case, name the offending value and say what to do next. Code inside the
package validates at its boundary and trusts its own data afterwards.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class BerthlineError(Exception):
    """A problem with what the user gave, told so that it can be mended."""

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", expected: str = "", hint: str = "") -> None:
        self.what, self.where, self.expected, self.hint = what, where, expected, hint
        super().__init__(what)

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.where}" if self.where else self.what]
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class ConfigError(BerthlineError):
    """A wrong option, name or cluster file."""


class TraceError(BerthlineError):
    """A workload file or column that cannot be used."""


class PolicyError(BerthlineError):
    """A scheduler string or formula that is wrong."""


class MissingExtraError(BerthlineError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, needed_for: str) -> None:
        super().__init__(
            f"{needed_for} needs the package {package!r}, which is not installed",
            hint=f"pip install 'berthline[{extra}]'",
        )


class SimulationError(BerthlineError):
    """A run that could not be completed."""

    exit_code = 1


def unknown_name(
    kind: str, name: str, known: Iterable[str], *, list_command: str = ""
) -> tuple[str, str, str]:
    """Return (what, expected, hint) for a name that is in no registry, with the nearest match."""
    names = sorted(known)
    near = max(names, key=lambda other: _likeness(name, other), default="")
    hint = f"did you mean {near!r}?" if near and _likeness(name, near) >= 0.5 else ""
    if list_command:
        hint = f"{hint} all of them: {list_command}".strip()
    return f"unknown {kind} {name!r}", "one of " + ", ".join(names), hint


def _likeness(given: str, other: str) -> float:
    """Return how alike two names are; letters in the wrong order are the likeliest slip."""
    given, other = given.lower(), other.lower()
    return difflib.SequenceMatcher(None, given, other).ratio() + 0.2 * (
        sorted(given) == sorted(other)
    )
