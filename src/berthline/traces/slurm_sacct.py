"""Slurm accounting as `sacct -P` (or `-p`) prints it: text with `|` between the cells.

Any columns in any order; needed are `JobID` (or `JobIDRaw`), `Submit`, `AllocTRES` or `ReqTRES` for
the GPUs, and `ElapsedRaw`, `Elapsed`, or `Start` and `End`. `State`, `User`, `Partition` (the
pool), `Timelimit` and the CPUs and memory among the TRES are used where they are there. A good
export is

    sacct -aXP -S 2024-01-01 -o JobID,User,Partition,State,Submit,ElapsedRaw,Timelimit,AllocTRES

Rows of job steps (`123.batch`) are left out, as their job has a row of its own. An array task and a
component of a heterogeneous job (`123+1`) are jobs. After `sacct -D` a requeued job has a row for
every run; each is a job. Run time is the elapsed time, which is right even when clocks change.
GPUs, CPUs and memory are those allocated, else those requested; GPU types are counted in the
provenance and constrain nothing, as sites name them as they like. Times are the cluster's local
time; the text does not tell the zone, so an option does (or Unix times, by SLURM_TIME_FORMAT=%s).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces import slurm_fields
from berthline.traces.csv_table import CsvTable, categorize, count_values
from berthline.traces.dates import ZONE_OPTION, check_zone
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name, read_text
from berthline.traces.pools import number_pools
from berthline.traces.sacct_lines import mend_lines
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
    from collections.abc import Callable
    from pathlib import Path

    import polars as pl

STEP = "step of a job that has a row of its own"

_NEEDED = ("JobID", "Submit")
_DATE = "%Y-%m-%dT%H:%M:%S"
_NO_TIME = ("Unknown", "None", "N/A", "NONE")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "N/A")
_HINT = "export: sacct -aXP -o JobID,User,Partition,State,Submit,ElapsedRaw,Timelimit,AllocTRES"

OPTIONS = ZONE_OPTION


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is such a text: by its header line."""
    del path  # only the content counts
    names = {name.lower() for name in header_cells(head, "|")}
    has_id = bool({"jobid", "jobidraw"} & names)
    return Match.CERTAIN if has_id and "submit" in names else Match.NO


def read(path: Path, *, time_zone: str | None = None) -> Workload:
    """Return the jobs of a sacct text.

    Provenance, besides what `load_trace` lists: `status` (rows by state, without steps),
    `gpu_types` (jobs used by the type of the GPUs allocated, where named), `repeated_ids` (jobs
    used that have the id of another one) and `mended_lines` (with `|` inside a name).

    Args:
        path: the file.
        time_zone: of the cluster's clock, such as `"Europe/Berlin"`; None = not known, and the
            hour by which clocks change may be missing between jobs, or be there twice.

    Raises:
        ConfigError: there is no such zone.
        TraceError: the file cannot be read, a line makes no sense, or no job is usable.
    """
    zone = check_zone(time_zone)
    text, mended = mend_lines(read_text(path), path)
    table = CsvTable(path, required=_NEEDED, separator="|", quote=None, text=text, hint=_HINT)
    ids = table.text("JobID").fill_null("")
    state = _optional(table, "State").str.extract(r"^([A-Za-z_]+)").str.to_uppercase()
    submit, is_unix = _times(table, "Submit", zone)
    start, _ = _times(table, "Start", zone)
    end, _ = _times(table, "End", zone)
    tres = _tres(table, path)
    run = _run_time(table, start, end, path)
    gpus = _per_distinct(tres, slurm_fields.tres_gpus)
    cpus = _per_distinct(tres, slurm_fields.tres_cpus)
    table.refuse(_large(gpus), _tres_name(table), f"up to {slurm_fields.MOST} GPUs")
    table.refuse(_large(cpus), _tres_name(table), f"up to {slurm_fields.MOST} CPUs")

    is_step = ids.str.contains(r"\.").to_numpy()
    not_started = np.isnan(start) if "Start" in table.columns else np.zeros_like(is_step)
    not_ended = np.isnan(end) if "End" in table.columns else np.zeros_like(is_step)
    used, dropped = choose_rows(
        {
            STEP: is_step,
            CANCELLED: _among(state, slurm_fields.CANCELLED_STATES) & (not_started | ~(run > 0)),
            NEVER_STARTED: _among(state, slurm_fields.WAITING_STATES) | not_started,
            NOT_FINISHED: _among(state, slurm_fields.RUNNING_STATES) | not_ended,
            NO_SUBMIT_TIME: np.isnan(submit),
            NO_GPUS: gpus == 0,
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="a Submit, a run time and gres/gpu of more than 0",
    )
    user, user_names = categorize(_optional(table, "User").filter(used))
    pool, pool_names = number_pools(_optional(table, "Partition").filter(used))
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=_limit(table)[used],
        cpus=cpus[used],
        memory_mib=_per_distinct(tres, slurm_fields.tres_memory_mib)[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        names=table.labels("JobID", rows=used),
        name=bare_name(path, ".txt"),
        provenance={
            "format": "slurm-sacct",
            "path": path.name,
            "rows": len(table),
            "used": int(used.sum()),
            "dropped": dropped,
            "origin_unix_time": float(submit[used].min()) if is_unix or zone else None,
            "time_zone": zone,
            "status": count_values(state.filter(~is_step)),
            "gpu_types": slurm_fields.gpu_types(tres.filter(used)),
            "repeated_ids": int(used.sum()) - ids.filter(used).n_unique(),
            "mended_lines": mended,
        },
    )


def _optional(table: CsvTable, name: str) -> pl.Series:
    """Return a column as text; nothing but nulls where the table lacks it."""
    import polars as pl

    if name in table.columns:
        return table.text(name)
    return pl.Series([None] * len(table), dtype=pl.String)


def _times(table: CsvTable, name: str, zone: str | None) -> tuple[npt.NDArray[np.float64], bool]:
    """Return a column of times in seconds, NaN where there is none, and whether they are Unix's."""
    if name not in table.columns:
        return np.full(len(table), np.nan), False
    first = table.text(name).drop_nulls().head(1)
    if first.str.contains(r"^\d{9,11}$").all() and len(first):
        return table.numbers(name, lowest=0, missing=np.nan, empty=_NO_TIME), True
    return table.times(name, _DATE, empty=_NO_TIME, optional=True, zone=zone), False


def _run_time(
    table: CsvTable,
    start: npt.NDArray[np.float64],
    end: npt.NDArray[np.float64],
    path: Path,
) -> npt.NDArray[np.float64]:
    if "ElapsedRaw" in table.columns:
        return table.numbers("ElapsedRaw", lowest=0, missing=0.0, empty=_NO_TIME)
    if "Elapsed" in table.columns:
        return _durations(table, "Elapsed", _NO_TIME)
    if {"Start", "End"} <= set(table.columns):
        return end - start
    raise TraceError(
        "there is no column for the run time",
        where=f"{path}, line 1",
        expected="ElapsedRaw, Elapsed, or Start and End",
        hint=_HINT,
    )


def _limit(table: CsvTable) -> npt.NDArray[np.float64]:
    """Return the time limits in seconds, NaN where there is none."""
    if "Timelimit" in table.columns:
        limit = _durations(table, "Timelimit", _NO_LIMIT)
    elif "TimelimitRaw" in table.columns:
        limit = 60.0 * table.numbers("TimelimitRaw", lowest=0, missing=0.0, empty=_NO_LIMIT)
    else:
        limit = np.zeros(len(table))
    return np.where(limit > 0, limit, np.nan)


def _durations(table: CsvTable, name: str, empty: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return a column such as `1-00:00:00` in seconds, 0 where there is none."""
    text = table.text(name)
    text = text.set(text.is_in(list(empty)), None)
    seconds = slurm_fields.durations(text)
    table.refuse(
        text.is_not_null() & (seconds.is_null() | (seconds > 1e15)),
        name,
        "a duration such as 1-12:30:00 or 12:30:00",
    )
    return seconds.fill_null(0.0).to_numpy()


def _tres(table: CsvTable, path: Path) -> pl.Series:
    """Return the resources allocated, else those requested."""
    name = _tres_name(table)
    if not name:
        raise TraceError(
            "there is no column with the GPUs of a job",
            where=f"{path}, line 1",
            expected="AllocTRES or ReqTRES",
            hint=_HINT,
        )
    allocated, requested = _optional(table, "AllocTRES"), _optional(table, "ReqTRES")
    return allocated.zip_with(allocated.is_not_null(), requested)


def _tres_name(table: CsvTable) -> str:
    return next((name for name in ("AllocTRES", "ReqTRES") if name in table.columns), "")


def _per_distinct(
    text: pl.Series, function: Callable[[pl.Series], npt.NDArray[np.float64]]
) -> npt.NDArray[np.float64]:
    """Return what a function says about each text, asking it only once about equal ones."""
    import polars as pl

    codes, names = categorize(text, missing="")
    return function(pl.Series(names, dtype=pl.String))[codes]


def _large(values: npt.NDArray[np.float64]) -> pl.Series:
    import polars as pl

    return pl.Series(values > slurm_fields.MOST)


def _among(state: pl.Series, states: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    return state.is_in(list(states)).fill_null(False).to_numpy()
