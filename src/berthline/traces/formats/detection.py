"""What a format needs to recognise its files: degrees of sureness, and the first lines as text."""

from __future__ import annotations

import enum
import functools
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Match(enum.IntEnum):
    """How sure a format is that a file is of its kind; the surest one reads it."""

    NO = 0
    READABLE = 1
    """Nothing says what the file is, but it can be read: any format that knows it comes first."""
    NAMED = 2
    """Only the file's name or header says so. Its rows may be damaged, and the reader is the one
    that can say which line is wrong."""
    CERTAIN = 3
    """The rows look right."""


def head_lines(head: bytes) -> list[str]:
    """Return the lines of a file's first bytes that are not blank, without one cut at the end."""
    return list(_head_lines(head))


@functools.lru_cache(maxsize=2)
def _head_lines(head: bytes) -> tuple[str, ...]:
    # Every format looks at the same bytes, one after the other.
    lines = head.decode("utf-8", errors="replace").splitlines(keepends=True)
    if len(lines) > 1 and not lines[-1].endswith(("\n", "\r")):
        lines.pop()
    return tuple(line.strip() for line in lines if line.strip())


def header_cells(head: bytes, separator: str = ",") -> list[str]:
    """Return the cells of a file's first line, without quotes and blanks around them."""
    lines = head_lines(head.removeprefix(b"\xef\xbb\xbf"))
    return [cell.strip().strip('"').strip() for cell in lines[0].split(separator)] if lines else []


def cell_rows(head: bytes, *, most: int = 20, separator: str = ",") -> list[list[str]]:
    """Return the cells of a file's first lines, for formats whose tables have no header line."""
    lines = head_lines(head.removeprefix(b"\xef\xbb\xbf"))[:most]
    return [[cell.strip() for cell in line.split(separator)] for line in lines]


def match_shapes(rows: Sequence[Sequence[str]], shapes: Sequence[str]) -> Match:
    """Return how sure the first rows make a table without header that each cell has its shape.

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
    # With a few damaged rows, reading is what tells which.
    return Match.NAMED if fitting * 2 > len(rows) else Match.NO
