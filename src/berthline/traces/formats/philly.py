"""Microsoft's Philly trace: the native `cluster_job_log`, one JSON list of jobs.

A job has a status, a virtual cluster, a user, a submission and a list of attempts; an attempt has a
start, an end and the GPUs it used on each machine. The string "None" stands for a missing time.
Dates are local time in the US Pacific zone, clock changes included.

Philly restarts a failed job automatically, so several attempts are one submission. They become one
job here: the run time is the sum of all attempts that have a start and an end. This preserves the
GPU time that the job used. The last attempt alone would lose the work of the others, and the time
from the first start to the last end would count the waiting in between as work. Attempts that lack
a time are counted and add nothing. The GPUs are those of the widest attempt in the sum. A job
whose last attempt has no end was still running when the log was taken, and is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match
from berthline.traces.formats.row_filter import (
    NEVER_STARTED,
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    choose_rows,
    row_facts,
)
from berthline.traces.reading.dates import unix_seconds
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.json_rows import JsonRows
from berthline.traces.reading.request_columns import number_pools
from berthline.traces.reading.text_columns import LONGEST_LABEL, categorize, count_values

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TIME_ZONE = "America/Los_Angeles"
REFERENCE_TYPE = "P100"
"""An assumption, as in the preset: neither the log nor the paper names the model."""

_DATE = "%Y-%m-%d %H:%M:%S"
_KEYS = (b'"jobid"', b'"attempts"', b'"submitted_time"')


class Share(msgspec.Struct, gc=False):
    """The GPUs of an attempt on one machine."""

    gpus: list[str] = []


class Attempt(msgspec.Struct, gc=False):
    """One run of a job."""

    start_time: str | None = None
    end_time: str | None = None
    detail: list[Share] = []


class Job(msgspec.Struct, gc=False):
    """A record of the log."""

    jobid: str
    attempts: list[Attempt]
    submitted_time: str | None = None
    status: str | None = None
    vc: str | None = None
    user: str | None = None


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a JSON list whose first job has the keys of a Philly log."""
    del path  # only the content counts
    is_list = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"[")
    return Match.CERTAIN if is_list and all(key in head for key in _KEYS) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a Philly log; the virtual cluster is the pool.

    Provenance, besides what `load_trace` lists: `status` (jobs by status), `run_time` (how attempts
    become one run time) and `attempts` (counts of attempts and of jobs with several).

    Raises:
        TraceError: the file cannot be read, a job is invalid, or no job is usable.
    """
    import polars as pl

    log = JsonRows(path, Job)
    jobs = log.rows
    counts = np.array([len(job.attempts) for job in jobs])
    owner = np.repeat(np.arange(len(jobs)), counts)
    attempts = [attempt for job in jobs for attempt in job.attempts]
    submit = _times(log, [job.submitted_time for job in jobs], "submitted_time")
    start = _times(log, [attempt.start_time for attempt in attempts], "start_time", owner)
    end = _times(log, [attempt.end_time for attempt in attempts], "end_time", owner)
    width = np.array(
        [sum(len(share.gpus) for share in attempt.detail) for attempt in attempts], dtype=np.int64
    )

    counted = end > start  # false where one is missing
    run = np.bincount(owner[counted], (end - start)[counted], minlength=len(jobs))
    first = np.full(len(jobs), np.inf)
    np.minimum.at(first, owner[counted], start[counted])
    gpus = np.zeros(len(jobs), dtype=np.int64)
    np.maximum.at(gpus, owner[counted], width[counted])
    is_last = np.flatnonzero(np.diff(owner, append=-1))
    unfinished = np.zeros(len(jobs), dtype=np.bool_)
    unfinished[owner[is_last]] = np.isnan(end[is_last]) & ~np.isnan(start[is_last])
    used, dropped = choose_rows(
        {
            NEVER_STARTED: counts == 0,
            NOT_FINISHED: unfinished,
            NO_SUBMIT_TIME: np.isnan(submit),
            NO_RUN_TIME: run <= 0,
            NO_GPUS: gpus == 0,
        },
        path=path,
        expected="a submitted_time, and an attempt with a start_time, a later end_time and GPUs",
    )
    for row in np.flatnonzero([len(job.jobid) > LONGEST_LABEL for job in jobs]).tolist():
        log.refuse(row, "jobid", jobs[row].jobid, f"up to {LONGEST_LABEL} characters")
    kept = [job for job, keep in zip(jobs, used.tolist(), strict=True) if keep]
    user, user_names = categorize(pl.Series([job.user for job in kept], dtype=pl.String))
    pool, pool_names = number_pools(pl.Series([job.vc for job in kept], dtype=pl.String))
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        reference_type=REFERENCE_TYPE,
        names=[job.jobid for job in kept],
        history=History(first[used]),
        name=bare_name(path, ".json"),
        provenance={
            **row_facts(
                "philly", path, used, dropped, origin=float(submit[used].min()), zone=TIME_ZONE
            ),
            "status": count_values(pl.Series([job.status for job in jobs], dtype=pl.String)),
            "run_time": "sum of the attempts that have a start and an end",
            "attempts": {
                "all": len(attempts),
                "without a start or an end": int((np.isnan(start) | np.isnan(end)).sum()),
                "jobs used with several": int((counts[used] > 1).sum()),
                "jobs used whose attempts differ in GPUs": _differing(
                    owner[counted], width[counted], gpus, used
                ),
            },
        },
    )


def _times(
    log: JsonRows[Job],
    dates: Sequence[str | None],
    name: str,
    owner: npt.NDArray[np.int64] | None = None,
) -> npt.NDArray[np.float64]:
    """Return dates as Unix times, NaN if missing; `owner` is the job of each date."""
    import polars as pl

    text = pl.Series(dates, dtype=pl.String)
    text = text.set(text == "None", None)
    seconds = unix_seconds(text, _DATE, TIME_ZONE)
    for at in (text.is_not_null() & seconds.is_null()).arg_true().head(1).to_list():
        row = at if owner is None else int(owner[at])
        log.refuse(row, name, text[at], "a time such as 2017-10-07 01:12:09, or None")
    return seconds.fill_null(np.nan).to_numpy()


def _differing(
    owner: npt.NDArray[np.int64],
    width: npt.NDArray[np.int64],
    gpus: npt.NDArray[np.int64],
    used: npt.NDArray[np.bool_],
) -> int:
    """Return how many of the used jobs have an attempt with fewer GPUs than another."""
    differs = np.zeros_like(used)
    differs[owner[width < gpus[owner]]] = True
    return int((differs & used).sum())
