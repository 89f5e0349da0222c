"""The words of the vocabulary in the reference simulator, computed from scratch each time."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from berthline.sim.reference_speed import progress_now
from berthline.sim.reference_tiers import Tier, TierNode, ways

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from berthline.sim.reference import Simulation
    from berthline.sim.reference_state import Free

ARRIVAL_WINDOW_S = 3600.0
BURST_GAPS = 32


def _user_jobs(sim: Simulation, job: int) -> int:
    unfinished = (*sim.queue, *sim.running, *sim.away)
    return sum(sim.user[other] == sim.user[job] for other in unfinished)


def _user_usage(sim: Simulation, job: int) -> float:
    return sim.user_usage[sim.user[job]].at(sim.now)


def _user_share(sim: Simulation, job: int) -> float:
    total = sim.usage.at(sim.now)
    return _user_usage(sim, job) / total if total > 0 else 0.0


def _pool_queued_gpus(sim: Simulation, job: int) -> float:
    same = (other for other in sim.queue if sim.job_class[other] == sim.job_class[job])
    return sum(sim.milli(other) for other in same) / 1000


def _gpus(sim: Simulation, job: int) -> float:
    return sim.milli(job) / 1000


def _ran(sim: Simulation, job: int) -> float:
    """Seconds the job has run so far."""
    if job not in sim.running:
        return sim.ran[job]
    return sim.ran[job] + (sim.now - sim.running[job].start)


def _attained(sim: Simulation, job: int) -> float:
    if job not in sim.running:
        return sim.attained[job]
    return sim.attained[job] + _gpus(sim, job) * (sim.now - sim.running[job].start)


def _borrowed_gpus(sim: Simulation, job: int) -> float:
    if job not in sim.running:
        return 0.0
    own = sim.nodes_of_class[sim.job_class[job]]
    allocation = sim.running[job].allocation
    milli = sum(s.gpus * sim.gpu_milli[job] for s in allocation if s.node not in own)
    return milli / 1000


def _own_nodes(sim: Simulation, job: int) -> list[int]:
    return sim.nodes_of_class[sim.job_class[job]]


def _free_gpus(sim: Simulation, nodes: Iterable[int]) -> float:
    return sum(sim.free.milli(node) for node in nodes if sim.up[node]) / 1000


def _ways(sim: Simulation, job: int, tier: Tier) -> int:
    fewest = sim.nodes_min.get((job, sim.job_class[job]))
    if sim.milli(job) < 1000 or fewest is None:
        return 0
    from berthline.sim.reference_place import capacity

    nodes = [
        TierNode(
            node, capacity(sim, job, node, sim.free), sim.free.gpus[node], sim.total.gpus[node]
        )
        for node in _own_nodes(sim, job)
        if sim.up[node]
    ]
    return ways(nodes, sim.gpus[job], fewest, tier)


def _arrival_burstiness(sim: Simulation, _: int) -> float:
    submitted = sim.arrived + sim.left_out
    times = sim.submissions[max(submitted - 1 - BURST_GAPS, 0) : submitted]
    gaps = len(times) - 1
    if gaps < 2 or times[-1] == times[0]:
        return 0.0
    mean = (times[-1] - times[0]) / gaps
    variance = 0.0
    for earlier, later in itertools.pairwise(times):
        variance += (later - earlier - mean) * (later - earlier - mean)
    return variance / gaps / (mean * mean)


def _queued_work(sim: Simulation, _: int) -> float:
    total = 0.0
    for job in sim.queue:
        total += sim.estimate[job] * _gpus(sim, job)
    return total


def _busy_gpus(sim: Simulation, _: int) -> float:
    nodes = [node for node in range(len(sim.up)) if sim.up[node]]
    return sum(1000 * sim.total.gpus[node] - sim.free.milli(node) for node in nodes) / 1000


def _fragmentation(sim: Simulation, nodes: Iterable[int]) -> float:
    with_free = [node for node in nodes if sim.up[node] and sim.free.milli(node)]
    partly = sum(sim.free.milli(node) < 1000 * sim.total.gpus[node] for node in with_free)
    return partly / len(with_free) if with_free else 0.0


def _rack_free_gpus(sim: Simulation, job: int) -> float:
    free = dict.fromkeys(sim.rack, 0)
    for node in _own_nodes(sim, job):
        if sim.up[node]:
            free[sim.rack[node]] += sim.free.milli(node)
    return max(free.values()) / 1000


def _arrival_rate(sim: Simulation, _: int) -> float:
    since = sim.now - ARRIVAL_WINDOW_S
    submitted = sim.submissions[: sim.arrived + sim.left_out]
    return sum(time > since for time in submitted) / ARRIVAL_WINDOW_S


def _max_priority(sim: Simulation, _: int) -> float:
    return float(sim.inputs.workload.priority[: sim.arrived].max(initial=sim.max_priority))


def _can_start(sim: Simulation, job: int) -> bool:
    # Placement uses words too, so the two modules import each other.
    from berthline.sim.reference_place import place

    return place(sim, job, sim.free) is not None


WORDS: dict[str, Callable[[Simulation, int], float]] = {
    "submit": lambda sim, job: sim.submit[job],
    "wait": lambda sim, job: sim.now - sim.submit[job] - _ran(sim, job),
    "estimate": lambda sim, job: sim.estimate[job],
    "gpus": _gpus,
    "cpus": lambda sim, job: sim.cpus[job],
    "memory_mib": lambda sim, job: sim.memory_mib[job],
    "work": lambda sim, job: sim.estimate[job] * _gpus(sim, job),
    "priority": lambda sim, job: float(sim.inputs.workload.priority[job]),
    "deadline": lambda sim, job: float(sim.inputs.workload.deadline[job]),
    "slack": lambda sim, job: float(sim.inputs.workload.deadline[job]) - sim.now,
    "attained": _attained,
    "remaining": lambda sim, job: max(sim.estimate[job] - progress_now(sim, job), 0.0),
    "restarts": lambda sim, job: sim.restarts[job],
    "running": lambda sim, job: job in sim.running,
    "predicted": lambda sim, job: sim.predicted[job],
    "gittins": lambda sim, job: sim.gittins.of(_attained(sim, job)),
    "random": lambda sim, job: float(sim.inputs.random[job]),
    "nodes_min": lambda sim, job: next(
        sim.nodes_min[job, c]
        for c in (sim.job_class[job], int(sim.inputs.borrow_class[sim.job_class[job]]))
        if (job, c) in sim.nodes_min
    ),
    "user_usage": _user_usage,
    "user_share": _user_share,
    "user_jobs": _user_jobs,
    "user_gpus": lambda sim, job: sim.user_usage[sim.user[job]].milli / 1000,
    "borrowed_gpus": _borrowed_gpus,
    "pool_free_gpus": lambda sim, job: _free_gpus(sim, _own_nodes(sim, job)),
    "pool_total_gpus": lambda sim, job: sum(sim.total.gpus[node] for node in _own_nodes(sim, job)),
    "pool_queued_gpus": _pool_queued_gpus,
    "pool_fragmentation": lambda sim, job: _fragmentation(sim, _own_nodes(sim, job)),
    "rack_free_gpus": _rack_free_gpus,
    "can_start": _can_start,
    "ways_tier1": lambda sim, job: _ways(sim, job, 1),
    "ways_tier2": lambda sim, job: _ways(sim, job, 2),
    "ranked": lambda sim, job: sim.ranked.index(job) + 1 if job in sim.ranked else 0,
    "now": lambda sim, _: sim.now,
    "queue_len": lambda sim, _: len(sim.queue),
    "queued_gpus": lambda sim, _: sum(sim.milli(job) for job in sim.queue) / 1000,
    "queued_work": _queued_work,
    "running_jobs": lambda sim, _: len(sim.running),
    "busy_gpus": _busy_gpus,
    "free_gpus": lambda sim, _: _free_gpus(sim, range(len(sim.up))),
    "total_gpus": lambda sim, _: sum(sim.total.gpus),
    "down_gpus": lambda sim, _: sum(
        sim.total.gpus[node] for node in range(len(sim.up)) if not sim.up[node]
    ),
    "utilization": lambda sim, job: _busy_gpus(sim, job) / sum(sim.total.gpus),
    "fragmentation": lambda sim, _: _fragmentation(sim, range(len(sim.up))),
    "arrival_rate": _arrival_rate,
    "arrival_burstiness": _arrival_burstiness,
    "num_users": lambda sim, _: len(sim.user_usage),
    "max_node_gpus": lambda sim, _: max(sim.total.gpus),
    "max_node_cpus": lambda sim, _: max(sim.total.cpus),
    "max_node_memory_mib": lambda sim, _: max(sim.total.memory_mib),
    "max_priority": _max_priority,
}

NODE_WORDS: dict[str, Callable[[Simulation, int, Free], float]] = {
    "node_id": lambda _sim, node, _free: node,
    "node_free_gpus": lambda _sim, node, free: free.milli(node) / 1000,
    "node_total_gpus": lambda sim, node, _: sim.total.gpus[node],
    "node_free_cpus": lambda sim, node, free: free.cpus[node] if sim.total.cpus[node] else 0,
    "node_total_cpus": lambda sim, node, _: sim.total.cpus[node],
    "node_free_memory_mib": lambda sim, node, free: (
        free.memory_mib[node] if sim.total.memory_mib[node] else 0
    ),
    "node_total_memory_mib": lambda sim, node, _: sim.total.memory_mib[node],
    "node_speed": lambda sim, node, _: float(sim.inputs.node_speed[node]),
    "node_running": lambda sim, node, _: len(sim.jobs_on(node)),
    "node_rack": lambda sim, node, _: sim.rack[node],
}
"""Words about a node in some state of what is free."""
