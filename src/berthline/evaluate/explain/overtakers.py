"""Jobs that started while another one waited, and the values that put them first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.sim.reasons.waiting_order import Valued

if TYPE_CHECKING:
    from berthline.evaluate.explain.job_waits import Wait
    from berthline.sim.inputs import Inputs
    from berthline.sim.reasons.waiting_order import WaitingOrder
    from berthline.sim.simulate import Result


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A start of a job while another one waited.

    Attributes:
        job: its id.
        time: when it started.
        gpu_seconds: what it held on nodes that the waiting job may use, while that job waited.
    """

    job: int
    time: float
    gpu_seconds: float


class Overtaker(msgspec.Struct, frozen=True, kw_only=True):
    """A job that started while another one waited, with the values of both.

    Attributes:
        job: its id.
        time: when it started.
        gpu_seconds: what it held on nodes that the waiting job may use, while that job waited.
        came_later: whether it was submitted after the waiting job.
        is_ahead: whether it was before the waiting job in the order then; otherwise it overtook.
        value: the order's value and terms for it, just before it started.
        own: the same for the job that waited.
    """

    job: int
    time: float
    gpu_seconds: float
    came_later: bool
    is_ahead: bool
    value: Valued
    own: Valued


def started_meanwhile(result: Result, inputs: Inputs, job: int, waits: list[Wait]) -> list[Started]:
    """Return the starts on a job's nodes while it waited, most GPU-seconds first."""
    log, workload = result.log, result.workload
    own = int(inputs.job_class[job])
    borrowed = int(inputs.borrow_class[own])
    may_use = inputs.may_use[own if borrowed < 0 else borrowed]
    found: dict[tuple[int, float], float] = {}
    ran = stretches(log, job_table(log, workload))
    for held in shares(log, workload, ran):
        is_near = may_use[held.node] & (held.job != job)
        for wait in waits:
            rows = np.flatnonzero(is_near & (held.begin >= wait.begin) & (held.begin < wait.end))
            seconds = np.minimum(held.stop[rows], wait.end) - held.begin[rows]
            amounts = (seconds * held.amount[rows]).tolist()
            keys = zip(held.job[rows].tolist(), held.begin[rows].tolist(), strict=True)
            for key, amount in zip(keys, amounts, strict=True):
                found[key] = found.get(key, 0.0) + amount
    starts = [
        Started(job=other, time=time, gpu_seconds=amount) for (other, time), amount in found.items()
    ]
    return sorted(starts, key=lambda start: (-start.gpu_seconds, start.time, start.job))


def overtaker(order: WaitingOrder, job: int, start: Started) -> Overtaker:
    """Return why a job that is about to start comes before one that keeps waiting."""
    return Overtaker(
        job=start.job,
        time=start.time,
        gpu_seconds=start.gpu_seconds,
        came_later=start.job > job,
        is_ahead=order.key(start.job) < order.key(job),
        value=order.valued(start.job),
        own=order.valued(job),
    )
