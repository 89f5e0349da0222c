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
provenance and constrain nothing, as sites name them as they like. Jobs without GPUs are left out
unless `cpu_jobs="keep"`. Times are the cluster's local time; the text does not tell the zone, so an
option does (or Unix times, by SLURM_TIME_FORMAT=%s).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces import slurm_fields
from berthline.traces.cpu_jobs import CPU_JOBS_OPTION, check_cpu_jobs, without_gpus
from berthline.traces.csv_table import CsvTable
from berthline.traces.dates import ZONE_OPTION, check_zone
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name
from berthline.traces.pools import number_pools
from berthline.traces.running_jobs import RUNNING_JOBS_OPTION, check_running_jobs
from berthline.traces.sacct_lines import SacctLines
from berthline.traces.text_columns import among, categorize, count_codes, count_repeated, without
from berthline.traces.usable import (
    CANCELLED,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    choose_rows,
    row_facts,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

STEP = "step of a job that has a row of its own"

_NEEDED = ("JobID", "Submit")
_WORDS = ("User", "Partition", "State", "Timelimit", "Elapsed", "AllocTRES", "ReqTRES", "NodeList")
_DATE = "%Y-%m-%dT%H:%M:%S"
_NO_TIME = ("Unknown", "None", "N/A", "NONE")
_NO_NODES = ("None assigned", "None", "Unknown", "(null)")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "N/A")
_HINT = "export: sacct -aXP -o JobID,User,Partition,State,Submit,ElapsedRaw,Timelimit,AllocTRES"

OPTIONS = {**ZONE_OPTION, **CPU_JOBS_OPTION, **RUNNING_JOBS_OPTION}


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is such a text: by its header line."""
    del path  # only the content counts
    names = {name.lower() for name in header_cells(head, "|")}
    has_id = bool({"jobid", "jobidraw"} & names)
    return Match.CERTAIN if has_id and "submit" in names else Match.NO


def read(
    path: Path,
    *,
    time_zone: str | None = None,
    cpu_jobs: str = "drop",
    running_jobs: str = "drop",
) -> Workload:
    """Return the jobs of a sacct text.

    Provenance, besides what `load_trace` lists: `origin_local_time` (of the first job used, on the
    cluster's clock, where its zone is not known), `status` (rows by state, without steps),
    `gpu_types` (jobs used by the type of the GPUs allocated, where named), `repeated_ids` (jobs
    used that have the id of another one), `mended_lines` (with `|` inside a name) and `cpu_jobs`
    (jobs used that need no GPU).

    Args:
        path: the file.
        time_zone: of the cluster's clock, such as `"Europe/Berlin"`; None = not known, and the
            hour by which clocks change may be missing between jobs, or be there twice.
        cpu_jobs: "drop" leaves jobs without GPUs out, "keep" does not.
        running_jobs: "drop" leaves jobs out that still ran when the text was made, "keep" takes
            the time they had run until then.

    Raises:
        ConfigError: there is no such zone, or no such setting of `cpu_jobs` or `running_jobs`.
        TraceError: the file cannot be read, a line makes no sense, or no job is usable.
    """
    check_cpu_jobs(cpu_jobs, path)
    check_running_jobs(running_jobs, path)
    zone = check_zone(time_zone)
    lines = SacctLines(path)
    table = CsvTable(
        path,
        required=_NEEDED,
        numbers=("ElapsedRaw", "TimelimitRaw", "Priority"),
        times=dict.fromkeys(("Submit", "Eligible", "Start", "End"), _DATE),
        words=_WORDS,
        texts=("JobID",),
        separator="|",
        quote=None,
        pieces=lines.pieces,
        hint=_HINT,
    )
    mended = lines.mended
    state, states = _states(table)
    submit, is_unix = _times(table, "Submit", zone)
    start, _ = _times(table, "Start", zone)
    end, _ = _times(table, "End", zone)
    held, tres = _tres(table, path)
    run = _run_time(table, start, end, path)
    gpus, cpus = slurm_fields.tres_gpus(tres)[held], slurm_fields.tres_cpus(tres)[held]
    memory = slurm_fields.tres_memory_mib(tres)[held]
    table.refuse(gpus > slurm_fields.MOST, _tres_name(table), f"up to {slurm_fields.MOST} GPUs")
    table.refuse(cpus > slurm_fields.MOST, _tres_name(table), f"up to {slurm_fields.MOST} CPUs")

    ids = table.text("JobID").fill_null("")
    is_step = ids.str.contains(".", literal=True).to_numpy()
    not_started = np.isnan(start) if "Start" in table.columns else np.zeros_like(is_step)
    not_ended = np.isnan(end) if "End" in table.columns else np.zeros_like(is_step)
    is_running = among(state, states, slurm_fields.RUNNING_STATES) | not_ended
    used, dropped = choose_rows(
        {
            STEP: is_step,
            CANCELLED: among(state, states, slurm_fields.CANCELLED_STATES)
            & (not_started | ~(run > 0)),
            NEVER_STARTED: among(state, states, slurm_fields.WAITING_STATES) | not_started,
            NOT_FINISHED: is_running & (running_jobs == "drop"),
            NO_SUBMIT_TIME: np.isnan(submit),
            **without_gpus(cpu_jobs, gpus, cpus, memory),
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="a Submit, a run time and gres/gpu of more than 0",
    )
    user, user_names = categorize(_optional(table, "User", used))
    pool, pool_names = number_pools(_optional(table, "Partition", used))
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=_limit(table)[used],
        cpus=cpus[used],
        memory_mib=memory[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        names=table.labels("JobID", rows=used),
        history=_history(table, zone, start, is_running, tres, held, used),
        name=bare_name(path, ".txt"),
        provenance={
            **row_facts(
                "slurm-sacct",
                path,
                used,
                dropped,
                origin=float(submit[used].min()) if is_unix or zone else None,
                zone=zone,
            ),
            "origin_local_time": None if is_unix or zone else float(submit[used].min()),
            "status": count_codes(state[~is_step], states),
            "gpu_types": slurm_fields.gpu_types(tres, np.bincount(held[used], minlength=len(tres))),
            "repeated_ids": count_repeated(table.text("JobID", rows=used)),
            "mended_lines": mended,
            "cpu_jobs": int((used & (gpus == 0)).sum()),
        },
    )


def _history(
    table: CsvTable,
    zone: str | None,
    start: npt.NDArray[np.float64],
    is_running: npt.NDArray[np.bool_],
    tres: pl.Series,
    held: npt.NDArray[np.int32],
    used: npt.NDArray[np.bool_],
) -> History:
    """Return what the text says of the rows used beyond what a simulation needs."""
    priority = nodes = None
    node_lists: tuple[str, ...] = ()
    if "Priority" in table.columns:
        priority = table.numbers("Priority", lowest=0, missing=np.nan, empty=_NO_TIME)[used]
    if "NodeList" in table.columns:
        nodes, node_lists = number_pools(without(table.text("NodeList", rows=used), *_NO_NODES))
    of_text, type_names = slurm_fields.gpu_type_codes(tres)
    eligible, _ = _times(table, "Eligible", zone)
    return History(
        start=start[used],
        eligible=eligible[used],
        running=is_running[used],
        priority=priority,
        nodes=nodes,
        node_lists=node_lists,
        gpu_type=of_text[held[used]],
        gpu_type_names=type_names,
    )


def _optional(table: CsvTable, name: str, used: npt.NDArray[np.bool_]) -> pl.Series:
    """Return a column as text, for the rows used; only nulls where the table lacks it."""
    import polars as pl

    if name in table.columns:
        return table.text(name, rows=used)
    return pl.repeat(None, int(used.sum()), dtype=pl.String, eager=True)


def _states(table: CsvTable) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the states as codes and their names, without what may follow, as in `CANCELLED by`."""
    if "State" not in table.columns:
        return np.zeros(len(table), np.int32), ("unknown",)
    codes, written = table.categories("State", missing="")
    words = [re.match(r"[A-Za-z_]+", text) for text in written]
    return codes, tuple(word[0].upper() if word else "unknown" for word in words)


def _times(table: CsvTable, name: str, zone: str | None) -> tuple[npt.NDArray[np.float64], bool]:
    """Return a column of times in seconds, NaN where there is none, and whether they are Unix's."""
    if name not in table.columns:
        return np.full(len(table), np.nan), False
    if not table.all_read(name) and re.fullmatch(r"\d{9,11}", table.first_text(name)):
        return table.numbers(name, lowest=0, missing=np.nan, empty=_NO_TIME), True
    return table.times(name, empty=_NO_TIME, optional=True, zone=zone), False


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
    import polars as pl

    codes, written = table.categories(name, missing="")
    text = pl.Series(["" if each in empty else each for each in written], dtype=pl.String)
    seconds = slurm_fields.durations(text)
    bad = ((text != "") & (seconds.is_null() | (seconds > 1e15))).to_numpy()
    if bad.any():
        table.refuse(bad[codes], name, "a duration such as 1-12:30:00 or 12:30:00")
    of_each: npt.NDArray[np.float64] = seconds.fill_null(0.0).to_numpy()[codes]
    return of_each


def _tres(table: CsvTable, path: Path) -> tuple[npt.NDArray[np.int32], pl.Series]:
    """Return the resources allocated, else those requested, as codes of distinct texts."""
    import polars as pl

    columns = [table.text(name) for name in ("AllocTRES", "ReqTRES") if name in table.columns]
    if not columns:
        raise TraceError(
            "there is no column with the GPUs of a job",
            where=f"{path}, line 1",
            expected="AllocTRES or ReqTRES",
            hint=_HINT,
        )
    held = columns[0]
    if len(columns) > 1 and held.null_count():
        held = held.zip_with(held.is_not_null(), columns[1])
    codes, names = categorize(held, missing="")
    return codes, pl.Series(names, dtype=pl.String)


def _tres_name(table: CsvTable) -> str:
    return next((name for name in ("AllocTRES", "ReqTRES") if name in table.columns), "")
