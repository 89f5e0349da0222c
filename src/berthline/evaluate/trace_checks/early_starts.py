"""Jobs that started before they were submitted: a wrong clock, or two swapped columns.

Not every format keeps recorded starts, and those that do drop the line numbers, so the file is read
once more if it is a table whose columns have well-known names.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import TraceError
from berthline.evaluate.trace_checks.trace_warnings import TraceWarning
from berthline.traces.formats.swf import FIELDS
from berthline.traces.reading.blank_separated import BlankSeparated
from berthline.traces.reading.dates import unix_seconds
from berthline.traces.reading.files import read_text

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

_PAIRS = (
    ("submit_time", "start_time"),
    ("time_submit", "time_start"),
    ("Submit", "Start"),
    ("creation_time", "scheduled_time"),
)
"""The names of the submission and the start in tables."""

_DATES = ("%Y-%m-%d %H:%M:%S%z", "%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
_SEPARATORS = (",", "|", "\t", ";")
_SWF_COMMENT = re.compile(rb";[^\n]*")
_UNKNOWN = -1  # a wait in SWF
_HINT = "two clocks disagree, or two columns are swapped; waits are not used"


def negative_waits(path: Path, format_name: str) -> list[TraceWarning]:
    """Return a warning if jobs started before their submission, as far as the file shows it.

    Args:
        path: the trace file, known to be readable.
        format_name: its format.
    """
    if not path.is_file():
        return []
    try:
        lines = _swf_lines(path) if format_name == "swf" else _table_lines(path)
    except TraceError:
        return []
    if not len(lines):
        return []
    jobs = "1 job" if len(lines) == 1 else f"{len(lines):,} jobs"
    return [TraceWarning(f"{jobs} started before the submission", hint=_HINT, line=int(lines[0]))]


def _swf_lines(path: Path) -> list[int]:
    rows = BlankSeparated(
        _SWF_COMMENT.sub(b"", read_text(path)), path, FIELDS, wanted=("wait time",), hint=""
    )
    wait = rows.numbers("wait time")
    found: list[int] = rows.line[(wait < 0) & (wait != _UNKNOWN)].tolist()
    return found


def _table_lines(path: Path) -> list[int]:
    import polars as pl

    text = read_text(path)
    header = text[: text.find(b"\n")].decode("utf-8", errors="replace")
    separator = max(_SEPARATORS, key=header.count)
    names = [name.strip().strip('"') for name in header.split(separator)]
    pair = next((pair for pair in _PAIRS if set(pair) <= set(names)), None)
    if pair is None:
        return []
    try:
        table = pl.read_csv(
            io.BytesIO(text),
            separator=separator,
            columns=[names.index(name) for name in pair],
            infer_schema=False,
            encoding="utf8-lossy",
            truncate_ragged_lines=True,
            quote_char=None if separator == "|" else '"',
        )
    except (pl.exceptions.PolarsError, ValueError):
        return []
    by_name = {name.strip(): name for name in table.columns}
    submit, start = (_seconds(table[by_name[name]]) for name in pair)
    early = ((start < submit) & (start > 0)).fill_null(value=False).to_numpy()
    return (np.flatnonzero(early) + 2).tolist()


def _seconds(text: pl.Series) -> pl.Series:
    """Return times as seconds, in whichever of the usual forms they are; null = not known."""
    import polars as pl

    numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
    if numbers.null_count() < len(text):
        return numbers
    parsed = (unix_seconds(text, pattern) for pattern in _DATES)
    return min(parsed, key=lambda seconds: seconds.null_count())
