"""Decisions of the reference simulator: which jobs start now, discipline by discipline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.sim.reference_backfilling import conservative, easy
from berthline.sim.reference_place import change, closed_types, place, planned
from berthline.sim.reference_state import Allocation, Free

if TYPE_CHECKING:
    from berthline.policies.formulas import Formula
    from berthline.sim.reference import Simulation

Choice = tuple[int, Allocation]


def in_order(sim: Simulation, formula: Formula, jobs: list[int]) -> list[int]:
    """Return the jobs sorted by a formula, smallest value first, then by id."""
    keys = {job: sim.value(formula, job) for job in jobs}
    return sorted(jobs, key=lambda job: (math.inf if math.isnan(keys[job]) else keys[job], job))


def candidates(sim: Simulation) -> list[int]:
    """Return the waiting jobs, in order, that may start: gate open, quota not reached."""
    return [
        job
        for job in in_order(sim, sim.scheduler.order, sim.queue)
        if gate_is_open(sim, job) and closed_types(sim, job, sim.quota_used) is not None
    ]


def gate_is_open(sim: Simulation, job: int) -> bool:
    """A closed gate takes the job out of this decision; on idle nodes it is always open."""
    if job in sim.held:
        return False
    if sim.now < sim.held_until.get(job, 0.0):
        return pool_is_idle(sim, job)
    if sim.scheduler.gate is None:
        return True
    return pool_is_idle(sim, job) or sim.value(sim.scheduler.gate, job) >= 0


def pool_is_idle(sim: Simulation, job: int) -> bool:
    """Whether no GPU is in use on the job's own nodes."""
    nodes = sim.nodes_of_class[sim.job_class[job]]
    return all(
        sim.free.milli(node) == 1000 * sim.total.gpus[node] for node in nodes if sim.up[node]
    )


def choose(sim: Simulation) -> Choice | None:
    """Return the next job to start and its allocation; None = nothing more starts now."""
    jobs = candidates(sim)
    found = choose_in_state(sim, jobs)
    if found is None:
        return None
    job, allocation, free = found
    return job, planned(sim, job, jobs, allocation, free)


def choose_in_state(sim: Simulation, jobs: list[int]) -> tuple[int, Allocation, Free] | None:
    """Return the next job to start, its allocation, and the free resources it comes from."""
    if not jobs:
        return None
    if sim.scheduler.discipline == "strict":
        return _first_placeable(sim, jobs[:1], sim.free)
    if sim.scheduler.discipline == "skip":
        return _first_placeable(sim, jobs, sim.free)
    if sim.scheduler.discipline == "easy":
        return easy(sim, jobs)
    return conservative(sim, jobs)


def _first_placeable(
    sim: Simulation, jobs: list[int], free: Free
) -> tuple[int, Allocation, Free] | None:
    for job in jobs:
        allocation = place(sim, job, free)
        if allocation:
            return job, allocation, free
    return None


def next_round(sim: Simulation) -> tuple[list[int], list[int]]:
    """Return the running jobs that must stop and the waiting ones that may start, in order.

    All jobs, running or waiting, are placed in order on an empty cluster; those that find a place
    get this round.
    """
    empty = sim.total.copy()
    waiting = [job for job in sim.queue if gate_is_open(sim, job)]
    jobs = in_order(sim, sim.scheduler.order, sorted([*waiting, *sim.running]))
    kept_counts, sim.quota_used = sim.quota_used, [0] * len(sim.quota_used)
    chosen = []
    for job in jobs:
        allocation = place(sim, job, empty)
        if allocation:
            change(sim, empty, job, allocation, -1)
            sim.count_quota(job, allocation, +1)
            chosen.append(job)
    sim.quota_used = kept_counts
    stop = [job for job in sorted(sim.running) if job not in chosen]
    return stop, [job for job in chosen if job not in sim.running]
