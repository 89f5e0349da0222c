"""Trace files of the Gavel simulator: jobs as numbers of steps, separated by tabs, no header.

There are two layouts, distinguished by the number of cells. A job has a type, a number of steps, an
arrival in seconds and a scale factor (its GPUs); the run time is steps / throughput, and the
throughput depends on the job's type, the scale factor and the GPU. It is not in the file, so a
table of throughputs must be given: one of Gavel's own JSON files, such as its
`oracle_throughputs`, or a CSV with the columns `job_type`, `scale_factor` and `steps_per_second`.
Without it the file is refused, because run times cannot be guessed.

Gavel computed the steps of these files from run times on a V100, so its own table for that GPU
gives the original run times. Run times are on the GPU whose throughputs are used. The weight of a
job is its priority. Commands and service level objectives are not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import TraceError
from berthline.model.gpu_types import GPU_TYPES, RECORDED, canonical_name
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, cell_rows
from berthline.traces.formats.gavel_throughputs import DEFAULT_GPU, read_throughputs
from berthline.traces.formats.row_filter import (
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    choose_rows,
    row_facts,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name, is_binary, read_head
from berthline.traces.reading.quoted import shorten
from berthline.traces.reading.text_columns import count_values, distinct_rows

if TYPE_CHECKING:
    import os

_SHORT = (
    *("job type", "command", "steps argument", "needs data", "total steps", "arrival"),
    "scale factor",
)
_LONG = (
    *("job type", "command", "directory", "steps argument", "needs data", "total steps"),
    *("scale factor", "priority weight", "objective", "arrival"),
)
LAYOUTS = {len(columns): columns for columns in (_SHORT, _LONG)}
"""The columns of a file, by their number."""

OPTIONS = {
    "throughputs": "one of Gavel's throughput files (JSON), or a CSV with job_type, scale_factor "
    "and steps_per_second",
    "gpu": f"the GPU whose throughputs to use from Gavel's file; {DEFAULT_GPU} if not given",
}
_NUMERIC = ("needs data", "total steps", "scale factor", "arrival")
_NO_THROUGHPUT = "cannot run on that GPU: throughput 0"
_MOST = 2**31 - 1
_LONGEST = 1e12  # seconds


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is a Gavel trace, by the number of cells and the numbers in them."""
    rows = [] if is_binary(head) else cell_rows(head, separator="\t")
    return Match.CERTAIN if rows and all(_is_row(row) for row in rows) else Match.NO


def read(
    path: Path, *, throughputs: str | os.PathLike[str] | None = None, gpu: str = DEFAULT_GPU
) -> Workload:
    """Return the jobs of a Gavel trace.

    Provenance, besides what `load_trace` lists: `job_types` (rows by type), `throughputs` (the name
    of the table) and `gpu`.

    Args:
        path: the file.
        throughputs: the table of throughputs, see the module.
        gpu: the GPU whose throughputs to use, if the table has several GPUs.

    Raises:
        TraceError: the file cannot be read, there is no table of throughputs, a throughput is
            missing in it, a cell is invalid, or no row is usable.
    """
    import polars as pl

    first = next(iter(cell_rows(read_head(path), separator="\t")), [])
    columns = LAYOUTS.get(len(first), _SHORT)
    table = CsvTable(
        path,
        columns=columns,
        exact=True,
        numbers=("arrival", "total steps", "scale factor", "priority weight"),
        words=("job type",),
        separator="\t",
        quote=None,
    )
    submit = table.numbers("arrival")
    steps = table.numbers("total steps")
    gpus = table.numbers("scale factor", lowest=-1, highest=_MOST, whole=True)
    weighted = "priority weight" in columns
    priority = table.numbers("priority weight") if weighted else np.zeros(len(table))
    if throughputs is None:
        raise TraceError(
            "the file has steps but no run times",
            where=str(path),
            expected="the option throughputs: " + OPTIONS["throughputs"],
            hint="run time = total steps / throughput of the job's type and scale factor",
        )
    speeds = read_throughputs(Path(throughputs), gpu)
    codes, kinds = distinct_rows([table.text("job type"), gpus])
    for code, key in enumerate(kinds):
        if key not in speeds and key[1] > 0:
            raise TraceError(
                f"the table has no throughput for {shorten(key[0])} on {key[1]:g} GPUs",
                where=f"{path}, line {table.line_of(int(np.argmax(codes == code)))}",
                expected=f"an entry for it in {throughputs}",
            )
    speed = np.array([speeds.get(key, 0.0) for key in kinds])[codes]
    run = np.divide(steps, speed, out=np.zeros(len(table)), where=speed > 0)
    table.refuse(pl.Series(run > _LONGEST), "total steps", f"a run time of up to {_LONGEST:g} s")
    used, dropped = choose_rows(
        {
            NO_SUBMIT_TIME: submit < 0,
            NO_GPUS: gpus <= 0,
            _NO_THROUGHPUT: speed <= 0,
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="an arrival of 0 or more, steps, a scale factor and a throughput of more than 0",
    )
    provenance: dict[str, Any] = {
        **row_facts("gavel", path, used, dropped, origin=None, zone=None),
        "job_types": count_values(table.text("job type")),
        "throughputs": Path(throughputs).name,
        "gpu": gpu,
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        priority=priority[used],
        reference_type=_reference_type(gpu),
        name=bare_name(path, ".trace", ".tsv", ".txt"),
        provenance=provenance,
    )


def _reference_type(gpu: str) -> str:
    """Return the GPU type that run times are on; `recorded` if this GPU is unknown."""
    name = canonical_name(gpu)
    return name if name in GPU_TYPES else RECORDED


def _is_row(cells: list[str]) -> bool:
    columns = LAYOUTS.get(len(cells))
    if columns is None:
        return False
    try:
        numbers = [float(cells[columns.index(name)]) for name in _NUMERIC]
    except ValueError:
        return False
    return numbers[0] in (0, 1)
