"""Stretches: when jobs ran and what they held, from each start to the next finish or preemption.

A job that is never preempted runs in one stretch. The last stretch of a job that is running when
the log ends stops there.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from berthline.model.schedule import FINISH, PREEMPT, WHOLE_GPUS
from berthline.model.workload import WHOLE_GPU, FloatColumn, IntColumn

if TYPE_CHECKING:
    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

Clock = Callable[[FloatColumn], FloatColumn]
"""Maps times to an accumulated quantity instead of seconds, such as the integral of a price."""

_STRETCHES_PER_CHUNK = 65_536


@dataclasses.dataclass(frozen=True, eq=False)
class Stretches:
    """The stretches in which jobs ran, in the order of the log.

    Attributes:
        job: its job.
        begin: time of its start or resume.
        stop: time of the preemption or finish that ended it, or the end of the log.
        first: its first allocation row; one more at the end, so that the rows of stretch `i` are
            `first[i]` to `first[i + 1] - 1`.
        waited_again: total seconds from every preemption to the next resume, or to the end of the
            log.
    """

    job: IntColumn  # (num_stretches,)
    begin: FloatColumn  # (num_stretches,)
    stop: FloatColumn  # (num_stretches,)
    first: IntColumn  # (num_stretches + 1,)
    waited_again: float


class Shares(NamedTuple):
    """What stretches held on single nodes: some allocation rows with their times."""

    job: IntColumn
    node: IntColumn
    amount: FloatColumn
    """GPUs: 0.25 for a quarter of one, 0 for a job without GPUs."""
    begin: FloatColumn
    stop: FloatColumn

    def gpu_seconds(self, clock: Clock | None = None) -> FloatColumn:
        """Return amount x time of each row, in seconds or in units of `clock`."""
        if clock is None:
            return (self.stop - self.begin) * self.amount
        return (clock(self.stop) - clock(self.begin)) * self.amount


def stretches(log: Schedule, table: JobTable, clock: Clock | None = None) -> Stretches:
    """Return the stretches in which jobs ran.

    Args:
        log: the run's log.
        table: from `job_table`.
        clock: what `waited_again` counts instead of seconds.
    """
    rows = np.flatnonzero(log.is_start)
    job = log.job[rows]
    stop = np.fmin(table.finish[job], table.end)
    waited_again = _stop_at_preemptions(stop, rows, log, table, clock)
    return Stretches(
        job=job,
        begin=log.time[rows],
        stop=stop,
        first=np.append(log.detail[rows], np.int32(len(log.alloc_node))),
        waited_again=waited_again,
    )


def shares(log: Schedule, workload: Workload, ran: Stretches) -> Iterator[Shares]:
    """Yield the allocation rows with the times of their stretches, in chunks to bound memory."""
    has_parts = bool((log.alloc_slot != WHOLE_GPUS).any())
    for begin in range(0, len(ran.job), _STRETCHES_PER_CHUNK):
        part = slice(begin, begin + _STRETCHES_PER_CHUNK)
        job, start, stop = ran.job[part], ran.begin[part], ran.stop[part]
        bounds = ran.first[begin : begin + len(job) + 1]
        counts = np.diff(bounds)
        if (counts != 1).any():
            job, start = np.repeat(job, counts), np.repeat(start, counts)
            stop = np.repeat(stop, counts)
        rows = slice(bounds[0], bounds[-1])
        amount = log.alloc_gpus[rows].astype(np.float64)
        if has_parts:
            of_one = log.alloc_slot[rows] != WHOLE_GPUS
            amount[of_one] = workload.gpu_milli[job[of_one]] / WHOLE_GPU
        yield Shares(job, log.alloc_node[rows], amount, start, stop)


def _stop_at_preemptions(
    stop: FloatColumn,
    start_rows: npt.NDArray[np.intp],
    log: Schedule,
    table: JobTable,
    clock: Clock | None,
) -> float:
    """Correct the stops of preempted jobs; return how long they waited afterwards."""
    preempted = log.kind == PREEMPT
    if not preempted.any():
        return 0.0
    often = np.zeros(len(table.status), dtype=np.bool_)
    often[log.job[preempted]] = True
    rows = np.flatnonzero(log.is_start | preempted | (log.kind == FINISH))
    rows = rows[often[log.job[rows]]]
    rows = rows[np.argsort(log.job[rows], kind="stable")]
    job, time, kind = log.job[rows], log.time[rows], log.kind[rows]
    # Starts and stops of a job alternate: the event after a start stops it, the event after a
    # preemption is the next start.
    until = np.full(len(rows), table.end)
    np.copyto(until[:-1], time[1:], where=job[1:] == job[:-1])
    is_start = (kind != PREEMPT) & (kind != FINISH)
    stop[np.searchsorted(start_rows, rows[is_start])] = until[is_start]
    if clock is not None:
        until, time = clock(until), clock(time)
    return float((until - time)[kind == PREEMPT].sum())
