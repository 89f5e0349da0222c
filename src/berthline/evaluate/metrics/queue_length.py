"""Queue length: how many jobs waited, on average and at most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.job_table import waits
from berthline.model.schedule import PREEMPT, REJECT, SUBMIT

if TYPE_CHECKING:
    from berthline.evaluate.metrics.job_table import JobTable
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


class QueueLength(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting jobs, as a time average and at most."""

    mean: float
    max: float


def mean_queue_length(
    table: JobTable,
    workload: Workload,
    waited_again: float,
    window: MeasurementWindow | None = None,
) -> float:
    """Return the time average of the number of waiting jobs over [0, end].

    Formula: (sum of waits + sum of the times from a preemption to the resume) / end; a job in a
    delay after a preemption or a refused start waits. Jobs not running at the end: waiting until
    the end. Rejected jobs: never in the queue. 0 for an empty run.

    Args:
        table: from `job_table`.
        workload: the jobs of that run.
        waited_again: seconds waited after preemptions, from `stretches`.
        window: count only waiting in it, of all jobs; None = over [0, end].
    """
    if window is not None:
        first, last = window.clock(np.array([0.0, table.end])).tolist()
        admitted = table.admitted
        until = window.clock(np.fmin(table.start[admitted], table.end))
        waited = float((until - window.clock(workload.submit[admitted])).sum())
        return (waited + waited_again) / (last - first) if last > first else 0.0
    if not table.end > 0:
        return 0.0
    return (float(waits(table, workload).sum()) + waited_again) / table.end


def max_queue_length(log: Schedule, window: MeasurementWindow | None = None) -> int:
    """Return the largest number of jobs left waiting after the starts of any instant.

    Formula: max over instants of submissions + preemptions - starts - rejections so far. A job
    that starts at the instant of its submission or preemption never counts, nor does a
    rejected one.

    Args:
        log: the run's log.
        window: count only jobs waiting in it, including the queue at its begin; None = the whole
            run.
    """
    if not len(log):
        return 0
    change = (log.kind == SUBMIT).view(np.int8)
    change += (log.kind == PREEMPT).view(np.int8)
    change -= log.is_start.view(np.int8)
    change -= (log.kind == REJECT).view(np.int8)
    waiting = change.cumsum(dtype=np.int32)
    waiting[:-1] *= log.time[1:] != log.time[:-1]  # 0 within an instant, which has no length
    if window is not None:
        later = np.searchsorted(log.time, window.begin, side="right")
        at_begin = waiting[later - 1 : later].max(initial=0)
        return int(waiting[window.has(log.time)].max(initial=at_begin))
    return int(waiting.max())
