"""Reasons for waiting, checked against the state they describe, in random runs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run
from tests.evaluate.explain.explained_runs import simulated

from berthline.sim.inputs import prepare
from berthline.sim.reasons.find_reason import before_decision, find_reason
from berthline.sim.reasons.reason_codes import Finding, Reason
from berthline.sim.reasons.shortage import allowed_nodes
from berthline.sim.reasons.waiting_order import WaitingOrder
from berthline.sim.reference_decide import choose_in_state
from berthline.sim.reference_place import place
from berthline.sim.snapshots.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.sim.simulate import Result

RESOURCES = {Reason.WAITING_FOR_GPUS, Reason.POOL_FULL, Reason.GPU_TYPE_FULL}


def replay_of(result: Result, since: float) -> Replay:
    inputs = prepare(
        result.workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=None if np.isinf(result.log.horizon) else result.log.horizon,
    )
    return Replay(inputs, result.log, since=since)


def fits_by_count(sim: Replay, job: int) -> bool:
    """Whether enough GPUs are free on nodes that are up, counted without a placement."""
    milli = sum(sim.free.milli(node) for node in allowed_nodes(sim, job) if sim.up[node])
    return milli >= sim.milli(job)


def chosen(sim: Replay, *jobs: int) -> int | None:
    """Return which job starts now if only these jobs, in this order, may start."""
    found = choose_in_state(sim, [*jobs])
    return None if found is None else found[0]


def check_blocker(sim: Replay, job: int, finding: Finding) -> None:
    """The job does not start with the named job before it, and does with those before that one."""
    assert finding.blocker is not None
    ahead = WaitingOrder(sim).candidates(until=job)
    before = ahead[: ahead.index(finding.blocker)]
    assert chosen(sim, *before, finding.blocker, job) != job
    if finding.reason != Reason.EARLIER_RESERVATIONS:
        assert not before  # it is the head
    if finding.fits:
        assert chosen(sim, *before, job) == job


def check_finding(sim: Replay, job: int, finding: Finding) -> None:
    """Assert what a reason claims, by other means than those that found it."""
    reason = finding.reason
    starts_alone = job in sim.queue and chosen(sim, job) == job
    if reason in RESOURCES:
        assert not fits_by_count(sim, job)
        need = sim.milli(job) / 1000
        assert finding.short["gpus"] == pytest.approx(need - finding.free_gpus, abs=1e-9)
        assert not starts_alone
    elif reason == Reason.FRAGMENTED:
        assert fits_by_count(sim, job)
        assert not starts_alone
    elif reason == Reason.NODE_DOWN:
        assert not starts_alone
        up, sim.up = sim.up, [True] * len(sim.up)
        assert chosen(sim, job) == job or place(sim, job, sim.free)
        sim.up = up
    elif reason in (Reason.CPUS_SHORT, Reason.MEMORY_SHORT) and finding.short:
        assert not starts_alone
        needs = sim.cpus[job], sim.memory_mib[job]
        sim.cpus[job] = sim.memory_mib[job] = 0
        assert place(sim, job, sim.free)
        sim.cpus[job], sim.memory_mib[job] = needs
    elif reason == Reason.QUOTA:
        assert not starts_alone
        used, limits = sim.quota_used, sim.inputs.quotas.limit
        assert any(used[c] + sim.milli(job) > limits[c] for c in sim.inputs.quotas.of_job(job))
    elif reason == Reason.GATE_CLOSED:
        assert sim.scheduler.gate is not None
        assert not sim.value(sim.scheduler.gate, job) >= 0
    elif reason == Reason.DECISION_TICK:
        assert not sim.may_decide()
        assert place(sim, job, sim.free)
    elif reason in (Reason.REQUEUE_DELAY, Reason.RETRY_DELAY):
        assert job in sim.away
        assert finding.until is not None
        assert finding.until > sim.now
    elif finding.blocker is not None:
        check_blocker(sim, job, finding)


def check_run(run: Run, seen: Counter[Reason]) -> None:
    """Find and check the reason of every waiting job at every instant of a run."""
    result = simulated(run)
    if result is None or len(run.workload) > 60:
        return
    sim = replay_of(result, since=0.0)
    order = WaitingOrder(sim)
    in_rounds = result.scheduler.discipline == "rounds"
    for time in np.unique(result.log.time).tolist():
        sim.advance_until_decision(time)
        before = {job: before_decision(sim, job, order) for job in (*sim.queue, *sim.running)}
        sim.follow_decision()
        for job in [*sim.queue, *sim.away][:6]:
            finding = before.get(job) or find_reason(sim, job, order)
            assert finding is not None, (time, job)
            seen[finding.reason] += 1
            if not in_rounds:
                check_finding(sim, job, finding)


@pytest.mark.parametrize(
    ("make", "first"),
    [(make, first) for make in (random_run, random_model_run) for first in range(0, 160, 40)],
)
def test_every_reason_is_true(make: Callable[[int], Run], first: int) -> None:
    seen: Counter[Reason] = Counter()
    for number in range(first, first + 40):
        check_run(make(number), seen)
    assert len(seen) > 5
