"""Tools for recognising files: levels of certainty, and the first lines as text."""

from __future__ import annotations

import enum
import functools
import re
from typing import TYPE_CHECKING

from berthline.traces.reading.leading_comments import blank_leading_comments

if TYPE_CHECKING:
    from collections.abc import Sequence


class Match(enum.IntEnum):
    """How certain a format is that it can read a file; the most certain format reads it."""

    NO = 0
    READABLE = 1
    """The file can be read, but nothing identifies it: more certain formats take precedence."""
    NAMED = 2
    """Only the file's name or header identifies it. Its rows may be damaged; the reader then
    reports which line is wrong."""
    CERTAIN = 3
    """The rows look right."""


def head_lines(head: bytes) -> list[str]:
    """Return the non-blank lines of a file's first bytes, without an incomplete last line."""
    return list(_head_lines(head))


@functools.lru_cache(maxsize=2)
def _head_lines(head: bytes) -> tuple[str, ...]:
    # Cached because every format looks at the same bytes.
    lines = head.decode("utf-8", errors="replace").splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    return tuple(line.strip() for line in lines if line.strip())


def header_cells(head: bytes, separator: str = ",") -> list[str]:
    """Return the cells of a file's first line, without surrounding quotes and blanks."""
    lines = head_lines(blank_leading_comments(head.removeprefix(b"\xef\xbb\xbf")))
    return [cell.strip().strip('"').strip() for cell in lines[0].split(separator)] if lines else []


def cell_rows(head: bytes, *, most: int = 20, separator: str = ",") -> list[list[str]]:
    """Return the cells of a file's first lines, for formats whose tables have no header line."""
    text = blank_leading_comments(head.removeprefix(b"\xef\xbb\xbf"), has_header=False)
    lines = head_lines(text)[:most]
    return [[cell.strip() for cell in line.split(separator)] for line in lines]


def match_shapes(rows: Sequence[Sequence[str]], shapes: Sequence[str]) -> Match:
    """Return how certain it is, from the first rows, that each cell of a table has its shape.

    Args:
        rows: as `cell_rows` returns them.
        shapes: a regular expression for each cell of a row.
    """
    patterns = [re.compile(shape) for shape in shapes]
    fitting = sum(
        len(row) == len(patterns)
        and all(pattern.fullmatch(cell) for pattern, cell in zip(patterns, row, strict=True))
        for row in rows
    )
    if fitting and fitting == len(rows):
        return Match.CERTAIN
    # If a few rows are damaged, the reader reports which.
    return Match.NAMED if fitting * 2 > len(rows) else Match.NO
