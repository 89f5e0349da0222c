"""Preemption in the reference simulator: which jobs must yield, and which are moved."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.sim.reference_backfilling import reserve
from berthline.sim.reference_decide import candidates
from berthline.sim.reference_place import change, place
from berthline.sim.reference_speed import moving_cost

if TYPE_CHECKING:
    from berthline.sim.reference import Simulation
    from berthline.sim.reference_state import Allocation


def may_yield(sim: Simulation, job: int) -> bool:
    """Whether a running job may be preempted; one that started at this instant never is."""
    rule = sim.scheduler.preemption
    assert rule is not None
    start = sim.running[job].start
    return (
        start < sim.now
        and sim.now - start >= sim.inputs.min_run
        and sim.restarts[job] < rule.max_restarts
    )


def choose_victims(sim: Simulation) -> tuple[int, Allocation, list[int]] | None:
    """Return a waiting job, its allocation, and the running jobs that must yield to it.

    Waiting jobs are tried by index, smallest first. Running jobs whose index is larger by more than
    the margin yield, largest first, until the job fits on nodes of its own pool; then jobs that
    need not yield are spared, smallest first.
    """
    rule = sim.scheduler.preemption
    assert rule is not None
    assert rule.index is not None
    index: dict[int, float] = {}
    waiting = candidates(sim)
    for job in (*waiting, *sim.running):
        value = sim.value(rule.index, job)
        index[job] = math.inf if math.isnan(value) else value
    eligible = [job for job in sorted(sim.running) if may_yield(sim, job)]
    for job in sorted(waiting, key=lambda job: (index[job], job)):
        larger = [other for other in eligible if index[other] > index[job] + rule.margin]
        if not larger:
            return None
        own = set(sim.nodes_of_class[sim.job_class[job]])
        trial = sim.free.copy()
        victims: list[int] = []
        for other in sorted(larger, key=lambda other: (-index[other], -other)):
            allocation = sim.running[other].allocation
            if any(share.node in own for share in allocation):
                change(sim, trial, other, allocation, +1)
                victims.append(other)
                if place(sim, job, trial, own_nodes=True):
                    break
        else:
            continue
        for other in reversed(victims.copy()):
            change(sim, trial, other, sim.running[other].allocation, -1)
            if place(sim, job, trial, own_nodes=True):
                victims.remove(other)
            else:
                change(sim, trial, other, sim.running[other].allocation, +1)
        found = place(sim, job, trial, own_nodes=True)
        assert found
        return job, found, victims
    return None


def choose_moves(sim: Simulation) -> list[tuple[int, Allocation]] | None:
    """Return jobs and their new allocations: the head, then the running jobs that make room.

    Nodes are emptied, cheapest first, until the head fits. The moves must all find a
    place, and cost fewer GPU-seconds than the head saves by not waiting for its reservation.
    """
    rule = sim.scheduler.preemption
    assert rule is not None
    waiting = candidates(sim)
    reservation = reserve(sim, waiting[0]) if waiting else None
    if reservation is None:
        return None
    head = waiting[0]
    own = sim.nodes_of_class[sim.job_class[head]]
    on_node: dict[int, list[int]] = {node: [] for node in own if sim.up[node]}
    for job in sorted(sim.running):
        for share in sim.running[job].allocation:
            if share.node in on_node:
                on_node[share.node].append(job)
    costs: list[tuple[float, int]] = []
    for node, jobs in on_node.items():
        if jobs and all(may_yield(sim, job) for job in jobs):
            cost = 0.0
            for job in jobs:
                cost += moving_cost(sim, job)
            costs.append((cost, node))
    trial = sim.free.copy()
    moved: list[int] = []
    for _, node in sorted(costs):
        for job in on_node[node]:
            if job not in moved:
                change(sim, trial, job, sim.running[job].allocation, +1)
                moved.append(job)
        if len(moved) > rule.moves:
            return None
        if place(sim, head, trial, own_nodes=True):
            break
    else:
        return None
    for job in reversed(moved.copy()):
        change(sim, trial, job, sim.running[job].allocation, -1)
        if place(sim, head, trial, own_nodes=True):
            moved.remove(job)
        else:
            change(sim, trial, job, sim.running[job].allocation, +1)
    plan: list[tuple[int, Allocation]] = []
    cost = 0.0
    for job in (head, *sorted(moved)):
        found = place(sim, job, trial, own_nodes=job == head)
        if not found:
            return None
        change(sim, trial, job, found, -1)
        plan.append((job, found))
        if job != head:
            cost += moving_cost(sim, job)
    gain = (reservation[0] - sim.now) * sim.milli(head) / 1000
    return plan if gain > cost else None
