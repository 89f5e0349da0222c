"""A decision point of the reference simulator: jobs start, yield and move until no more can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.model.schedule import END_OF_ROUND, FOR_ANOTHER, TO_MOVE
from berthline.sim.reference_decide import choose, next_round
from berthline.sim.reference_place import place, planned
from berthline.sim.reference_preempt import choose_moves, choose_victims

if TYPE_CHECKING:
    from berthline.sim.reference import Simulation


def decide(sim: Simulation) -> set[int]:
    """Start jobs one after another until none can; return the jobs whose GPUs were touched."""
    touched: set[int] = set()
    while True:
        choice = choose(sim)
        if choice is not None:
            touched |= sim.start(*choice)
        elif sim.scheduler.preemption is None:
            return touched
        elif sim.scheduler.preemption.index is not None:
            yielding = choose_victims(sim)
            if yielding is None:
                return touched
            job, allocation, victims = yielding
            for victim in sorted(victims):
                touched |= sim.preempt(victim, FOR_ANOTHER)
            touched |= sim.start(job, allocation)
        else:
            moves = choose_moves(sim)
            if moves is None:
                return touched
            for job, _ in moves[1:]:
                touched |= sim.preempt(job, TO_MOVE)
            for job, allocation in moves:
                touched |= sim.start(job, allocation)


def decide_round(sim: Simulation) -> set[int]:
    """Give the GPUs to the jobs of the next round."""
    touched: set[int] = set()
    stop, go = next_round(sim)
    for job in stop:
        touched |= sim.preempt(job, END_OF_ROUND)
    for job in go:
        allocation = place(sim, job, sim.free)
        if allocation:
            touched |= sim.start(job, planned(sim, job, go, allocation, sim.free))
    return touched
