"""Job table: what the log says about each job, and the times that follow from it.

A job is *counted* when it was submitted and not rejected. An unfinished job is *censored* at the
end of the log: it enters with the time it has spent so far.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.schedule import FINISH, PREEMPT, REJECT, RESUME, START, SUBMIT
from berthline.model.workload import FloatColumn

if TYPE_CHECKING:
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

NOT_SUBMITTED, WAITING, RUNNING, COMPLETED, REJECTED = range(5)
STATUSES = ("not submitted", "waiting", "running", "completed", "rejected")

_Scalar = TypeVar("_Scalar", bound=np.generic)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs: submitted = completed + rejected + unfinished."""

    submitted: int
    completed: int
    rejected: int
    unfinished: int


@dataclasses.dataclass(frozen=True, eq=False)
class JobTable:
    """What the log says about each job, in the workload's order.

    Attributes:
        start: when the job first started; NaN = it has not.
        finish: when it finished; NaN = it has not.
        status: NOT_SUBMITTED, WAITING (also after a preemption), RUNNING, COMPLETED or REJECTED
            when the log ends.
        end: when the log ends: the last finish; or the horizon, if it cut something off (a horizon
            after everything changes no metric); or the last event, if jobs are left over without a
            horizon.
        measured: True for the jobs submitted in the measurement window; None = all.
    """

    start: FloatColumn  # (num_jobs,)
    finish: FloatColumn  # (num_jobs,)
    status: npt.NDArray[np.uint8]  # (num_jobs,)
    end: float
    measured: npt.NDArray[np.bool_] | None = None

    @property
    def admitted(self) -> npt.NDArray[np.bool_]:
        """True for the jobs that were submitted and not rejected, in the window or not."""
        admitted: npt.NDArray[np.bool_] = self.status != REJECTED
        admitted &= self.status != NOT_SUBMITTED
        return admitted

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """True for the jobs that metrics cover: admitted, and submitted in the window."""
        return self.admitted if self.measured is None else self.admitted & self.measured

    def of_counted(self, column: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        """Return the counted jobs' rows of a column; no copy when that is all of them."""
        counted = self.counted
        return column if counted.all() else column[counted]


def job_table(
    log: Schedule, workload: Workload, window: MeasurementWindow | None = None
) -> JobTable:
    """Return when each job started and finished and what became of it, from the log alone.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        window: only jobs submitted in it are counted; None = all are.
    """
    num_jobs = len(workload)
    start, finish = np.full(num_jobs, np.nan), np.full(num_jobs, np.nan)
    status = np.full(num_jobs, NOT_SUBMITTED, dtype=np.uint8)
    for kind, reached, times in (
        (SUBMIT, WAITING, None),
        (START, RUNNING, start),
        (PREEMPT, None, None),
        (FINISH, COMPLETED, finish),
        (REJECT, REJECTED, None),
    ):
        if reached is None:
            # A job may be preempted and resumed many times: for repeated indices the last value
            # stays.
            rows = np.flatnonzero((log.kind == PREEMPT) | (log.kind == RESUME))
            status[log.job[rows]] = np.where(log.kind[rows] == PREEMPT, WAITING, RUNNING)
            continue
        rows = np.flatnonzero(log.kind == kind)  # row numbers are faster to index with than a mask
        jobs = log.job[rows]
        status[jobs] = reached
        if times is not None:
            times[jobs] = log.time[rows]
    unfinished = (status == WAITING) | (status == RUNNING)
    if np.isfinite(log.horizon) and (unfinished | (status == NOT_SUBMITTED)).any():
        end = float(log.horizon)
    elif unfinished.any():
        end = float(log.time[-1])
    else:
        end = float(np.fmax.reduce(finish, initial=0.0))
    measured = None if window is None else window.submitted(workload)
    return JobTable(start, finish, status, end, measured)


def job_counts(table: JobTable) -> JobCounts:
    """Return how many jobs were submitted, completed, rejected and left unfinished.

    Formula: numbers of jobs by their last event; submitted is the sum of the other three. Jobs with
    no event in the log (submitted after the horizon) are in none of them. Rejected jobs are in no
    other metric.
    """
    status = table.status if table.measured is None else table.status[table.measured]
    count = np.bincount(status, minlength=len(STATUSES))
    return JobCounts(
        submitted=int(count.sum() - count[NOT_SUBMITTED]),
        completed=int(count[COMPLETED]),
        rejected=int(count[REJECTED]),
        unfinished=int(count[WAITING] + count[RUNNING]),
    )


def completion_times(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the JCT of each counted job (Batsim: `turnaround_time`).

    Formula: finish - submit, in seconds. Unfinished jobs: end - submit. Rejected jobs: left out.
    """
    return _since_submit(table.finish, table, workload)


def waits(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the wait of each counted job (SWF: field 3; Batsim: `waiting_time`).

    Formula: first start - submit, in seconds; waits after a preemption count in the JCT only. Jobs
    not started: end - submit. Rejected jobs: left out.
    """
    return _since_submit(table.start, table, workload)


def makespan(table: JobTable, begin: float = 0.0) -> float:
    """Return the last finish, in seconds from the zero of the workload's clock.

    Formula: last finish - 0. That zero is the first submission of a trace, and the start of the
    generator for a generated workload; the first submission is not subtracted. With unfinished
    jobs: the end of the log, which is a lower bound. Rejected jobs: no effect. 0 when no job is
    counted.

    Args:
        table: from `job_table`.
        begin: begin of the measurement window, from which the time then counts.
    """
    status = table.of_counted(table.status)
    if ((status == WAITING) | (status == RUNNING)).any():
        return table.end - begin
    return float(np.fmax.reduce(table.of_counted(table.finish), initial=begin)) - begin


def _since_submit(instant: FloatColumn, table: JobTable, workload: Workload) -> FloatColumn:
    """Return instant - submit of the counted jobs, with the end where the instant is NaN."""
    values = np.fmin(table.of_counted(instant), table.end)
    values -= table.of_counted(workload.submit)
    return values
