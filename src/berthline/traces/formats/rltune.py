"""RLTune's job lists: CSV without a header, SWF-like, with a virtual cluster and a GPU type.

`;` starts a comment line, -1 means unknown. There are two layouts: one with 19 columns, where
columns 18 and 19 are the virtual cluster and the GPU type, and one with 20, where one more column
precedes them. The number of cells on the first line determines the layout, and every line must have
the same number.

How columns become jobs: the virtual cluster is the pool, the GPU type is the only one the job may
use, the requested time is the estimate. Rows without a run time are left out (RLTune itself gives
them 10 s and replaces every estimate by the true run time). CPUs, memory, groups, queues,
partitions and dependencies are not used; RLTune does not use them either.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, head_lines
from berthline.traces.formats.row_filter import (
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    choose_rows,
    row_facts,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, is_binary, read_head
from berthline.traces.reading.request_columns import gpu_type_sets, number_pools
from berthline.traces.reading.text_columns import categorize, count_values, without

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_COLUMNS = (
    *("job id", "submit time", "wait time", "run time", "GPUs", "CPU time", "used memory"),
    *("requested CPUs", "requested time", "requested memory", "status", "user", "group"),
    *("executable", "queue", "partition", "preceding job"),
)
_LAST_COLUMNS = ("virtual cluster", "GPU type")
LAYOUTS = {
    19: (*_FIRST_COLUMNS, *_LAST_COLUMNS),
    20: (*_FIRST_COLUMNS, "think time", *_LAST_COLUMNS),
}
"""The columns of a file, by their number."""

GPU_TYPE_CODES = ("T4", "MISC", "P100", "V100-16", "V100-32")
"""The GPU types that the numbers in the column stand for."""

_NUMERIC = ("submit time", "wait time", "run time", "GPUs", "GPU type")
_NUMBER = re.compile(r"[-+]?\d+(\.\d*)?")
_UNKNOWN = "-1"
_MOST_GPUS = 2**31 - 1
_DETECT_ROWS = 20


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is an RLTune job list, by the number of cells and their numbers."""
    rows = [] if is_binary(head) else _rows(head)
    return Match.CERTAIN if rows and all(_is_row(row) for row in rows) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of an RLTune job list.

    Provenance, besides what `load_trace` lists: `layout` (how many columns, and which are the
    virtual cluster and the GPU type) and `status` (rows by status code).

    Raises:
        TraceError: the file cannot be read, a cell is invalid, or no row is usable.
    """
    first = next(iter(_rows(read_head(path))), [])
    columns = LAYOUTS[20 if len(first) == 20 else 19]
    table = CsvTable(
        path,
        columns=columns,
        exact=True,
        numbers=("submit time", "wait time", "run time", "GPUs", "requested time", "GPU type"),
        words=("user", "status", "virtual cluster"),
        texts=("job id",),
        comment=";",
        hint=f"write {_UNKNOWN} where a value is not known",
    )
    submit = table.numbers("submit time", lowest=-1)
    wait = table.numbers("wait time", lowest=-1)
    run = table.numbers("run time", lowest=-1)
    gpus = table.numbers("GPUs", lowest=-1, highest=_MOST_GPUS, whole=True)
    estimate = table.numbers("requested time", lowest=-1)
    gpu_type = table.numbers("GPU type", lowest=-1, highest=len(GPU_TYPE_CODES) - 1, whole=True)
    used, dropped = choose_rows(
        {NO_SUBMIT_TIME: submit < 0, NO_RUN_TIME: run <= 0, NO_GPUS: gpus <= 0},
        path=path,
        expected="a submit time of 0 or more, a run time and GPUs of more than 0",
    )
    user, user_names = categorize(without(table.text("user", rows=used), _UNKNOWN))
    pool, pool_names = number_pools(without(table.text("virtual cluster", rows=used), _UNKNOWN))
    types, type_sets = _gpu_types(gpu_type[used])
    number = len(columns)
    provenance: dict[str, Any] = {
        **row_facts("rltune", path, used, dropped, origin=None, zone=None),
        "layout": f"{number} columns: virtual cluster in column {number - 1}, GPU type in {number}",
        "status": count_values(table.text("status")),
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=np.where(estimate[used] > 0, estimate[used], np.nan),
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        gpu_types=types,
        gpu_type_sets=type_sets,
        reference_type=RECORDED,
        names=table.labels("job id", rows=used),
        history=History((submit + np.where(wait >= 0, wait, np.nan))[used]),
        name=bare_name(path, ".csv", ".txt"),
        provenance=provenance,
    )


def _gpu_types(codes: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the `gpu_types` and `gpu_type_sets` of a workload from RLTune's numbers."""
    import polars as pl

    names = pl.Series([*GPU_TYPE_CODES, None], dtype=pl.String)
    return gpu_type_sets(
        names.gather(np.where(codes < 0, len(GPU_TYPE_CODES), codes).astype(np.int64))
    )


def _rows(head: bytes) -> list[list[str]]:
    """Return the cells of a file's first lines that are not comments."""
    lines = head_lines(head.removeprefix(b"\xef\xbb\xbf"))
    rows = [line for line in lines if not line.startswith(";")][:_DETECT_ROWS]
    return [[cell.strip() for cell in line.split(",")] for line in rows]


def _is_row(cells: list[str]) -> bool:
    columns = LAYOUTS.get(len(cells))
    return columns is not None and all(
        _NUMBER.fullmatch(cells[columns.index(name)]) for name in _NUMERIC
    )
