"""Backfilling in the reference simulator: EASY and conservative, by reservations.

A reservation assumes that running jobs end when they are expected to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.sim.reference_place import change, place
from berthline.sim.reference_speed import expected, longest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.sim.reference import Simulation
    from berthline.sim.reference_state import Allocation, Free


def easy(sim: Simulation, jobs: list[int]) -> tuple[int, Allocation, Free] | None:
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
    """Return where a job may go past a blocked head, and out of which free resources, or None.

    It must end before the head's reservation, or not touch it. Without a reservation there is no
    restriction.
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
    """Return when the head is expected to start, and what it then leaves free.

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


def conservative(sim: Simulation, jobs: list[int]) -> tuple[int, Allocation, Free] | None:
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
