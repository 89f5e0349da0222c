"""Workloads of Pollux and Sia: CSV with `name,time,application,num_replicas,batch_size`.

These files have no run times: in Pollux and Sia, a job's speed follows from profiles of its
application and from the GPUs it currently has. Here a job needs one run time, so a table of them
must be given: a CSV with the columns `application` and `run_time` (seconds) and, where they matter,
`num_replicas` and `batch_size`. Without it the file is refused, because run times cannot be
guessed.

`num_replicas` are the GPUs (a reasonable fixed choice for the job; Pollux and Sia change it while
the job runs), `time` is the submission in seconds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    choose_rows,
    row_facts,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, is_binary
from berthline.traces.reading.quoted import presentable, shorten
from berthline.traces.reading.text_columns import count_values, distinct_rows

if TYPE_CHECKING:
    import os

COLUMNS = ("name", "time", "application", "num_replicas", "batch_size")
_KEYS = ("application", "num_replicas", "batch_size")

OPTIONS = {
    "run_times": "a CSV of run times: application, run_time (seconds), and num_replicas and "
    "batch_size where they matter"
}
_MOST = 2**31 - 1


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is a workload of Pollux or Sia, by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path, *, run_times: str | os.PathLike[str] | None = None) -> Workload:
    """Return the jobs of a workload of Pollux or Sia.

    Provenance, besides what `load_trace` lists: `applications` (rows by application) and
    `run_times` (the name of the table).

    Args:
        path: the file.
        run_times: the table of run times, see the module.

    Raises:
        TraceError: the file cannot be read, there is no table of run times or a run time is
            missing in it, a cell is invalid, or no row is usable.
    """
    table = CsvTable(
        path,
        required=COLUMNS,
        numbers=("time", "num_replicas", "batch_size"),
        words=("application",),
        texts=("name",),
    )
    submit = table.numbers("time")
    gpus = table.numbers("num_replicas", lowest=-1, highest=_MOST, whole=True)
    if run_times is None:
        raise TraceError(
            "the file has no run times",
            where=str(path),
            expected="the option run_times: " + OPTIONS["run_times"],
            hint="Pollux and Sia derive run times from profiles of "
            + ", ".join(presentable(sorted(count_values(table.text("application"))))),
        )
    run = _run_times(table, Path(run_times))
    used, dropped = choose_rows(
        {NO_SUBMIT_TIME: submit < 0, NO_RUN_TIME: run <= 0, NO_GPUS: gpus <= 0},
        path=path,
        expected="a time of 0 or more, num_replicas and a run time of more than 0",
    )
    provenance: dict[str, Any] = {
        **row_facts("pollux-sia", path, used, dropped, origin=None, zone=None),
        "applications": count_values(table.text("application")),
        "run_times": Path(run_times).name,
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        reference_type=RECORDED,
        names=table.labels("name", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )


def _run_times(jobs: CsvTable, path: Path) -> npt.NDArray[np.float64]:
    """Return the run time of every job, from the table at `path`."""
    table = CsvTable(path, required=("application", "run_time"))
    keys = [name for name in _KEYS if name in table.columns]
    seconds = table.numbers("run_time", lowest=0).tolist()
    known: dict[tuple[Any, ...], float] = {}
    codes, rows = distinct_rows(_key_columns(table, keys))
    for row, code in enumerate(codes.tolist()):
        if known.setdefault(rows[code], seconds[row]) != seconds[row]:
            raise TraceError(
                f"two run times for {_said(keys, rows[code])}",
                where=f"{path}, line {table.line_of(row)}",
                expected="one run time for each " + ", ".join(keys),
            )
    codes, rows = distinct_rows(_key_columns(jobs, keys))
    for code, key in enumerate(rows):
        if key not in known:
            raise TraceError(
                f"the table has no run time for {_said(keys, key)}",
                where=f"{jobs.path}, line {jobs.line_of(int(np.argmax(codes == code)))}",
                expected=f"a row for it in {path}",
            )
    of_each: npt.NDArray[np.float64] = np.array([known[key] for key in rows])[codes]
    return of_each


def _said(keys: list[str], values: tuple[Any, ...]) -> str:
    return ", ".join(f"{key} {shorten(value)}" for key, value in zip(keys, values, strict=True))


def _key_columns(table: CsvTable, keys: list[str]) -> list[Any]:
    """Return the columns that run times are looked up by; numbers as numbers."""
    return [table.text("application"), *(table.numbers(name) for name in keys[1:])]
