"""What is wrong with the options of a verb, in the form common to all errors."""

from __future__ import annotations

import re
import textwrap
from typing import get_type_hints

import msgspec
from tyro.conf import Positional

from berthline.errors import ConfigError, unknown_name

OTHER_NAMES = {"--until": "--horizon"}
"""Options with two names: given by both, one would be forgotten without a word."""

_BOX = re.compile(r"^│\s?|\s*│$")
_RULE = re.compile(r"[╭╰]|[\s│]*[─-]{3,}[\s│]*$")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def is_unknown(kind: type[msgspec.Struct], word: str) -> bool:
    """Whether a word has the form of an option that a verb does not have."""
    name = word.partition("=")[0]
    names = {*_flags(kind)[0], *OTHER_NAMES, *OTHER_NAMES.values(), "--help"}
    return name.startswith("--") and len(name) > 2 and name.replace("_", "-") not in names


def unknown_option(kind: type[msgspec.Struct], name: str, help_command: str) -> ConfigError:
    """Return the error for a word that is not an option of a verb."""
    if not name.startswith("-"):
        return ConfigError(f"unexpected argument {name!r}", hint=f"see {help_command}")
    options, places = _flags(kind)
    what, _, hint = unknown_name("option", name, options, list_command=help_command)
    if name in places:
        hint = f"it is given without {name}: see {help_command}"
    return ConfigError(what, hint=hint)


def _flags(kind: type[msgspec.Struct]) -> tuple[list[str], list[str]]:
    """Return the options of a verb, and its positional arguments as if they were options."""
    [marker] = get_type_hints(_Place, include_extras=True)["any"].__metadata__
    options: list[str] = []
    places: list[str] = []
    for field, hint in get_type_hints(kind, include_extras=True).items():
        if field in kind.__struct_fields__:
            is_place = marker in getattr(hint, "__metadata__", ())
            (places if is_place else options).append(f"--{field.replace('_', '-')}")
    return options, places


class _Place:
    """An argument that is positional, to compare others with."""

    any: Positional[str]


def as_error(text: str, help_command: str) -> ConfigError:
    """Return the message that tyro prints in a box as one of our errors.

    With or without box characters, rules separate its parts: the title, what is wrong, and where
    to find help.
    """
    parts: list[list[str]] = [[]]
    for line in _COLOUR.sub("", text).splitlines():
        if _RULE.match(line):
            parts.append([])
        else:
            parts[-1].append(_BOX.sub("", line).rstrip())
    told = textwrap.dedent("\n".join(parts[1] if len(parts) > 1 else parts[0])).strip()
    if no_value := re.match(r"Missing value for argument '(\S+)'", told):
        return ConfigError(f"{no_value[1]} has no value", hint=f"see {help_command}")
    if told.startswith("Missing from "):
        names = re.findall(r"^ {4}(\S+)", told, re.MULTILINE)
        helps = " ".join(re.findall(r"^ {8}(.+)", told, re.MULTILINE))
        return ConfigError(
            f"{' and '.join(names)} {'is' if len(names) == 1 else 'are'} missing",
            expected=helps.removesuffix(" (required)").rstrip(".") if len(names) == 1 else "",
            hint=f"see {help_command}",
        )
    what = told or "the options could not be read"
    return ConfigError(what[:1].lower() + what[1:], hint=f"see {help_command}")
