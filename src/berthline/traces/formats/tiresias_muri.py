"""Job lists of the Tiresias and Muri simulators: CSV with run times of training jobs.

Columns of Tiresias: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, more are
allowed. Times are whole seconds from the start of the list; the duration is the run time on GPUs
close together. There are no users, estimates, pools or GPU types. `interval` (the time to the next
job) and `iterations` are redundant and not used.

Muri writes the same columns with times in milliseconds, and adds `batch_size`, `iteration_time`,
`resource_time_0` to `_2` (how long an iteration needs each resource; Muri uses them to interleave
jobs) and `priority`. The added columns are not used: jobs do not share GPUs here, and Muri does not
state which value of `priority` (0 or 1) comes first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from berthline.traces.reading.text_columns import count_values

if TYPE_CHECKING:
    from pathlib import Path

TIRESIAS_COLUMNS = (
    "job_id",
    "num_gpu",
    "submit_time",
    "iterations",
    "model_name",
    "duration",
    "interval",
)
MURI_COLUMNS = (*TIRESIAS_COLUMNS, "iteration_time", "resource_time_0")
_MILLISECONDS = 1000
_MOST_GPUS = 2**31 - 1


def detect_tiresias(head: bytes, path: Path) -> Match:  # noqa: ARG001 - as of every format
    """Return whether a file is a Tiresias job list, by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(TIRESIAS_COLUMNS) == set(header_cells(head)) else Match.NO


def detect_muri(head: bytes, path: Path) -> Match:  # noqa: ARG001 - as of every format
    """Return whether a file is a Muri job list, by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(MURI_COLUMNS) <= set(header_cells(head)) else Match.NO


def read_tiresias(path: Path) -> Workload:
    """Return the jobs of a Tiresias job list.

    Provenance, besides what `load_trace` lists: `models` (rows by model).

    Raises:
        TraceError: the file cannot be read, a cell is invalid, or no row is usable.
    """
    return _read(path, format_name="tiresias", required=TIRESIAS_COLUMNS, units_per_second=1)


def read_muri(path: Path) -> Workload:
    """Return the jobs of a Muri job list; see `read_tiresias`."""
    return _read(path, format_name="muri", required=MURI_COLUMNS, units_per_second=_MILLISECONDS)


def _read(
    path: Path, *, format_name: str, required: tuple[str, ...], units_per_second: int
) -> Workload:
    table = CsvTable(
        path,
        required=required,
        numbers=("submit_time", "duration", "num_gpu"),
        words=("model_name",),
        texts=("job_id",),
    )
    submit = table.numbers("submit_time") / units_per_second
    run = table.numbers("duration") / units_per_second
    gpus = table.numbers("num_gpu", lowest=-1, highest=_MOST_GPUS, whole=True)
    used, dropped = choose_rows(
        {NO_SUBMIT_TIME: submit < 0, NO_RUN_TIME: run <= 0, NO_GPUS: gpus <= 0},
        path=path,
        expected="a submit_time of 0 or more, a duration and num_gpu of more than 0",
    )
    provenance: dict[str, Any] = {
        **row_facts(format_name, path, used, dropped, origin=None, zone=None),
        "models": count_values(table.text("model_name")),
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        reference_type=RECORDED,
        names=table.labels("job_id", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
