r"""Slurm's own job table, as a database dump: one column for each field, times in Unix seconds.

The public MIT Supercloud dataset has this form (with more columns, which do not matter). States are
numbers, `timelimit` is minutes with 4294967295 for none, `\N` is null, and resources are lists of
numbers such as `1=4,2=34000,4=1,1002=1`: 1 is CPUs, 2 MiB of memory, and from 1001 on what the site
defined. 1001 and 1002 are taken for GPUs, as at MIT. A job that has both counts the larger one: a
site that tracks all GPUs and one type would otherwise count them twice. Ids in the MIT files are
rounded, so they are not unique.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.workload import Workload
from berthline.traces import slurm_fields
from berthline.traces.csv_table import CsvTable, categorize, count_values
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name, read_head
from berthline.traces.pools import number_pools
from berthline.traces.usable import (
    CANCELLED,
    NEVER_STARTED,
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    choose_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

COLUMNS = (
    "id_job",
    "id_user",
    "partition",
    "state",
    "timelimit",
    "time_submit",
    "time_start",
    "time_end",
    "tres_alloc",
    "tres_req",
)
GPU_RESOURCES = ("1001", "1002")

_NULL = (r"\N", "NULL")
_NO_LIMIT = 4_294_967_294  # and the next number: "not set" and "infinite" in 32 bits
_CPUS, _MEMORY = "1", "2"


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is such a dump: by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if _separator(head) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a dump with commas or tabs; the partition is the pool.

    Provenance, besides what `load_trace` lists: `status` (rows by state), `gpu_resources` (jobs
    used by the number of the resource that is their GPUs) and `repeated_ids` (jobs used that have
    the id of another one).

    Raises:
        TraceError: the file cannot be read, a line makes no sense, or no job is usable.
    """
    table = CsvTable(path, required=COLUMNS, separator=_separator(read_head(path)) or ",")
    submit, start, end = (
        table.numbers(f"time_{name}", lowest=0, whole=True, missing=0.0, empty=_NULL)
        for name in ("submit", "start", "end")
    )
    minutes = table.numbers("timelimit", lowest=0, missing=0.0, empty=_NULL)
    state = table.numbers("state", lowest=0, whole=True, missing=-1, empty=_NULL)
    tres = _tres(table)
    by_resource = {number: _amount(tres, number) for number in GPU_RESOURCES}
    gpus = np.maximum.reduce(list(by_resource.values()))
    cpus, memory = _amount(tres, _CPUS), _amount(tres, _MEMORY)
    for amount in (gpus, cpus):
        table.refuse(_large(amount), "tres_alloc", f"up to {slurm_fields.MOST} GPUs or CPUs")
    run = end - start
    used, dropped = choose_rows(
        {
            CANCELLED: _among(state, slurm_fields.CANCELLED_STATES) & ((start == 0) | (run <= 0)),
            NEVER_STARTED: _among(state, slurm_fields.WAITING_STATES) | (start == 0),
            NOT_FINISHED: _among(state, slurm_fields.RUNNING_STATES) | (end == 0),
            NO_SUBMIT_TIME: submit == 0,
            NO_GPUS: gpus == 0,
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="times of submission, start and end, and 1001 or 1002 among the resources",
    )
    user, user_names = categorize(_ids(table, "id_user", used))
    pool, pool_names = number_pools(_text(table, "partition").filter(used))
    table.labels("id_job", rows=used)  # refuses ids that are too long
    names = _ids(table, "id_job", used).fill_null("").to_list()
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=np.where((minutes > 0) & (minutes < _NO_LIMIT), 60.0 * minutes, np.nan)[used],
        cpus=cpus[used],
        memory_mib=np.where(memory <= slurm_fields.MOST_MEMORY_MIB, memory, 0.0)[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        names=names,
        name=bare_name(path, ".csv"),
        provenance={
            "format": "slurm-database",
            "path": path.name,
            "rows": len(table),
            "used": int(used.sum()),
            "dropped": dropped,
            "origin_unix_time": float(submit[used].min()),
            "time_zone": None,
            "status": count_values(_state_names(state)),
            "gpu_resources": {
                number: count
                for number, amount in by_resource.items()
                if (count := int((amount[used] > 0).sum()))
            },
            "repeated_ids": len(names) - len(set(names)),
        },
    )


def _separator(head: bytes) -> str | None:
    """Return what separates the columns of a dump; None = it is none."""
    return next((mark for mark in ",\t" if set(COLUMNS) <= set(header_cells(head, mark))), None)


def _text(table: CsvTable, name: str) -> pl.Series:
    text = table.text(name)
    return text.set(text.is_in(list(_NULL)), None)


def _tres(table: CsvTable) -> pl.Series:
    """Return the resources allocated, else those requested."""
    allocated = _text(table, "tres_alloc")
    return allocated.zip_with(allocated.is_not_null(), _text(table, "tres_req"))


def _amount(tres: pl.Series, number: str) -> npt.NDArray[np.float64]:
    """Return how much of a resource each job has, 0 = none."""
    import polars as pl

    amount = tres.str.extract(rf"(?:^|,){number}=(\d+)").cast(pl.Float64, strict=False)
    return amount.fill_null(0.0).to_numpy()


def _ids(table: CsvTable, name: str, used: npt.NDArray[np.bool_]) -> pl.Series:
    """Return ids without the `.0` of numbers that went through a table of floats."""
    return _text(table, name).filter(used).str.strip_suffix(".0")


def _state_names(state: npt.NDArray[np.float64]) -> pl.Series:
    import polars as pl

    names = [slurm_fields.STATES.get(int(code), f"state {code:.0f}") for code in state.tolist()]
    return pl.Series(names, dtype=pl.String)


def _large(values: npt.NDArray[np.float64]) -> pl.Series:
    import polars as pl

    return pl.Series(values > slurm_fields.MOST)


def _among(state: npt.NDArray[np.float64], names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return np.isin(state, [code for code, name in slurm_fields.STATES.items() if name in names])
