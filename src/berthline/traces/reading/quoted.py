"""Text from a file, formatted for messages: quoted, and short enough for a line."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN_CHARACTERS = 40
_SHOWN_NAMES = 60


def presentable(names: Iterable[str]) -> list[str]:
    """Return names from a file for a message: not too many, and none longer than a line."""
    return [name[:_SHOWN_CHARACTERS] for name in itertools.islice(names, _SHOWN_NAMES)]


def shorten(value: object) -> str:
    """Return a cell's value for a message: quoted, and short enough for a line."""
    if value is None:
        return "nothing"
    text = str(value)
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "...")
