"""Decisions of the reference simulator: who starts now, discipline by discipline."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.sim.reference_place import change, closed_types, place, planned
from berthline.sim.reference_speed import expected, longest
from berthline.sim.reference_state import Allocation, Free

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Return the next of these jobs to start, its allocation, and what that is a part of."""
    if not jobs:
        return None
    if sim.scheduler.discipline == "strict":
        return _first_placeable(sim, jobs[:1], sim.free)
    if sim.scheduler.discipline == "skip":
        return _first_placeable(sim, jobs, sim.free)
    if sim.scheduler.discipline == "easy":
        return _easy(sim, jobs)
    return _conservative(sim, jobs)


def _first_placeable(
    sim: Simulation, jobs: list[int], free: Free
) -> tuple[int, Allocation, Free] | None:
    for job in jobs:
        allocation = place(sim, job, free)
        if allocation:
            return job, allocation, free
    return None


def _easy(sim: Simulation, jobs: list[int]) -> tuple[int, Allocation, Free] | None:
    """Start the head, or a job that cannot delay the head's reservation."""
    head, *others = jobs
    allocation = place(sim, head, sim.free)
    if allocation:
        return head, allocation, sim.free
    reservation = reserve(sim, head)
    for job in others:
        found = may_pass(sim, job, reservation)
        if found:
            return job, *found
    return None


def may_pass(
    sim: Simulation, job: int, reservation: tuple[float, Free] | None
) -> tuple[Allocation, Free] | None:
    """Return where a job may go past a blocked head, and what that is a part of; None = nowhere.

    It ends before the head's reservation, or leaves it alone. No reservation, no restriction.
    """
    allocation = place(sim, job, sim.free)
    if not allocation:
        return None
    if reservation is None or sim.now + expected(sim, job, allocation) <= reservation[0]:
        return allocation, sim.free
    spare = sim.free.smaller(reservation[1])
    allocation = place(sim, job, spare)
    return (allocation, spare) if allocation else None


def reserve(sim: Simulation, head: int) -> tuple[float, Free] | None:
    """Return when the head can start as things look now, and what it leaves free then.

    None = never: too many nodes are down.
    """
    shadow = sim.free.copy()
    for time, jobs in _releases(sim):
        for job in jobs:
            change(sim, shadow, job, sim.running[job].allocation, +1)
        allocation = place(sim, head, shadow)
        if allocation:
            change(sim, shadow, head, allocation, -1)
            return time, shadow
    return None


def _conservative(sim: Simulation, jobs: list[int]) -> tuple[int, Allocation, Free] | None:
    """Give every job the earliest reservation in order; start the first that begins now."""
    # Step i of the profile says what is free from times[i] until times[i + 1].
    times, profile = [sim.now], [sim.free.copy()]
    for time, ending in _releases(sim):
        times.append(time)
        profile.append(profile[-1].copy())
        for job in ending:
            change(sim, profile[-1], job, sim.running[job].allocation, +1)
    for job in jobs:
        allocation = None
        for first, begin in enumerate(times):
            end = begin + longest(sim, job)
            free = profile[first]
            for later in range(first + 1, len(times)):
                if times[later] < end:
                    free = free.smaller(profile[later])
            allocation = place(sim, job, free)
            if allocation:
                break
        if not allocation:
            continue  # too many nodes are down
        if first == 0:
            return job, allocation, free
        if end not in times:
            after = sum(time < end for time in times)
            times.insert(after, end)
            profile.insert(after, profile[after - 1].copy())
        for step in range(first, len(times)):
            if times[step] < end:
                change(sim, profile[step], job, allocation, -1)
    return None


def _releases(sim: Simulation) -> Iterator[tuple[float, list[int]]]:
    """When running jobs are expected to end: (time, jobs), soonest first; overdue = now."""
    due: dict[float, list[int]] = {}
    for job, running in sim.running.items():
        due.setdefault(max(running.expected_end, sim.now), []).append(job)
    for time in sorted(due):
        yield time, sorted(due[time])


def next_round(sim: Simulation) -> tuple[list[int], list[int]]:
    """Return the running jobs that must stop and the waiting ones that may start, in order.

    All jobs, running or waiting, are placed in order on an empty cluster; who finds a place has
    this round.
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
