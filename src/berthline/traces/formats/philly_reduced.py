"""The reduced table of Microsoft's Philly trace, made by the authors of Pollux and Sia.

One row is one job: `timestamp` (submission), `duration` (seconds), `num_gpus`, `gpu_time` (duration
* num_gpus) and `cluster` (the virtual cluster). Rows are unordered and have no ids, so equal rows
may be different jobs and all of them are kept. Users, status and attempts are lost. Dates are local
time in the zone of the publisher's other files, US Pacific.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.philly import REFERENCE_TYPE
from berthline.traces.formats.row_filter import NO_GPUS, NO_RUN_TIME, choose_rows, row_facts
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import number_pools

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

COLUMNS = ("timestamp", "duration", "num_gpus", "gpu_time", "cluster")
TIME_ZONE = "America/Los_Angeles"

_MOST_GPUS = 2**31 - 1  # the limit of the workload's column


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a reduced Philly table."""
    del path  # only the content counts
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a reduced Philly table; the virtual cluster is the pool.

    Provenance, besides what `load_trace` lists: `repeated_rows` (rows equal to an earlier one;
    they are used too).

    Raises:
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    table = CsvTable(
        path,
        required=COLUMNS,
        numbers=("duration", "num_gpus", "gpu_time"),
        times={"timestamp": "%Y-%m-%d %H:%M:%S"},
        words=("cluster",),
    )
    submit = table.times("timestamp", zone=TIME_ZONE)
    run = table.numbers("duration")
    gpus = table.numbers("num_gpus", lowest=0, highest=_MOST_GPUS, whole=True)
    used, dropped = choose_rows(
        {NO_RUN_TIME: run <= 0, NO_GPUS: gpus == 0},
        path=path,
        expected="a duration and num_gpus of more than 0",
    )
    pool, pool_names = number_pools(table.text("cluster"))
    gpu_time = table.numbers("gpu_time", missing=np.nan)
    repeated = _repeated({"0": submit, "1": run, "2": gpus, "3": gpu_time, "4": pool})
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        pool=pool[used],
        pool_names=pool_names,
        reference_type=REFERENCE_TYPE,
        user_names=("unknown",),
        name=bare_name(path, ".csv"),
        provenance={
            **row_facts(
                "philly-reduced",
                path,
                used,
                dropped,
                origin=float(submit[used].min()),
                zone=TIME_ZONE,
            ),
            "repeated_rows": repeated,
        },
    )


def _repeated(columns: dict[str, npt.NDArray[Any]]) -> int:
    """Return how many rows are equal to an earlier one."""
    import polars as pl

    rows = pl.DataFrame(columns)
    # Only rows with equal hashes can be equal, and they are few.
    alike = rows.filter(rows.hash_rows().is_duplicated())
    return int(alike.height - np.int64(alike.n_unique()))
