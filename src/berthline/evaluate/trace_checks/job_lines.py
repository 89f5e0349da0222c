"""The line of a job in its file, found by the job's id, for warnings about single jobs.

A workload keeps ids, not lines. In a table of text the ids fill one column: this column is found
first, then the id of every line is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.traces.reading.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN = 0
"""The line of a job that is not found."""

_SEPARATORS = (b",", b"\t", b";", b"|", None)  # None = blanks
_LOOKED_AT = 2_000  # lines
_SURE = 0.5  # share of the ids expected in those lines that a column must have


def lines_of_jobs(path: Path, names: npt.NDArray[np.str_] | None) -> npt.NDArray[np.int64]:
    """Return the line of each job, 0 if it is not found; for a repeated id, its first line.

    Args:
        path: the file; for a directory nothing is found.
        names: the jobs' ids.
    """
    unknown = np.full(0 if names is None else len(names), UNKNOWN, np.int64)
    if names is None or not path.is_file():
        return unknown
    try:
        lines = read_text(path, long_lines=True).split(b"\n")
    except TraceError:
        return unknown
    numbers = {name.encode(): UNKNOWN for name in names.tolist()}
    found = _id_column(lines, numbers)
    if found is None:
        return unknown
    separator, column = found
    for number, line in enumerate(lines, start=1):
        cells = line.split(separator, column + 1)
        if len(cells) > column:
            name = cells[column].strip(b' "\r')
            if numbers.get(name, number) == UNKNOWN:
                numbers[name] = number
    return np.fromiter((numbers[name.encode()] for name in names.tolist()), np.int64, len(names))


def _id_column(lines: list[bytes], ids: dict[bytes, int]) -> tuple[bytes | None, int] | None:
    """Return the separator and the column of the ids; None = there is none."""
    # Headers and comments hold no ids; the middle of the file is past them.
    middle = max(0, len(lines) // 2 - _LOOKED_AT // 2)
    sample = [line for line in lines[middle : middle + _LOOKED_AT] if line.strip()]
    best, most = None, 0
    for separator in _SEPARATORS:
        rows = [line.split(separator) for line in sample]
        for column in range(max(map(len, rows), default=0)):
            cells = [row[column].strip(b' "\r') for row in rows if len(row) > column]
            # Count each id once: a column of small numbers has ids too, but the same few
            # repeatedly.
            count = len({cell for cell in cells if cell in ids})
            if count > most:
                best, most = (separator, column), count
    expected = len(sample) * min(1.0, len(ids) / max(len(lines), 1))
    return best if most >= max(1.0, _SURE * expected) else None
