r"""Output that shows control characters as text.

Names of users, pools, jobs and files come from logs that others wrote. A terminal obeys escape
sequences in them: they could clear the screen, or hide and forge lines. So both output streams show
them as text, such as `\x1b[2J`. Tables and bars are styled with such sequences of our own: they
are written to the `styled` stream below, with their texts made visible one by one.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO, cast

_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except tab and newline, and those that reverse the direction of a text."""


def visible(text: str) -> str:
    r"""Return a text with its control characters written out.

    Example:
        >>> visible("eve\x1b[2J")
        'eve\\x1b[2J'
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def visible_json(text: str) -> str:
    """Return a JSON text without control characters; it means the same."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class VisibleStream:
    """A text stream on which control characters are visible.

    Attributes:
        styled: the stream below, for sequences that a terminal should obey.
    """

    def __init__(self, styled: TextIO) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Write a text."""
        self.styled.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


def styled(stream: TextIO) -> TextIO:
    """Return the stream to write styled text to; its contents must be visible already."""
    return cast("TextIO", getattr(stream, "styled", stream))


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Make control characters visible on stdout and stderr."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", VisibleStream(styled(each))) for each in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
