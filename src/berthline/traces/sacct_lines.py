"""The lines of a sacct text, mended: `|` may stand inside a name, and then a line has more cells.

sacct does not quote anything. A line with too many cells is split anew: the surplus goes to one of
the columns that hold free text, the first one with which times and states stand where they should.
Headers of files that were joined are left out, column names get sacct's own spelling, the empty
last cells of `sacct -p` go, and `JobIDRaw` does where there is no `JobID`. The number of lines
stays what it was.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence
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
"""Columns in which `|` may stand, the likeliest first."""

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


def mend_lines(text: bytes, path: Path) -> tuple[bytes, int]:
    """Return the lines, all with as many cells as the first, and how many had to be split anew.

    Args:
        text: the file, each line ended by a newline.
        path: the file, for errors.

    Raises:
        TraceError: a line has too few cells, or too many and no column to put them in.
    """
    header, _, body = text.partition(b"\n")
    names = _names(header)
    width = len(names)
    trailing = names[-1] == "" and width > 1  # sacct -p ends every line with a separator
    first = "|".join(names[:-1] if trailing else names).encode()
    lines = body.split(b"\n")[:-1]
    odd = [row for row, line in enumerate(lines) if line.count(b"|") != width - 1]
    if not odd and not trailing and header not in body:
        return first + b"\n" + body, 0
    mended = 0
    for row in odd:
        line = lines[row].decode("utf-8", errors="replace").rstrip("\r")
        if line.strip():
            where = f"{path}, line {row + 2}"
            lines[row] = _split_anew(line.split("|"), names, where).encode()
            mended += 1
    lines = [b"" if line == header else line for line in lines]
    if trailing:
        lines = [line.rstrip(b"\r").removesuffix(b"|") for line in lines]
    return b"\n".join([first, *lines, b""]), mended


def _names(header: bytes) -> list[str]:
    """Return the columns, spelt as sacct does whatever the file does."""
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
        hint="a name or comment may hold a '|': export without that column",
    )


def _looks_right(cells: Sequence[str], names: Sequence[str]) -> bool:
    return all(
        pattern.match(cells[names.index(name)])
        for name, pattern in _LOOKS_RIGHT.items()
        if name in names
    )
