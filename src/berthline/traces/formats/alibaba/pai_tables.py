"""The tables of the Alibaba PAI trace (cluster-trace-gpu-v2020): columns, shapes and locations.

The publisher's tables have no header line; their column names are in separate files. A table is
recognised by the shape of its rows, and the other tables by their names in the same directory.
Tables with an added header line are also read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.errors import TraceError
from berthline.traces.formats.detection import Match, cell_rows, match_shapes
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import is_directory, list_files, read_head

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import polars as pl

JOB, TASK, INSTANCE = "pai_job_table", "pai_task_table", "pai_instance_table"
MACHINE = "pai_machine_spec"

COLUMNS: dict[str, tuple[str, ...]] = {
    JOB: ("job_name", "inst_id", "user", "status", "start_time", "end_time"),
    TASK: (
        "job_name",
        "task_name",
        "inst_num",
        "status",
        "start_time",
        "end_time",
        "plan_cpu",
        "plan_mem",
        "plan_gpu",
        "gpu_type",
    ),
    INSTANCE: (
        "job_name",
        "task_name",
        "inst_name",
        "worker_name",
        "inst_id",
        "status",
        "start_time",
        "end_time",
        "machine",
    ),
    MACHINE: ("machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"),
}
"""The columns of each table, as the publisher names them."""

TYPE_NAMES = {"V100": "V100-16"}
"""GPU types under their usual names: the trace also has V100M32, so its V100 has 16 GB."""

_HASH = r"[0-9a-f]{8,}"
_WORD = r"[A-Za-z][\w.-]*"
_NUMBER = r"(\d+(\.\d*)?)?"  # also an empty cell
_SHAPES = {
    "job_name": _HASH,
    "task_name": _WORD,
    "inst_id": f"({_HASH})?",
    "inst_name": f"({_HASH})?",
    "worker_name": f"({_HASH})?",
    "user": f"({_HASH})?",
    "status": "[A-Z][a-z]+",
    "machine": f"({_HASH})?",
    "gpu_type": f"({_WORD})?",
}


_WORDS = ("task_name", "status", "gpu_type", "user")


def recognise(head: bytes) -> tuple[str | None, Match]:
    """Return which table a file is, by the shape of its first rows, and how certain that is."""
    rows = cell_rows(head)
    for name, columns in COLUMNS.items():
        if rows and tuple(rows[0]) == columns:
            return name, Match.CERTAIN if rows[1:] else Match.NAMED
        match = match_shapes(rows, [_SHAPES.get(column, _NUMBER) for column in columns])
        if match:
            return name, match
    return None, Match.NO


def find_tables(path: Path) -> dict[str, Path]:
    """Return the tables in a directory, or a file's own table and the others next to it.

    Raises:
        TraceError: the file cannot be read or is not one of the tables.
    """
    if is_directory(path):
        return tables_in(path)
    name, _ = recognise(read_head(path))
    if name is None:
        # The user chose this file, but its shape is wrong: go by its name, so that the reader can
        # report the reason.
        name = next((known for known in COLUMNS if path.name.startswith(known)), None)
    if name is None:
        raise TraceError(
            "this is not one of the PAI tables",
            where=str(path),
            expected="rows as in " + ", ".join(COLUMNS),
            hint="the tables come without a header line",
        )
    return tables_in(path.parent) | {name: path}


def tables_in(directory: Path) -> dict[str, Path]:
    """Return the tables in a directory that have the publisher's names, gzip'd or not."""
    files = {path.name: path for path in list_files(directory)}
    return {
        name: files[f"{name}.csv{suffix}"]
        for name in COLUMNS
        for suffix in (".gz", "")  # if both exist, the plain file is kept
        if f"{name}.csv{suffix}" in files
    }


def open_table(name: str, path: Path, wanted: Iterable[str] = ()) -> CsvTable:
    """Return a table's rows, with or without an added header line.

    Args:
        name: which table.
        path: its file.
        wanted: the columns that will be used; empty = all.

    Raises:
        TraceError: the file cannot be read, or a line has the wrong number of cells.
    """
    columns = COLUMNS[name]
    hint = f"the columns of {name} are " + ", ".join(columns)
    wanted = tuple(wanted) or columns
    rows = cell_rows(read_head(path), most=1)
    named = bool(rows) and tuple(rows[0]) == columns
    return CsvTable(
        path,
        columns=None if named else columns,
        required=columns if named else (),
        numbers=[column for column in wanted if column not in _SHAPES],
        words=[column for column in wanted if column in _WORDS],
        texts=[column for column in wanted if column in _SHAPES and column not in _WORDS],
        hint=hint,
    )


def label_text(table: CsvTable, name: str) -> pl.Series:
    """Return a column that becomes part of the jobs' names.

    Raises:
        TraceError: a cell is longer than a label may be.
    """
    table.refuse_long(name)
    return table.text(name)
