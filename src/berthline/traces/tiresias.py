"""Job lists of the Tiresias simulator: CSV with iterations and run times of training jobs.

Columns: `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`, more are allowed.
Times are whole seconds from the start of the list; the duration is the run time on GPUs close
together. There are no users, estimates, pools or GPU types. `interval` (the time to the next job)
and `iterations` say nothing that the times do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.model.workload import Workload
from berthline.traces.csv_table import CsvTable
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name, is_binary
from berthline.traces.text_columns import count_values
from berthline.traces.usable import NO_GPUS, NO_RUN_TIME, NO_SUBMIT_TIME, choose_rows, row_facts

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = ("job_id", "num_gpu", "submit_time", "iterations", "model_name", "duration", "interval")
_MOST_GPUS = 2**31 - 1


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is a Tiresias job list: by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(COLUMNS) == set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a Tiresias job list.

    Provenance, besides what `load_trace` lists: `models` (rows by model).

    Raises:
        TraceError: the file cannot be read, a cell makes no sense, or no row is usable.
    """
    return read_job_list(path, format_name="tiresias", required=COLUMNS, units_per_second=1)


def read_job_list(
    path: Path, *, format_name: str, required: tuple[str, ...], units_per_second: int
) -> Workload:
    """Return the jobs of a list with the columns of Tiresias, whatever the unit of its times.

    Args:
        path: the file.
        format_name: for provenance.
        required: the columns that must be there.
        units_per_second: what to divide times by.

    Raises:
        TraceError: the file cannot be read, a cell makes no sense, or no row is usable.
    """
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
        names=table.labels("job_id", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
