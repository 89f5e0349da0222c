"""What a forecast may use: the jobs of a snapshot, how far they are, and jobs that have finished.

The run times of jobs that have not finished are replaced here, before anything can read them.
"""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, SimulationError
from berthline.model.schedule import FALLBACK, FINISH, RESUME, START, Schedule
from berthline.model.workload import FloatColumn, Workload
from berthline.model.workload_join import join
from berthline.sim.inputs import prepare
from berthline.sim.native import remember
from berthline.sim.simulate import Result
from berthline.sim.snapshots.take import take_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.snapshot import Snapshot

MOST_FINISHED = 20_000
"""Of jobs that have finished, the last ones are used."""

_UNKNOWN_RUN = 1.0
"""Stands for a run time that is not known; every draw replaces it."""

Jobs = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, eq=False)
class Past:
    """What is known at the instant of a snapshot.

    Attributes:
        now: the instant.
        jobs: the jobs of the snapshot, jobs that are asked about, jobs that have finished.
        submit: when each was submitted; in `jobs`, those after the first are submitted later.
        known: number of jobs of the snapshot.
        asked: number of jobs that are asked about, which are submitted next.
        unknown: jobs of the first two kinds whose run time is not known.
        done: seconds of run time that each of these jobs has completed.
        finished: jobs whose run time is known, by submission.
        seen: jobs submitted until now, by submission; empty = jobs are left out of the snapshot,
            and nothing is known of them.
    """

    now: float
    jobs: Workload
    submit: FloatColumn  # (num_jobs,)
    known: int
    asked: int
    unknown: Jobs
    done: FloatColumn  # (num_unknown,)
    finished: Jobs
    seen: Jobs


def past_of(
    snapshot: Snapshot,
    history: Result | Workload | str | os.PathLike[str] | None,
    asked: Workload | None,
    *,
    knowledge: str,
) -> Past:
    """Return what is known at a snapshot.

    Args:
        snapshot: the instant.
        history: where jobs that have finished are found; see `forecast`.
        asked: jobs to ask about.
        knowledge: under `exact`, run times of the snapshot's jobs are known.

    Raises:
        SimulationError: run times must be known, and are not.
        ConfigError: the history cannot be used.
    """
    workload, now, known = snapshot.workload, snapshot.now, snapshot.num_jobs
    over = np.zeros(known, np.bool_)
    over[snapshot.log.job[snapshot.log.kind == FINISH]] = True
    has_run = over.copy()
    if knowledge == "exact":
        missing = np.flatnonzero(np.isnan(workload.run))
        if len(missing):
            raise SimulationError(
                f"the run time of job {snapshot.number[missing[0]]} is not known",
                where="snapshot",
                expected="run times of all jobs, under knowledge exact",
                hint="use `knowledge=estimate` or predicted",
            )
        has_run[:] = True
    workload = _with(workload, run=np.where(has_run, workload.run, _UNKNOWN_RUN))
    done = _progress(snapshot, workload)
    count = 0 if asked is None else len(asked)
    if asked is not None:
        workload = join(workload, _later(asked, now))
        workload = _with(workload, run=_filled(workload.run, np.arange(known, known + count)))
    finished = _finished(history, snapshot)
    submit = np.concatenate([workload.submit, finished.submit])
    jobs = workload
    if len(finished):
        jobs = join(workload, _later(finished, float(workload.submit.max(initial=now))))
    old = np.arange(known + count, len(jobs))
    unknown = np.concatenate([np.flatnonzero(~has_run), np.arange(known, known + count)])
    with_run = np.concatenate([np.flatnonzero(over), old])
    # Without the jobs that are left out, a repeated past would have too few.
    is_whole = len(finished) > 0 or snapshot.memory.jobs == 0
    seen = np.concatenate([np.arange(known), old]) if is_whole else np.zeros(0, np.intp)
    return Past(
        now=now,
        jobs=jobs,
        submit=submit,
        known=known,
        asked=count,
        unknown=unknown,
        done=np.concatenate([done, np.zeros(count)])[unknown],
        finished=with_run[np.argsort(submit[with_run], kind="stable")],
        seen=seen[np.argsort(submit[seen], kind="stable")],
    )


def _with(workload: Workload, **columns: FloatColumn) -> Workload:
    for column in columns.values():
        column.setflags(write=False)
    return dataclasses.replace(workload, **columns, history=None)  # type: ignore[arg-type]


def _filled(run: FloatColumn, rows: Jobs) -> FloatColumn:
    filled = run.copy()
    filled[rows] = _UNKNOWN_RUN
    return filled


def _later(jobs: Workload, time: float) -> Workload:
    """Return the jobs, submitted one after the other after a time; deadlines move with them."""
    submit = time + 1.0 + np.arange(len(jobs), dtype=np.float64)
    deadline = jobs.deadline + (submit - jobs.submit)
    names = jobs.names
    if names is None:
        names = np.array([f"past {number}" for number in range(len(jobs))], np.str_)
    return dataclasses.replace(_with(jobs, submit=submit, deadline=deadline), names=names)


def _progress(snapshot: Snapshot, workload: Workload) -> FloatColumn:
    """Return the seconds of run time that each job of a snapshot has completed."""
    if not len(workload):
        return np.zeros(0)
    # What a decision needs is not asked for: any scheduler will do, and this one needs least.
    from berthline.policies.scheduler import Scheduler

    at_once = dataclasses.replace(snapshot, workload=workload)
    inputs = prepare(
        workload,
        snapshot.cluster,
        Scheduler.parse("fcfs+skip"),
        knowledge="none",
        seed=snapshot.seed,
        horizon=None,
        start=at_once,
    )
    # Run times that are not known must not end runs: as long as it takes.
    endless = np.full(len(workload), 1e15)
    found = remember(dataclasses.replace(inputs, workload=_with(workload, run=endless)))
    progress, _, since, rate, *_ = found["progress"].T
    runs = np.isin(last_rows(snapshot), (START, RESUME))
    done: FloatColumn = progress + np.where(runs, np.maximum(snapshot.now - since, 0.0) * rate, 0.0)
    return done


def last_rows(snapshot: Snapshot) -> npt.NDArray[np.int64]:
    """Return the kind of the last row about each job of a snapshot, fallbacks aside."""
    log = snapshot.log
    last = np.full(snapshot.num_jobs, -1)
    rows = np.flatnonzero((log.job >= 0) & (log.kind != FALLBACK))
    last[log.job[rows]] = log.kind[rows]
    return last


def _finished(
    history: Result | Workload | str | os.PathLike[str] | None, snapshot: Snapshot
) -> Workload:
    """Return the last jobs that had finished by the instant, without those in the snapshot."""
    if history is None:
        return take_jobs(snapshot.workload, np.zeros(0, np.intp))
    if isinstance(history, (str, os.PathLike)):
        from berthline.runs.open_run import open_run

        run = open_run(history)
        logs: Mapping[str, Schedule] = run.logs
        if len(logs) != 1:
            raise ConfigError(
                "the history has the logs of several schedulers",
                where=str(history),
                expected="the run directory of one run",
            )
        (log,) = logs.values()
        workload = run.workload
        rows = _ended(log, workload, snapshot)
    elif isinstance(history, Workload):
        workload = history
        start = workload.submit if workload.history is None else workload.history.start
        start = np.where(np.isnan(start), workload.submit, start)
        rows = np.flatnonzero(start + workload.run <= snapshot.now)
    elif isinstance(history, Result):
        workload = history.workload
        rows = _ended(history.log, workload, snapshot)
    else:
        raise ConfigError(
            f"history is {history!r}",
            expected="a Result, a Workload of finished jobs, or the path of a run directory",
        )
    return take_jobs(workload, rows[-MOST_FINISHED:])


def _ended(log: Schedule, workload: Workload, snapshot: Snapshot) -> Jobs:
    """Return the jobs of a run that had finished by the instant, by id."""
    over = np.zeros(len(workload), np.bool_)
    over[log.job[(log.kind == FINISH) & (log.time <= snapshot.now)]] = True
    number = snapshot.number
    over[number[(number >= 0) & (number < len(workload))]] = False
    return np.flatnonzero(over)
