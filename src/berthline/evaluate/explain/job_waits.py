"""When a job waited: from its submission, and after every preemption or refusal, until a start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.job_table import job_table
from berthline.model.schedule import (
    FINISH,
    FOR_ANOTHER,
    PREEMPT,
    PREEMPT_REASONS,
    REFUSE,
    REJECT,
    RESUME,
    START,
    SUBMIT,
    TO_MOVE,
)

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.sim.simulate import Result


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """An interval in which a job waited without interruption.

    Attributes:
        begin: seconds on the workload's clock.
        end: when it was started, or the end of the run if it was not.
        after: what began it: `submitted`, `start refused`, or `preempted: ` and why.
        by: the job that it was preempted for, if any.
        back: when it returned to the queue, if that was delayed.
        started: whether a start ended it; else a refusal or the end of the run.
    """

    begin: float
    end: float
    after: str
    by: int | None = None
    back: float | None = None
    started: bool = True

    @property
    def seconds(self) -> float:
        """Length in seconds."""
        return self.end - self.begin


def waits_of(result: Result, job: int) -> list[Wait]:
    """Return when a job waited; a start at the instant of its submission is not a wait."""
    log, conditions = result.log, result.cluster.conditions
    found: list[Wait] = []
    begun: Wait | None = None  # its end is not known yet
    for row in np.flatnonzero(log.job == job).tolist():
        kind, time, detail = int(log.kind[row]), float(log.time[row]), int(log.detail[row])
        if kind == SUBMIT:
            begun = Wait(begin=time, end=time, after="submitted")
        elif kind == PREEMPT:
            delay = 0.0 if detail == TO_MOVE else conditions.requeue_delay
            begun = Wait(
                begin=time,
                end=time,
                after=f"preempted: {PREEMPT_REASONS[detail]}",
                by=_taker(log, row) if detail == FOR_ANOTHER else None,
                back=time + delay if delay else None,
            )
        elif kind in (START, RESUME, REFUSE):
            if begun is not None and time > begun.begin:
                found.append(msgspec.structs.replace(begun, end=time, started=kind != REFUSE))
            begun = None
            if kind == REFUSE:
                delay = conditions.retry_delay
                back = time + delay if delay else None
                begun = Wait(begin=time, end=time, after="start refused", back=back)
        elif kind in (FINISH, REJECT):
            begun = None
    if begun is not None:
        over = job_table(log, result.workload).end
        if over > begun.begin:
            found.append(msgspec.structs.replace(begun, end=over, started=False))
    return found


def _taker(log: Schedule, row: int) -> int | None:
    """Return the job for which another one was preempted: the next that starts."""
    is_start = log.is_start[row:]
    return int(log.job[row + int(is_start.argmax())]) if is_start.any() else None
