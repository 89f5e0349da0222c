"""Speed in the reference simulator: how fast jobs make progress, and what delays them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from berthline.model.schedule import WHOLE_GPUS
from berthline.model.speeds import AS_RECORDED
from berthline.sim.reference_state import NEW_SLOT, Allocation
from berthline.sim.reference_tiers import PLACEMENTS_IN_TIERS

if TYPE_CHECKING:
    from berthline.sim.reference import Simulation


def rate_on(sim: Simulation, job: int, allocation: Allocation) -> float:
    """Seconds of the job's run time that are done in one second on an allocation."""
    if sim.gpus[job] == 0:
        return 1.0
    slowest = min(float(sim.inputs.node_speed[share.node]) for share in allocation)
    rate = _rate(sim, job, slowest)
    if len(allocation) > 1:
        rate *= sim.conditions.across_nodes
    if len({sim.rack[share.node] for share in allocation}) > 1:
        rate *= sim.conditions.across_racks
    [first, *_] = allocation
    if first.slot not in (WHOLE_GPUS, NEW_SLOT):
        others = len(on_gpu(sim, first.node, first.slot) - {job})
        rate /= 1 + sim.conditions.interference * others
    return rate


def _rate(sim: Simulation, job: int, speed: float) -> float:
    """The rate of a job on GPUs of a speed: 1 if the GPU type of its run time is not known."""
    reference = float(sim.inputs.reference_speed[job])
    return 1.0 if reference == AS_RECORDED else speed / reference


def delay_on(sim: Simulation, job: int, allocation: Allocation) -> float:
    """Seconds between the start on an allocation and the first progress."""
    delay = sim.conditions.start_delay
    if sim.restarts[job]:
        delay += sim.conditions.restart
    if any(is_asleep(sim, share.node) for share in allocation):
        delay += sim.conditions.wake_delay
    return delay


def is_asleep(sim: Simulation, node: int) -> bool:
    """Whether an idle node has gone to sleep."""
    if not math.isfinite(sim.conditions.sleep_after) or sim.jobs_on(node):
        return False
    return sim.now - sim.idle_since[node] >= sim.conditions.sleep_after


def expected(sim: Simulation, job: int, allocation: Allocation) -> float:
    """How long the job is expected to hold an allocation."""
    return delay_on(sim, job, allocation) + expected_left(sim, job) / rate_on(sim, job, allocation)


def expected_left(sim: Simulation, job: int) -> float:
    """Seconds of run time still to come by the job's estimate, after what it has saved."""
    return max(sim.estimate[job] - sim.progress[job], 0.0)


def longest(sim: Simulation, job: int) -> float:
    """How long the job is expected to hold the slowest allocation it could get."""
    nodes = _all_nodes(sim, job)
    rate = 1.0
    if sim.gpus[job]:
        rate = _rate(sim, job, min(float(sim.inputs.node_speed[node]) for node in nodes))
        if most_nodes(sim, job) > 1:
            rate *= sim.conditions.across_nodes
            if len({sim.rack[node] for node in nodes}) > 1:
                rate *= sim.conditions.across_racks
    delay = sim.conditions.start_delay
    if sim.restarts[job]:
        delay += sim.conditions.restart
    return delay + expected_left(sim, job) / rate


def most_nodes(sim: Simulation, job: int) -> int:
    """Return on how many nodes the placement rule may put the job."""
    own = sim.job_class[job]
    fewest = max(
        sim.nodes_min.get((job, job_class), 0)
        for job_class in (own, int(sim.inputs.borrow_class[own]))
    )
    limit = min(max(sim.gpus[job], 1), len(_all_nodes(sim, job)))
    if sim.scheduler.placement == "scatter":
        return limit
    if sim.scheduler.placement in PLACEMENTS_IN_TIERS:
        return min(fewest + 1, limit)
    return fewest


def _all_nodes(sim: Simulation, job: int) -> set[int]:
    """Return the nodes that a job may use, including those it may borrow."""
    own = sim.job_class[job]
    nodes = set(sim.nodes_of_class[own])
    if sim.inputs.borrow_class[own] >= 0:
        nodes |= set(sim.nodes_of_class[sim.inputs.borrow_class[own]])
    return nodes


def progress_now(sim: Simulation, job: int) -> float:
    """Seconds of run time that a job has done, saved or not."""
    if job not in sim.running:
        return sim.progress[job]
    running = sim.running[job]
    return sim.progress[job] + max(sim.now - running.since, 0.0) * running.rate


def saved(sim: Simulation, job: int) -> float:
    """Return how much of its progress a job has saved: by checkpoints, or when its round ended."""
    every, done = sim.conditions.checkpoint, progress_now(sim, job)
    if every == 0:
        return done
    by_checkpoints = math.floor(done / every) * every if math.isfinite(every) else 0.0
    return max(by_checkpoints, sim.kept[job])


def moving_cost(sim: Simulation, job: int) -> float:
    """GPU-seconds lost by moving a running job: its restart and what it has not saved."""
    lost = (progress_now(sim, job) - saved(sim, job)) / sim.running[job].rate
    return sim.milli(job) / 1000 * (sim.conditions.restart + lost)


def on_gpu(sim: Simulation, node: int, slot: int) -> set[int]:
    """Return the running jobs on a shared GPU."""
    return {
        job
        for job, running in sim.running.items()
        if any(share.node == node and share.slot == slot for share in running.allocation)
    }


def neighbours(sim: Simulation, job: int) -> set[int]:
    """Return the other jobs on the shared GPU of a running job."""
    share = sim.running[job].allocation[0]
    return set() if share.slot == WHOLE_GPUS else on_gpu(sim, share.node, share.slot) - {job}
