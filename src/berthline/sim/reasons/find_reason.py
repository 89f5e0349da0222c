"""Why a waiting job did not start: one reason for each decision point, with its numbers.

Reasons are found by asking the reference simulator's own functions (does it fit, is its gate open,
what does the head's reservation leave) about the state in which the decision ended.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from berthline.model.schedule import PREEMPT
from berthline.sim.multiples import next_multiple
from berthline.sim.reasons.reason_codes import Finding, Reason
from berthline.sim.reasons.shortage import find_shortage, free_gpus, over_quota
from berthline.sim.reasons.waiting_order import WaitingOrder
from berthline.sim.reference_backfilling import may_pass, reserve
from berthline.sim.reference_decide import choose, choose_in_state, gate_is_open
from berthline.sim.reference_place import change, closed_types, place
from berthline.sim.reference_speed import expected
from berthline.sim.snapshots.replay import Replay

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.sim.inputs import Inputs


def reasons_of_decision(inputs: Inputs, log: Schedule, now: float) -> dict[int, Finding]:
    """Return why each job that waits after a decision does not start, by its id.

    Args:
        inputs: of the decision; they begin with a snapshot.
        log: the snapshot's, then the rows of the decision.
        now: the instant.
    """
    sim = Replay(inputs, log)
    sim.advance_until_decision(now)
    order = WaitingOrder(sim)
    waiting = sorted([*sim.queue, *sim.away])
    first = {job: before_decision(sim, job, order) for job in waiting}
    sim.follow_decision()
    reasons = {}
    for job in sorted([*sim.queue, *sim.away]):
        found = first.get(job)
        if found is None and sim.scheduler.learned is not None:
            found = _kept_out(sim, job) or find_shortage(sim, job)
            found = found or Finding(Reason.NOT_CHOSEN, free_gpus=free_gpus(sim, job), fits=True)
        found = found or find_reason(sim, job, order)
        if found is not None:
            reasons[job] = found
    return reasons


def find_reason(sim: Replay, job: int, order: WaitingOrder) -> Finding | None:
    """Return why a waiting job does not start, in the state after a decision.

    Args:
        sim: the run, just after the decisions of an instant.
        job: a job that waits, or is not back in the queue yet.
        order: the order of the waiting jobs.

    Returns:
        The reason; None = nothing keeps it from starting, which never occurs in a complete log.
    """
    kept_out = _kept_out(sim, job)
    if kept_out is not None:
        return kept_out
    if sim.scheduler.discipline == "strict":
        head = order.head()
        if head is not None and head != job and not _waits_for_tick(sim, job):
            return dataclasses.replace(
                find_shortage(sim, job) or Finding(Reason.BEHIND_IN_ORDER, fits=True),
                reason=Reason.BEHIND_IN_ORDER,
                blocker=head,
            )
    shortage = find_shortage(sim, job)
    if shortage is not None:
        return shortage
    if _waits_for_tick(sim, job):
        until = next_multiple(sim.interval, sim.now)
        return Finding(Reason.DECISION_TICK, until=until, fits=True, free_gpus=free_gpus(sim, job))
    if sim.scheduler.discipline == "easy":
        return _behind_reservation(sim, job, order)
    if sim.scheduler.discipline == "conservative":
        return _behind_reservations(sim, job, order)
    return None


def before_decision(sim: Replay, job: int, order: WaitingOrder) -> Finding | None:
    """Return what is decided before the starts of an instant: which jobs get GPUs in a round.

    Returns:
        Why the job gets none; None = this is decided later, as under the other disciplines.
    """
    if sim.scheduler.discipline != "rounds" or not (job in sim.queue or job in sim.running):
        return None
    is_waiting = job in sim.queue
    kept_out = _kept_out(sim, job) if is_waiting else None
    if kept_out is not None:
        return kept_out
    if not sim.may_decide():
        return Finding(
            Reason.DECISION_TICK,
            until=next_multiple(sim.interval, sim.now),
            free_gpus=free_gpus(sim, job),
            fits=bool(place(sim, job, sim.free)),
        )
    waiting = [other for other in sim.queue if gate_is_open(sim, other)]
    empty = sim.total.copy()
    kept_counts, sim.quota_used = sim.quota_used, [0] * len(sim.quota_used)
    try:
        if not place(sim, job, empty):
            return Finding(Reason.NODE_DOWN, detail="too many of its nodes are down")
        for other in order.of([*sim.running, *waiting]):
            if other == job:
                return None
            allocation = place(sim, other, empty)
            if allocation:
                change(sim, empty, other, allocation, -1)
                sim.count_quota(other, allocation, +1)
                if not place(sim, job, empty):
                    return Finding(
                        Reason.BEHIND_IN_ORDER, blocker=other, free_gpus=free_gpus(sim, job)
                    )
    finally:
        sim.quota_used = kept_counts
    return None


def _kept_out(sim: Replay, job: int) -> Finding | None:
    """Return why a job is not a candidate: not in the queue, or its gate or quota is closed."""
    if job in sim.away:
        until = min(time for time, other in sim.returns if other == job)
        was_preempted = sim.last_row_of(job) == PREEMPT
        reason = Reason.REQUEUE_DELAY if was_preempted else Reason.RETRY_DELAY
        return Finding(reason, until=until, free_gpus=free_gpus(sim, job))
    if not gate_is_open(sim, job):
        assert sim.scheduler.gate is not None
        value = sim.value(sim.scheduler.gate, job)
        return Finding(Reason.GATE_CLOSED, value=value, free_gpus=free_gpus(sim, job))
    if closed_types(sim, job, sim.quota_used) is None:
        return over_quota(sim, job)
    return None


def _waits_for_tick(sim: Replay, job: int) -> bool:
    """Whether some job could start and this job fits, but no decision is made now."""
    return not sim.may_decide() and bool(place(sim, job, sim.free)) and choose(sim) is not None


def _behind_reservation(sim: Replay, job: int, order: WaitingOrder) -> Finding | None:
    head = order.head()
    if head is None or head == job:
        return None
    reservation = reserve(sim, head)
    if reservation is None or may_pass(sim, job, reservation):
        return None
    allocation = place(sim, job, sim.free)
    assert allocation
    return Finding(
        Reason.HEAD_RESERVATION,
        blocker=head,
        until=reservation[0],
        late=sim.now + expected(sim, job, allocation) - reservation[0],
        free_gpus=free_gpus(sim, job),
        fits=True,
    )


def _behind_reservations(sim: Replay, job: int, order: WaitingOrder) -> Finding | None:
    """Name the job whose reservation blocks this one, which could start with those before it."""
    ahead = order.candidates(until=job)

    def starts(count: int) -> bool:
        found = choose_in_state(sim, [*ahead[:count], job])
        return found is not None and found[0] == job

    if starts(len(ahead)):
        return None
    enough, too_many = 0, len(ahead)
    if not starts(0):
        return Finding(
            Reason.EARLIER_RESERVATIONS,
            free_gpus=free_gpus(sim, job),
            fits=True,
            detail="the shared GPU it fits on is released before its expected end",
        )
    while too_many - enough > 1:
        middle = (enough + too_many) // 2
        enough, too_many = (middle, too_many) if starts(middle) else (enough, middle)
    return Finding(
        Reason.EARLIER_RESERVATIONS,
        blocker=ahead[too_many - 1],
        free_gpus=free_gpus(sim, job),
        fits=True,
    )
