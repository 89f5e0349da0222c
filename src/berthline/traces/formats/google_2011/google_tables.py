"""The tables of the Google trace (clusterdata-2011-2): columns, shapes, locations of their parts.

Tables have no header line and come in parts, `part-00007-of-00500.csv.gz`, one directory for each
table; a copy may also be one file, `task_events.csv`. A table is recognised by the shape of its
rows. Times are microseconds; 0 means before the trace and 2**63 - 1 after it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from berthline.traces.formats.detection import Match, cell_rows, match_shapes
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import is_directory, list_files, read_head

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

JOB_EVENTS, TASK_EVENTS, MACHINE_EVENTS = "job_events", "task_events", "machine_events"

COLUMNS: dict[str, tuple[str, ...]] = {
    JOB_EVENTS: (
        "timestamp",
        "missing info",
        "job ID",
        "event type",
        "user",
        "scheduling class",
        "job name",
        "logical job name",
    ),
    TASK_EVENTS: (
        "timestamp",
        "missing info",
        "job ID",
        "task index",
        "machine ID",
        "event type",
        "user",
        "scheduling class",
        "priority",
        "CPU request",
        "memory request",
        "disk space request",
        "different machines restriction",
    ),
    MACHINE_EVENTS: ("timestamp", "machine ID", "event type", "platform ID", "CPUs", "Memory"),
}
"""The columns of each table, as the publisher names them."""

EVENTS = (
    "submit",
    "schedule",
    "evict",
    "fail",
    "finish",
    "kill",
    "lost",
    "update pending",
    "update running",
)
"""Names of the event types of jobs and tasks; the number of a type is its position here."""

SECOND = 1e6  # microseconds
AFTER_THE_TRACE = 2.0**63  # microseconds; 2**63 - 1 as a float
_LATEST = 1e15  # microseconds, 31 years: longer than any trace, and still exact as a float

_ID = r"\d+"
_FRACTION = r"(\d+(\.\d*)?([eE]-?\d+)?)?"  # also an empty cell
_TEXT = r".*"
_SHAPES = {
    "timestamp": r"\d+",
    "missing info": r"\d?",
    "job ID": _ID,
    "task index": _ID,
    "machine ID": f"({_ID})?",
    "event type": "[0-8]",
    "user": _TEXT,
    "scheduling class": "[0-3]?",
    "job name": _TEXT,
    "logical job name": _TEXT,
    "priority": r"\d{0,2}",
    "different machines restriction": "[01]?",
    "platform ID": _TEXT,
}
_PART = re.compile(r"part-(\d+)-of-(\d+)\.csv(\.gz)?")


def recognise(head: bytes) -> tuple[str | None, Match]:
    """Return which table a file is, by the shape of its first rows, and how certain that is."""
    rows = cell_rows(head)
    for name, columns in COLUMNS.items():
        match = match_shapes(rows, [_SHAPES.get(column, _FRACTION) for column in columns])
        if match:
            return name, match
    return None, Match.NO


def parts_in(directory: Path, table: str) -> list[Path]:
    """Return the files of a table in the directory of a trace.

    They are the parts in the subdirectory of that name, else a file of that name.
    """
    inner = [path for path in list_files(directory / table) if _PART.fullmatch(path.name)]
    named = (f"{table}.csv", f"{table}.csv.gz")
    return inner or [path for path in list_files(directory) if path.name in named][:1]


def own_parts(directory: Path) -> list[Path]:
    """Return the parts that are in the directory itself."""
    return [path for path in list_files(directory) if _PART.fullmatch(path.name)]


def trace_directory(path: Path) -> Path:
    """Return the directory that contains the other tables.

    Args:
        path: a file of a table, or the directory of a trace or of one table.
    """
    directory = path if is_directory(path) else path.absolute().parent
    return directory.absolute().parent if own_parts(directory) else directory


def parts_of(paths: list[Path]) -> dict[str, int]:
    """Return the number of parts, and the total according to their names (0 = not stated)."""
    names = [_PART.fullmatch(path.name) for path in paths]
    return {"read": len(paths), "of": max((int(name[2]) for name in names if name), default=0)}


def table_name(path: Path) -> str | None:
    """Return which table a file is, or None.

    Raises:
        TraceError: the file cannot be read.
    """
    return recognise(read_head(path))[0]


def open_part(path: Path, table: str) -> CsvTable:
    """Return the rows of one part of a table.

    Raises:
        TraceError: the file cannot be read, or its first line has too few cells.
    """
    columns = COLUMNS[table]
    return CsvTable(
        path,
        columns=columns,
        numbers=("timestamp", "event type", "scheduling class", "CPU request", "CPUs", "Memory"),
        # Ids read as words compare as fast as numbers.
        words=("job ID", "task index", "user"),
        texts=("machine ID", "platform ID") if table == MACHINE_EVENTS else (),
        hint=f"{table} has " + ", ".join(columns),
    )


def microseconds(table: CsvTable) -> npt.NDArray[np.float64]:
    """Return the times of a table's rows; `AFTER_THE_TRACE` is not changed.

    Raises:
        TraceError: a cell is not such a time.
    """
    times = table.numbers("timestamp", lowest=0, highest=AFTER_THE_TRACE, whole=True)
    strange = (times > _LATEST) & (times < AFTER_THE_TRACE)
    table.refuse(strange, "timestamp", "microseconds up to 1e15, or 2^63-1 for after the trace")
    return times
