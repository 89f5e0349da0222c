"""The Alibaba PAI tables, joined into one row per gang."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import TraceError
from berthline.traces.formats.alibaba.pai_tables import (
    COLUMNS,
    INSTANCE,
    JOB,
    MACHINE,
    TASK,
    label_text,
    open_table,
)
from berthline.traces.reading.files import read_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from berthline.traces.reading.csv.csv_table import CsvTable

# The largest values accepted, small enough for their products to fit a workload's columns.
_MOST_INSTANCES = 10**6  # of a task
_MOST_GPU = 10**5  # percent of one, for an instance
_MOST_CPU = 2 * 10**5  # percent of one, for an instance
_MOST_MEMORY = 10**6  # GiB, for an instance

_WANTED = {
    TASK: COLUMNS[TASK],
    INSTANCE: ("job_name", "task_name", "status", "start_time", "end_time"),
    JOB: ("job_name", "user", "status", "start_time", "end_time"),
    MACHINE: ("machine", "gpu_type"),
}

SOURCES = (TASK, INSTANCE, JOB)
"""The tables that gangs can be read from, the best one first."""


class GangTable:
    """Gangs, from the best available table.

    Attributes:
        rows: one row for each gang: job, task (null = none), instances, start and end (seconds,
            null = none), cpu and gpu (percent of one, for an instance), memory (GiB, for an
            instance), type (null = not known), status.
        source: the table they come from.
        path: its file.
        read: the tables read so far.
        assumed: assumptions where a table or a cell is missing, and for how many gangs.
    """

    rows: pl.DataFrame

    def __init__(self, tables: Mapping[str, Path], source: str) -> None:
        """Read the gangs of the table `source`, one of `SOURCES`.

        Raises:
            TraceError: the table cannot be read, or one of its lines is invalid.
        """
        self.source, self.path = source, tables[source]
        self.read: dict[str, str] = {}
        self.assumed: dict[str, int] = {}
        self._tables = tables
        make = {TASK: self._tasks, INSTANCE: self._instances, JOB: self._jobs}[source]
        self.rows = make(self._open(source))

    def keep(self, used: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> None:
        """Leave out the gangs that are not used."""
        import polars as pl

        if not used.all():
            self.rows = self.rows.filter(pl.Series(used))

    def add_jobs(self) -> None:
        """Add `user` (null = not known) and `submit` from the job table, if it exists.

        The publisher calls a job's submission its start_time. For a job that is not in the table,
        the start of the gang is used instead.

        Raises:
            TraceError: the job table cannot be read, or one of its lines is invalid.
        """
        import polars as pl

        nothing = pl.lit(None)
        rows = self.rows.with_columns(
            user=nothing.cast(pl.Categorical), asked=nothing.cast(pl.Float64)
        )
        if JOB in self._tables:
            table = self._open(JOB)
            columns = {
                "job": label_text(table, "job_name"),
                "user": table.text("user"),
                "asked": _seconds(table, "start_time"),
            }
            del table
            at = _places(columns.pop("job"), self.rows["job"])
            known = pl.DataFrame(columns)
            rows = self.rows.with_columns(series.gather(at) for series in known)
        in_time = (pl.col("asked") <= pl.col("start")).fill_null(value=False)
        rows = rows.with_columns(
            submit=pl.when(in_time).then("asked").otherwise("start"), asked_in_time=in_time
        )
        self._assume("submitted when the task started", ~rows["asked_in_time"])
        self._assume("user unknown", rows["user"].is_null())
        self.rows = rows

    def add_machines(self) -> None:
        """Fill in unknown GPU types from the machines that ran the instances.

        Raises:
            TraceError: a table cannot be read, or one of its lines is invalid.
        """
        import polars as pl

        unknown = self.rows.filter(pl.col("type").is_null() & (pl.col("gpu") > 0))
        if len(unknown) and INSTANCE in self._tables and MACHINE in self._tables:
            machines = self._open(MACHINE)
            names, types = machines.text("machine").to_list(), machines.text("gpu_type").to_list()
            type_of = dict(zip(names, types, strict=True))
            self.read[INSTANCE] = self._tables[INSTANCE].name
            wanted = set(zip(unknown["job"].to_list(), unknown["task"].to_list(), strict=True))
            hosts = _hosts(self._tables[INSTANCE], wanted)
            found = pl.DataFrame(
                [(job, task, type_of.get(host)) for (job, task), host in hosts.items()],
                schema={"job": pl.String, "task": pl.Categorical, "host_type": pl.Categorical},
                orient="row",
            )
            self.rows = self.rows.join(
                found, on=["job", "task"], how="left", maintain_order="left"
            ).with_columns(type=pl.coalesce("type", "host_type"))
            still = self.rows.filter(pl.col("type").is_null() & (pl.col("gpu") > 0))
            known_now = len(unknown) - len(still)
            if known_now:
                self.assumed["GPU type of the machine that ran the first instance"] = known_now
        self._assume("any GPU type", self.rows["type"].is_null() & (self.rows["gpu"] > 0))

    def _open(self, name: str) -> CsvTable:
        self.read[name] = self._tables[name].name
        return open_table(name, self._tables[name], _WANTED[name])

    def _assume(self, what: str, where: pl.Series) -> None:
        if where.any():
            self.assumed[what] = int(where.sum())

    def _tasks(self, table: CsvTable) -> pl.DataFrame:
        import polars as pl

        instances = table.numbers(
            "inst_num", lowest=0, highest=_MOST_INSTANCES, whole=True, missing=np.nan
        )
        self._assume("one instance where inst_num is empty", pl.Series(np.isnan(instances)))
        return pl.DataFrame(
            {
                "job": label_text(table, "job_name"),
                "task": label_text(table, "task_name"),
                "instances": np.where(np.isnan(instances), 1.0, instances),
                "start": _seconds(table, "start_time"),
                "end": _seconds(table, "end_time"),
                "cpu": table.numbers("plan_cpu", lowest=0, highest=_MOST_CPU, missing=0),
                "memory": table.numbers("plan_mem", lowest=0, highest=_MOST_MEMORY, missing=0),
                "gpu": table.numbers("plan_gpu", lowest=0, highest=_MOST_GPU, missing=0),
                "type": table.text("gpu_type"),
                "status": table.text("status"),
            }
        )

    def _instances(self, table: CsvTable) -> pl.DataFrame:
        import polars as pl

        cells = pl.DataFrame(
            {
                "job": label_text(table, "job_name"),
                "task": label_text(table, "task_name"),
                "start": _seconds(table, "start_time"),
                "end": _seconds(table, "end_time"),
                "status": table.text("status"),
            }
        )
        gangs = cells.group_by("job", "task", maintain_order=True).agg(
            instances=pl.len().cast(pl.Float64),
            start=pl.col("start").min(),
            # A gang runs until its last instance ends, so all of them must have ended.
            end=pl.when(pl.col("end").null_count() == 0).then(pl.col("end").max()),
            status=pl.col("status").last(),
        )
        everywhere = pl.repeat(value=True, n=gangs.height, eager=True)
        self._assume("one GPU for each instance, for lack of the task table", everywhere)
        return _without_plan(gangs)

    def _jobs(self, table: CsvTable) -> pl.DataFrame:
        import polars as pl

        jobs = pl.DataFrame(
            {
                "job": label_text(table, "job_name"),
                "start": _seconds(table, "start_time"),
                "end": _seconds(table, "end_time"),
                "status": table.text("status"),
            }
        )
        what = "one GPU, and a run time that includes the wait, for lack of the task table"
        self._assume(what, pl.repeat(value=True, n=jobs.height, eager=True))
        return _without_plan(
            jobs.with_columns(task=pl.lit(None, pl.Categorical), instances=pl.lit(1.0))
        )


def _without_plan(gangs: pl.DataFrame) -> pl.DataFrame:
    """Return gangs that request one whole GPU for each instance and nothing else."""
    import polars as pl

    return gangs.with_columns(
        cpu=pl.lit(0.0), memory=pl.lit(0.0), gpu=pl.lit(100.0), type=pl.lit(None, pl.Categorical)
    )


def _seconds(table: CsvTable, name: str) -> pl.Series:
    """Return a column of times, null where there is none."""
    import polars as pl

    values = table.numbers(name, missing=np.nan)
    seconds = pl.Series(name, values)
    return seconds.fill_nan(None) if np.isnan(values).any() else seconds


def _places(known: pl.Series, wanted: pl.Series) -> pl.Series:
    """Return the first position of each wanted text among the known ones; null = none."""
    import polars as pl

    numbers = pl.int_range(len(known), dtype=pl.UInt32, eager=True)
    places = pl.DataFrame({"text": known, "at": numbers}).unique("text", keep="first")
    return pl.DataFrame({"text": wanted}).join(
        places, on="text", how="left", maintain_order="left"
    )["at"]


def _hosts(path: Path, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a machine for each wanted (job, task) for which the instance table has one.

    The table has gigabytes and usually few tasks are wanted, so it is read line by line.

    Raises:
        TraceError: the table cannot be read, or a line has too few cells.
    """
    hosts: dict[tuple[str, str], str] = {}
    columns = COLUMNS[INSTANCE]
    for number, line in enumerate(io.BytesIO(read_text(path)), start=1):
        cells = line.decode("utf-8", errors="replace").strip().split(",")
        if len(cells) < len(columns) and cells != [""]:
            raise TraceError(
                f"the line has {len(cells)} cells",
                where=f"{path}, line {number}",
                expected=f"{len(columns)} cells: " + ", ".join(columns),
            )
        key = (cells[0], cells[1]) if len(cells) > 1 else ("", "")
        if key in wanted and cells[-1]:
            hosts.setdefault(key, cells[len(columns) - 1])
    return hosts
