"""The events of the Google trace of 2011, reduced to one row per task and per job.

The whole trace has 144 million task events, so each part is reduced to its tasks as soon as it is
read, and the reduced parts are merged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.traces.formats.google_2011.google_tables import (
    AFTER_THE_TRACE,
    EVENTS,
    TASK_EVENTS,
    microseconds,
    open_part,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import polars as pl

_SUBMIT, _SCHEDULE = EVENTS.index("submit"), EVENTS.index("schedule")
_ENDS = [EVENTS.index(name) for name in ("evict", "fail", "finish", "kill", "lost")]
_HIGHEST_CLASS = 3


def read_jobs(files: Iterable[Path], table: str) -> tuple[pl.DataFrame, npt.NDArray[np.int64]]:
    """Return the jobs of parts of job_events or task_events, and the number of events by type.

    Columns of the jobs: job (its id), user (null = not known), class, cpu (sum of the requests of
    its tasks, relative to the largest machine; 0 in job_events), submit and schedule (its first
    such events in microseconds; NaN = none), ended (whether its last event, or the last event of
    each of its tasks, is an end), end (microseconds) and ending (the type of its last event).

    Args:
        files: the parts, in order of time.
        table: `job_events` or `task_events`.

    Raises:
        TraceError: a part cannot be read, or one of its lines is invalid.
    """
    import polars as pl

    counts = np.zeros(len(EVENTS), np.int64)
    reduced = []
    for file in files:
        events = _events(file, table)
        counts += np.bincount(events["event"].to_numpy(), minlength=len(EVENTS))
        reduced.append(_by_task(events))
    tasks = pl.concat(reduced)
    if len(reduced) > 1:
        tasks = tasks.group_by("job", "task", maintain_order=True).agg(
            _first_known("user", tasks),
            pl.col("class", "last_event", "last_time").last(),
            pl.col("cpu").max(),
            pl.col("submit", "schedule").min(),
        )
    tasks = tasks.with_columns(
        ended=pl.col("last_event").is_in(_ENDS) & (pl.col("last_time") < AFTER_THE_TRACE)
    )
    return _by_job(tasks, table), counts


def _by_job(tasks: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return one row for each job, from the rows of its tasks."""
    import polars as pl

    if table != TASK_EVENTS:  # a job has only one
        jobs = tasks.rename({"last_time": "end", "last_event": "ending"})
    else:
        jobs = tasks.group_by("job", maintain_order=True).agg(
            _first_known("user", tasks),
            pl.col("class").max(),
            pl.col("cpu").sum(),
            pl.col("submit", "schedule").min(),
            pl.col("ended").all(),
            end=pl.col("last_time").max(),
            ending=pl.col("last_event").sort_by("last_time").last(),
        )
    return jobs.with_columns(pl.col("submit", "schedule").fill_null(np.nan))


def _first_known(name: str, frame: pl.DataFrame) -> pl.Expr:
    """Return the first non-null value of a group; a fast path if the column has no nulls."""
    import polars as pl

    column = pl.col(name)
    return (column.drop_nulls() if frame[name].null_count() else column).first()


def read_cpu(files: Iterable[Path], jobs: pl.Series) -> npt.NDArray[np.float64]:
    """Return the CPU requests of jobs: the sum over their tasks, 0 = not known.

    Args:
        files: the parts of task_events.
        jobs: the ids of the jobs.

    Raises:
        TraceError: a part cannot be read, or one of its lines is invalid.
    """
    import polars as pl

    wanted = pl.DataFrame({"job": jobs.cast(pl.Categorical)})
    reduced = [
        _by_task(_events(file, TASK_EVENTS).join(wanted, on="job", how="semi")) for file in files
    ]
    tasks = pl.concat(reduced).group_by("job", "task").agg(pl.col("cpu").max())
    requests = tasks.group_by("job").agg(pl.col("cpu").sum())
    joined = wanted.join(requests, on="job", how="left", maintain_order="left")
    return joined["cpu"].fill_null(0.0).to_numpy()


def _events(file: Path, table: str) -> pl.DataFrame:
    import polars as pl

    rows = open_part(file, table)
    job = rows.text("job ID")
    if job.null_count():
        rows.refuse(job.is_null(), "job ID", "the id of a job")
    rows.refuse_long("job ID")
    highest = len(EVENTS) - 1
    classes = rows.numbers(
        "scheduling class", lowest=0, highest=_HIGHEST_CLASS, whole=True, missing=0
    )
    is_tasks = table == TASK_EVENTS
    return pl.DataFrame(
        {
            "time": microseconds(rows),
            "job": job,
            # An event of a job counts as an event of its only task.
            "task": rows.text("task index")
            if is_tasks
            else pl.repeat(None, len(rows), dtype=pl.Categorical, eager=True),
            "event": rows.numbers("event type", lowest=0, highest=highest, whole=True).astype("u1"),
            "user": rows.text("user"),
            "class": classes,
            # A fraction of the largest machine.
            "cpu": rows.numbers("CPU request", lowest=0, highest=1, missing=0)
            if is_tasks
            else np.zeros(len(rows)),
        }
    )


def _by_task(events: pl.DataFrame) -> pl.DataFrame:
    """Return one row for each task with its events so far."""
    import polars as pl

    events = events.with_columns(
        submit=pl.when(pl.col("event") == _SUBMIT).then("time"),
        schedule=pl.when(pl.col("event") == _SCHEDULE).then("time"),
    )
    # If all events have the same task, grouping by it would only take time.
    keys = ["job"] if events["task"].null_count() == events.height else ["job", "task"]
    tasks = events.group_by(keys, maintain_order=True).agg(
        _first_known("user", events),
        pl.col("class").last(),
        pl.col("cpu").max(),
        pl.col("submit", "schedule").min(),
        last_event=pl.col("event").last(),
        last_time=pl.col("time").last(),
    )
    if "task" not in keys:
        tasks = tasks.with_columns(task=pl.lit(None, pl.Categorical))
    return tasks.select(
        *("job", "task", "user", "class", "cpu", "last_event", "last_time", "submit", "schedule")
    )
