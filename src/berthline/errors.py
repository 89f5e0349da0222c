"""Every error a user can cause, in one form: what, where, expected, hint.

    BerthlineError            root; the command line prints it and exits with `exit_code`
    +-- ConfigError           a wrong option, name or cluster file            exit 2
    +-- TraceError            a workload file or column that cannot be used   exit 2
    +-- PolicyError           a scheduler string or formula that is wrong     exit 2
    +-- MissingExtraError     an optional dependency is not installed         exit 2
    +-- OutputError           a file, report or run that cannot be written    exit 1
    +-- SimulationError       a run that could not be completed               exit 1
    +-- ClusterError          machines that cannot be reached                 exit 1
    +-- RefusedError          something a rule of safety forbids              exit 3

Messages are lower case, name the offending value and say what to do next. Code inside the
package validates at its boundary and trusts its own data afterwards.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class BerthlineError(Exception):
    """A problem with user input, described so that the user can fix it."""

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


class OutputError(BerthlineError):
    """A file, a report or a run that cannot be written."""

    exit_code = 1


class SimulationError(BerthlineError):
    """A run that could not be completed."""

    exit_code = 1


class ClusterError(BerthlineError):
    """Machines that cannot be reached."""

    exit_code = 1


class RefusedError(BerthlineError):
    """Something that a rule of safety forbids."""

    exit_code = 3


def unknown_name(
    kind: str, name: str, known: Iterable[str], *, list_command: str = ""
) -> tuple[str, str, str]:
    """Return (what, expected, hint) for an unknown name, with the nearest match."""
    names = sorted(known)
    what = f"unknown {kind} {name!r}"
    name = str(name)  # a caller of the library may have given anything
    near = max(names, key=lambda other: _likeness(name, other), default="")
    hint = f"did you mean {near!r}?" if near and _likeness(name, near) >= 0.5 else ""
    if list_command:
        hint = f"{hint} all of them: {list_command}".strip()
    return what, "one of " + ", ".join(names), hint


def _likeness(given: str, other: str) -> float:
    """Return the similarity of two names; swapped letters are the most likely typo."""
    given, other = given.lower(), other.lower()
    return difflib.SequenceMatcher(None, given, other).ratio() + 0.2 * (
        sorted(given) == sorted(other)
    )


_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "datetime": "a date",
    "date": "a date",
    "time": "a time",
}
"""msgspec's names of types, in words."""


def misfit(error: Exception, groups: Mapping[str, str], *, table: str = "") -> tuple[str, str, str]:
    """Return (what, where, expected) for a file with the wrong layout.

    Args:
        error: the error that msgspec, tomllib or the text decoder raised.
        groups: the name of one member of each list: `{"nodes": "node group"}`
            turns `$.nodes[0].gpus` into `node group 1, gpus`.
        table: the part of the file that was checked, such as `[pools.vc1]`; empty = all of it.
    """
    if isinstance(error, UnicodeDecodeError):
        return "not a UTF-8 text file", f"byte {error.start + 1}", "text in UTF-8"
    text, _, path = str(error).partition(" - at `")
    if syntax := re.fullmatch(r"(.*) \(at (line \d+), column \d+\)", text):
        return f"{syntax[1][:1].lower()}{syntax[1][1:]}", syntax[2], "valid TOML"
    steps = re.findall(r"([^.\[\]`$]+)(?:\[(\d+)\])?", path)
    places = [table] if table else []
    places += [
        f"{groups.get(name, name) if depth == 0 else f'{name}, entry'} {int(index) + 1}"
        if index
        else name
        for depth, (name, index) in enumerate(steps)
    ]
    where = ", ".join(places)
    field = places[-1] if places else "the file"
    if missing := re.fullmatch(r"Object missing required field `(.*)`", text):
        return f"{missing[1]} is missing", where, ""
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", text):
        return f"unknown key {unknown[1]!r}", where, ""
    if wrong := re.fullmatch(r"Expected `(.*?)`(?:, got `(.*)`| (\S+) (\S+))", text):
        kind, got, sign, limit = wrong.groups()
        expected = " or ".join(_KINDS.get(one, one) for one in kind.split(" | ") if one != "null")
        if kind == "array":
            expected += f", written [[{field}]]"
        if got == "float":
            return f"{field} is a number with a decimal point", where, expected
        if got is not None:
            return f"{field} is {_KINDS.get(got, got)}", where, expected
        words = {">=": "or more", "<=": "or less", ">": "more than", "<": "less than"}
        number = f"{float(limit):g}"
        bound = f"{number} {words[sign]}" if "=" in sign else f"{words[sign]} {number}"
        return f"{field} is out of range", where, f"{expected}, {bound}"
    return text[:1].lower() + text[1:], where, ""
