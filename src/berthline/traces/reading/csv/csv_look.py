"""Scanning the bytes of a text table, before or instead of reading its cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from berthline import _native

_NEWLINE, _BLANK = ord("\n"), ord(" ")
_BLOCK = 2**16  # bytes scanned together, so that temporary arrays fit a processor's cache


class Form(NamedTuple):
    """How a text table is written; see `CsvTable`."""

    separator: str = ","
    quote: str | None = '"'
    comment: str | None = None
    longer_lines: bool = False


class PieceLook:
    """Properties of a piece, from a scan of its bytes.

    Attributes:
        ascii: whether it contains only ASCII.
        quoted: whether there are quotes.
        blanks: whether cells may have surrounding blanks, or be quoted and empty.
        lines: number of lines.
        separators: number of separators, including those in quotes.
    """

    def __init__(self, piece: bytes, form: Form) -> None:
        self.ascii = piece.isascii()
        quote = form.quote.encode() if form.quote else b""
        self.quoted = bool(quote) and quote in piece
        content = np.frombuffer(piece, np.uint8)
        self.lines = _native.count_bytes(piece, "\n")
        self.separators = _native.count_bytes(piece, form.separator)
        # A search for any blank is fast; without one, there is nothing to strip.
        others = {b" ", b"\t", b"\r"} - {form.separator.encode()}
        self.blanks = not self.ascii or (self.quoted and 2 * quote in piece)
        if not self.blanks and any(blank in piece for blank in others):
            self.blanks = _has_outer_blank(content, form)


def _has_outer_blank(content: npt.NDArray[np.uint8], form: Form) -> bool:
    """Return whether a blank is next to a separator, a line end or a quote."""
    for first in range(0, content.size, _BLOCK):
        block = content[first : first + _BLOCK + 1]  # and the next byte, for pairs across blocks
        is_edge = block == ord(form.separator)
        is_edge |= block == _NEWLINE
        if form.quote:
            is_edge |= block == ord(form.quote)
        is_blank = block <= _BLANK
        is_blank &= ~is_edge
        if (
            (first == 0 and is_blank[0])
            or (is_blank[1:] & is_edge[:-1]).any()
            or (is_edge[1:] & is_blank[:-1]).any()
        ):
            return True
    return False


def has_odd_line(piece: bytes, form: Form, width: int) -> bool:
    """Return whether a line has too few cells, or too many if that is not allowed."""
    content = np.frombuffer(piece, np.uint8)
    outside: npt.NDArray[np.bool_] = np.ones(content.size, np.bool_)
    if form.quote is not None:
        outside = ~np.logical_xor.accumulate(content == ord(form.quote))
    ends = np.flatnonzero((content == _NEWLINE) & outside)
    if ends.size == 0 or ends[-1] != content.size - 1:
        return True  # a quote is not closed
    before = np.cumsum((content == ord(form.separator)) & outside)[ends]
    cells = np.diff(before, prepend=0) + 1
    odd = cells < width if form.longer_lines else cells != width
    starts = np.concatenate([[0], ends[:-1] + 1])
    comment = form.comment.encode() if form.comment else None
    for at in np.flatnonzero(odd).tolist():
        line = piece[starts[at] : ends[at]].strip(b" \r\t" + form.separator.encode())
        if line and not (comment and line.startswith(comment)):
            return True
    return False
