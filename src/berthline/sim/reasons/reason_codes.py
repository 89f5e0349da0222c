"""Reason codes: why a waiting job does not start now.

The codes are stable: programs may rely on them. A reason is specific: a job is WAITING_FOR_GPUS
only if no quota, failed node, pool or lack of CPUs keeps it from GPUs that are free.
"""

from __future__ import annotations

import dataclasses
import enum


class Reason(enum.StrEnum):
    """Why a job does not start now."""

    REJECTED = "REJECTED"
    REQUEUE_DELAY = "REQUEUE_DELAY"
    RETRY_DELAY = "RETRY_DELAY"
    GATE_CLOSED = "GATE_CLOSED"
    QUOTA = "QUOTA"
    NODE_DOWN = "NODE_DOWN"
    CPUS_SHORT = "CPUS_SHORT"
    MEMORY_SHORT = "MEMORY_SHORT"
    FRAGMENTED = "FRAGMENTED"
    POOL_FULL = "POOL_FULL"
    GPU_TYPE_FULL = "GPU_TYPE_FULL"
    WAITING_FOR_GPUS = "WAITING_FOR_GPUS"
    BEHIND_IN_ORDER = "BEHIND_IN_ORDER"
    HEAD_RESERVATION = "HEAD_RESERVATION"
    EARLIER_RESERVATIONS = "EARLIER_RESERVATIONS"
    DECISION_TICK = "DECISION_TICK"
    NOT_CHOSEN = "NOT_CHOSEN"


MEANINGS: dict[Reason, str] = {
    Reason.REJECTED: "it can never run here, and was rejected at submission",
    Reason.REQUEUE_DELAY: "it was preempted, and may not return to the queue yet",
    Reason.RETRY_DELAY: "its start was refused, and is not tried again yet",
    Reason.GATE_CLOSED: "the scheduler's gate is closed for it",
    Reason.QUOTA: "its user or pool holds as many GPUs as the quota allows",
    Reason.NODE_DOWN: "it would fit if no node were down",
    Reason.CPUS_SHORT: "enough GPUs are free for it, but not enough CPUs on their nodes",
    Reason.MEMORY_SHORT: "enough GPUs are free for it, but not enough memory on their nodes",
    Reason.FRAGMENTED: "enough GPUs are free in all, but not together on the nodes it needs",
    Reason.POOL_FULL: "its pool is full; it would fit on nodes of other pools",
    Reason.GPU_TYPE_FULL: "the GPU types it asks for are taken; it would fit on another type",
    Reason.WAITING_FOR_GPUS: "fewer GPUs are free than it needs",
    Reason.BEHIND_IN_ORDER: "another job is ahead of it, and no job may overtake that one",
    Reason.HEAD_RESERVATION: "it fits, but could delay the first job, whose start is reserved",
    Reason.EARLIER_RESERVATIONS: "it fits, but could delay a reserved job ahead of it",
    Reason.DECISION_TICK: "it could start, but no decision is made until the next tick or round",
    Reason.NOT_CHOSEN: "it fits, but the learned policy chose otherwise",
}
"""What each code means, in words."""


@dataclasses.dataclass(frozen=True)
class Finding:
    """Why a job did not start at one instant.

    Attributes:
        reason: the code.
        short: by how much each resource is short: `gpus`, `cpus`, `memory_mib`.
        free_gpus: GPUs free on the nodes the job may use.
        blocker: the job in the way, if it is one job.
        until: when this is known to change: the end of a delay, the next tick, a reservation.
        late: HEAD_RESERVATION: seconds by which the job would end after the reservation.
        value: GATE_CLOSED: what the gate's formula gives (it must be 0 or more).
        fits: whether it fits into what is free now.
        detail: further details, in words.
    """

    reason: Reason
    short: dict[str, float] = dataclasses.field(default_factory=dict)
    free_gpus: float = 0.0
    blocker: int | None = None
    until: float | None = None
    late: float | None = None
    value: float | None = None
    fits: bool = False
    detail: str = ""
