"""text_of: an argument that names something, as a text or as a path."""

from __future__ import annotations

import os

from berthline.errors import ConfigError

TextOrPath = str | os.PathLike[str]


def text_of(name: str, given: TextOrPath) -> str:
    """Return the text of an argument.

    Args:
        name: the argument's name, for the error.
        given: a text, or a path.

    Raises:
        ConfigError: the argument is neither.
    """
    text: object = None
    if isinstance(given, str | os.PathLike):
        text = os.fspath(given)
    if not isinstance(text, str):  # paths may also be bytes
        raise ConfigError(f"{name} is {given!r}", expected="a text or a path")
    return text
