"""The lines of a sacct text, repaired: if a name contains `|`, the line has too many cells.

sacct does not quote anything. A line with too many cells is split again: the surplus cells become
part of a free-text column, the first one that puts times and states in the right columns. Header
lines of concatenated files are left out, column names get sacct's own spelling, and `JobIDRaw`
replaces a missing `JobID`. The number of lines does not change.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from berthline import _native
from berthline.errors import TraceError
from berthline.traces.reading.files import text_pieces
from berthline.traces.reading.leading_comments import blank_leading_comments

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

FREE_TEXT = (
    "JobName",
    "Comment",
    "AdminComment",
    "SystemComment",
    "Constraints",
    "SubmitLine",
    "WorkDir",
    "Extra",
    "WCKey",
    "Reason",
)
"""Columns that may contain `|`, the most likely first."""

_SPELLING = (
    "JobID",
    "JobIDRaw",
    "Submit",
    "Start",
    "End",
    "Elapsed",
    "ElapsedRaw",
    "Timelimit",
    "TimelimitRaw",
    "State",
    "User",
    "Partition",
    "AllocTRES",
    "ReqTRES",
    *FREE_TEXT,
)
_IN_PLACE_OF_BAR = "\N{BROKEN BAR}"

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d|\d+|Unknown|None|N/A|NONE|)$")
_LOOKS_RIGHT = {
    "Submit": _TIME,
    "Start": _TIME,
    "End": _TIME,
    "ElapsedRaw": re.compile(r"\d*$"),
    "State": re.compile(r"([A-Z_]+( by \d+)?\+?|)$"),
}


class SacctLines:
    """The lines of a sacct text.

    Attributes:
        mended: how many lines had to be split again in the last call of `pieces`.
    """

    def __init__(self, path: Path) -> None:
        """Use the text at `path`."""
        self._path = path
        self.mended = 0

    def pieces(self, size: int) -> Iterator[bytes]:
        """Yield the lines in pieces of about `size` bytes; all have as many cells as the first.

        Raises:
            TraceError: the file cannot be read, or a line has too few cells, or too many and no
                column that could contain them.
        """
        self.mended = 0
        header = b""
        names: list[str] = []
        first_line = 1
        for piece in text_pieces(self._path, size):
            body = piece
            if not names:
                piece = blank_leading_comments(piece)
                text = piece.lstrip(b"\r\n")
                above = piece[: len(piece) - len(text)].count(b"\n")
                header, _, body = text.partition(b"\n")
                names = _names(header)
                yield b"\n" * above + "|".join(names).encode() + b"\n"
                first_line = above + 2
            yield self._mend(body, header, names, first_line)
            first_line += _native.count_bytes(body, "\n")

    def _mend(self, piece: bytes, header: bytes, names: Sequence[str], first_line: int) -> bytes:
        num_bars = len(names) - 1
        bars, ends = _native.count_bytes(piece, "|"), _native.count_bytes(piece, "\n")
        # Lines with too few cells are an error, so if the total is right, every line is right.
        if bars == num_bars * ends and not (header and header in piece):
            return piece
        content = np.frombuffer(piece, np.uint8)
        bars_before = np.cumsum(content == ord("|"))[np.flatnonzero(content == ord("\n"))]
        lines = piece.split(b"\n")
        for row in np.flatnonzero(np.diff(bars_before, prepend=0) != num_bars).tolist():
            line = lines[row].decode("utf-8", errors="replace").rstrip("\r")
            if line.strip():
                where = f"{self._path}, line {first_line + row}"
                lines[row] = _split_anew(line.split("|"), names, where).encode()
                self.mended += 1
        return b"\n".join([b"" if line == header else line for line in lines])


def _names(header: bytes) -> list[str]:
    """Return the columns in sacct's own spelling."""
    spelling = {name.lower(): name for name in _SPELLING}
    names = [name.strip() for name in header.decode("utf-8", errors="replace").split("|")]
    names = [spelling.get(name.lower(), name) for name in names]
    return (
        names if "JobID" in names else ["JobID" if name == "JobIDRaw" else name for name in names]
    )


def _split_anew(cells: list[str], names: Sequence[str], where: str) -> str:
    """Return a line with as many cells as there are columns."""
    surplus = len(cells) - len(names)
    if surplus < 0:
        raise TraceError(
            f"the line has {len(cells)} cell{'' if len(cells) == 1 else 's'}",
            where=where,
            expected=f"{len(names)} cells separated by '|', as in the first line",
            hint="if it is the last line, the file may have been cut short",
        )
    columns = [names.index(name) for name in FREE_TEXT if name in names]
    for column in columns:
        inside = _IN_PLACE_OF_BAR.join(cells[column : column + surplus + 1])
        anew = [*cells[:column], inside, *cells[column + surplus + 1 :]]
        if _looks_right(anew, names):
            return "|".join(anew)
    raise TraceError(
        f"the line has {len(cells)} cell{'' if len(cells) == 1 else 's'}",
        where=where,
        expected=f"{len(names)} cells separated by '|', as in the first line",
        hint="a name or comment may contain '|': export without that column",
    )


def _looks_right(cells: Sequence[str], names: Sequence[str]) -> bool:
    return all(
        pattern.match(cells[names.index(name)])
        for name, pattern in _LOOKS_RIGHT.items()
        if name in names
    )
