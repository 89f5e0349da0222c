"""Slurm accounting as `sacct -P` (or `-p`) prints it: text with `|` between the cells.

Columns may be in any order. Required are `JobID` (or `JobIDRaw`), `Submit`, `AllocTRES` or
`ReqTRES` for the GPUs, and `ElapsedRaw`, `Elapsed`, or `Start` and `End`. `State`, `User`,
`Partition` (the pool), `Timelimit` and the CPUs and memory in the TRES are used if present. A good
export is

    sacct -aXP -S 2024-01-01 -o JobID,User,Partition,State,Submit,ElapsedRaw,Timelimit,AllocTRES

Rows of job steps (`123.batch`) are left out, because their job has its own row. An array task and a
component of a heterogeneous job (`123+1`) are jobs. After `sacct -D` a requeued job has a row for
every run; each is a job. Run time is the elapsed time, which is correct even when clocks change.
GPUs, CPUs and memory are those allocated, else those requested. The GPU type that was allocated is
the one that the run time holds on; it does not constrain the job. Jobs without GPUs are left out
unless `cpu_jobs="keep"`. Times are the cluster's local time; the text does not contain the zone, so
an option sets it (or use Unix times: SLURM_TIME_FORMAT=%s).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.recorded_types import recorded_types
from berthline.traces.formats.row_filter import (
    CANCELLED,
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    RUNNING_JOBS_OPTION,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.formats.slurm import slurm_fields
from berthline.traces.formats.slurm.sacct_lines import SacctLines
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.dates import ZONE_OPTION, check_zone
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import number_pools
from berthline.traces.reading.text_columns import (
    among,
    categorize,
    count_codes,
    count_repeated,
    without,
)

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

STEP = "step of a job that has a row of its own"

_NEEDED = ("JobID", "Submit")
_WORDS = (
    "User",
    "Account",
    "Partition",
    "State",
    "Timelimit",
    "Elapsed",
    "AllocTRES",
    "ReqTRES",
    "NodeList",
)
_DATE = "%Y-%m-%dT%H:%M:%S"
_NO_TIME = ("Unknown", "None", "N/A", "NONE")
_NO_LIMIT = ("UNLIMITED", "Partition_Limit", "INVALID", "Unknown", "None", "N/A")
_HINT = "export: sacct -aXP -o JobID,User,Partition,State,Submit,ElapsedRaw,Timelimit,AllocTRES"

OPTIONS = {**ZONE_OPTION, **CPU_JOBS_OPTION, **RUNNING_JOBS_OPTION}


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a sacct text."""
    del path  # only the content counts
    names = {name.lower() for name in header_cells(head, "|")}
    has_id = bool({"jobid", "jobidraw"} & names)
    return Match.CERTAIN if has_id and "submit" in names else Match.NO


def lists_nodes(head: bytes, path: Path) -> bool:
    """Return whether the text has a column of node lists."""
    del path  # only the content counts
    return "nodelist" in {name.lower() for name in header_cells(head, "|")}


def read(
    path: Path,
    *,
    time_zone: str | None = None,
    cpu_jobs: str = "drop",
    running_jobs: str = "drop",
) -> Workload:
    """Return the jobs of a sacct text.

    Provenance, besides what `load_trace` lists: `origin_local_time` (of the first job used, on the
    cluster's clock, if its zone is not known), `status` (rows by state, without steps), `gpu_types`
    (jobs used by allocated GPU type, if named), `repeated_ids` (jobs used that have the id of
    another job), `mended_lines` (lines with `|` inside a name) and `cpu_jobs` (jobs used that need
    no GPU).

    Args:
        path: the file.
        time_zone: the zone of the cluster's clock, such as `"Europe/Berlin"`; None = not known:
            when clocks change, an hour may be missing between jobs, or occur twice.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.
        running_jobs: "drop" leaves out jobs that were still running when the text was made, "keep"
            uses their run time until then.

    Raises:
        ConfigError: the zone, or the setting of `cpu_jobs` or `running_jobs`, is unknown.
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs, running_jobs=running_jobs)
    rows = _Rows(path, check_zone(time_zone))
    used, dropped = rows.choose(cpu_jobs=cpu_jobs, running_jobs=running_jobs)
    return rows.workload(used, dropped)


class _Rows:
    """The rows of a sacct text, as columns: times and allocated resources."""

    def __init__(self, path: Path, zone: str | None) -> None:
        """Read the text at `path`, whose times are on the clock of `zone`."""
        self._path, self._zone = path, zone
        lines = SacctLines(path)
        self._table = table = CsvTable(
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
        self._mended_lines = lines.mended
        self._state, self._states = _states(table)
        self._submit, self._is_unix = _times(table, "Submit", zone)
        self._start, _ = _times(table, "Start", zone)
        self._end, _ = _times(table, "End", zone)
        self._tres_code, self._tres = tres_code, tres = _tres(table, path)
        self._run = _run_time(table, self._start, self._end, path)
        self._gpus = slurm_fields.tres_gpus(tres)[tres_code]
        self._cpus = slurm_fields.tres_cpus(tres)[tres_code]
        self._memory_mib = slurm_fields.tres_memory_mib(tres)[tres_code]
        most = slurm_fields.MOST
        table.refuse(self._gpus > most, _tres_name(table), f"up to {most} GPUs")
        table.refuse(self._cpus > most, _tres_name(table), f"up to {most} CPUs")
        self._is_step = table.text("JobID").fill_null("").str.contains(".", literal=True).to_numpy()
        is_running = among(self._state, self._states, slurm_fields.RUNNING_STATES)
        self._is_running = is_running | self._is_unknown("End", self._end)

    def choose(
        self, *, cpu_jobs: str, running_jobs: str
    ) -> tuple[npt.NDArray[np.bool_], dict[str, int]]:
        """Return which rows are used as jobs, and how many are dropped, by reason."""
        is_cancelled = among(self._state, self._states, slurm_fields.CANCELLED_STATES)
        is_waiting = among(self._state, self._states, slurm_fields.WAITING_STATES)
        not_started = self._is_unknown("Start", self._start)
        has_not_run = ~(self._run > 0)
        return choose_rows(
            {
                STEP: self._is_step,
                CANCELLED: is_cancelled & (not_started | has_not_run),
                NEVER_STARTED: is_waiting | not_started,
                NOT_FINISHED: self._is_running & (running_jobs == "drop"),
                NO_SUBMIT_TIME: np.isnan(self._submit),
                **without_gpus(cpu_jobs, self._gpus, self._cpus, self._memory_mib),
                NO_RUN_TIME: has_not_run,
            },
            path=self._path,
            expected="a Submit, a run time and gres/gpu of more than 0",
        )

    def workload(self, used: npt.NDArray[np.bool_], dropped: dict[str, int]) -> Workload:
        """Return the rows used as jobs."""
        table = self._table
        user, user_names = categorize(_optional(table, "User", used))
        pool, pool_names = number_pools(_optional(table, "Partition", used))
        history = self._history(used)
        ran_on, ran_on_types = recorded_types(history)
        return Workload.from_columns(
            submit=self._submit[used],
            run=self._run[used],
            gpus=self._gpus[used],
            estimate=_limit(table)[used],
            cpus=self._cpus[used],
            memory_mib=self._memory_mib[used],
            user=user,
            user_names=user_names,
            pool=pool,
            pool_names=pool_names,
            ran_on=ran_on,
            ran_on_types=ran_on_types,
            reference_type=RECORDED,
            names=table.labels("JobID", rows=used),
            history=history,
            name=bare_name(self._path, ".txt"),
            provenance=self._provenance(used, dropped),
        )

    def _history(self, used: npt.NDArray[np.bool_]) -> History:
        """Return the data of the used rows that a simulation does not need."""
        table = self._table
        priority = nodes = None
        node_lists: tuple[str, ...] = ()
        if "Priority" in table.columns:
            priority = table.numbers("Priority", lowest=0, missing=np.nan, empty=_NO_TIME)[used]
        if "NodeList" in table.columns:
            nodes, node_lists = number_pools(
                without(table.text("NodeList", rows=used), *slurm_fields.NO_NODES)
            )
        group, group_names = number_pools(_optional(table, "Account", used))
        of_text, type_names = slurm_fields.gpu_type_codes(self._tres)
        eligible, _ = _times(table, "Eligible", self._zone)
        return History(
            start=self._start[used],
            eligible=eligible[used],
            running=self._is_running[used],
            priority=priority,
            nodes=nodes,
            node_lists=node_lists,
            gpu_type=of_text[self._tres_code[used]],
            gpu_type_names=type_names,
            status=self._state[used] if "State" in table.columns else None,
            status_names=self._states if "State" in table.columns else (),
            group=group,
            group_names=group_names,
        )

    def _provenance(
        self, used: npt.NDArray[np.bool_], dropped: dict[str, int]
    ) -> dict[str, object]:
        origin = float(self._submit[used].min())
        has_dates = self._is_unix or self._zone is not None
        facts = row_facts(
            "slurm-sacct",
            self._path,
            used,
            dropped,
            origin=origin if has_dates else None,
            zone=self._zone,
        )
        jobs_by_tres = np.bincount(self._tres_code[used], minlength=len(self._tres))
        return {
            **facts,
            "origin_local_time": None if has_dates else origin,
            "status": count_codes(self._state[~self._is_step], self._states),
            "gpu_types": slurm_fields.gpu_types(self._tres, jobs_by_tres),
            "repeated_ids": count_repeated(self._table.text("JobID", rows=used)),
            "mended_lines": self._mended_lines,
            "cpu_jobs": int((used & (self._gpus == 0)).sum()),
        }

    def _is_unknown(self, name: str, times: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which rows lack a time; none of them if the text has no such column."""
        if name not in self._table.columns:
            return np.zeros(len(times), np.bool_)
        return np.isnan(times)


def _optional(table: CsvTable, name: str, used: npt.NDArray[np.bool_]) -> pl.Series:
    """Return a column as text, for the rows used; all null if the table lacks the column."""
    import polars as pl

    if name in table.columns:
        return table.text(name, rows=used)
    return pl.repeat(None, int(used.sum()), dtype=pl.String, eager=True)


def _states(table: CsvTable) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the states as codes and names, without suffixes, as in `CANCELLED by 1000`."""
    if "State" not in table.columns:
        return np.zeros(len(table), np.int32), ("unknown",)
    codes, written = table.categories("State", missing="")
    words = [re.match(r"[A-Za-z_]+", text) for text in written]
    return codes, tuple(word[0].upper() if word else "unknown" for word in words)


def _times(table: CsvTable, name: str, zone: str | None) -> tuple[npt.NDArray[np.float64], bool]:
    """Return a column of times in seconds, NaN = missing, and whether they are Unix times."""
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
    """Return the time limits in seconds; NaN = none."""
    if "Timelimit" in table.columns:
        limit = _durations(table, "Timelimit", _NO_LIMIT)
    elif "TimelimitRaw" in table.columns:
        limit = 60.0 * table.numbers("TimelimitRaw", lowest=0, missing=0.0, empty=_NO_LIMIT)
    else:
        limit = np.zeros(len(table))
    return np.where(limit > 0, limit, np.nan)


def _durations(table: CsvTable, name: str, empty: tuple[str, ...]) -> npt.NDArray[np.float64]:
    """Return a column of durations such as `1-00:00:00` in seconds; 0 = missing."""
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
