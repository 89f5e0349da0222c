"""What the words of the vocabulary mean in the reference simulator, worked out afresh each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.sim.reference import Simulation

ARRIVAL_WINDOW_S = 3600.0


def _user_jobs(sim: Simulation, job: int) -> int:
    return sum(sim.user[other] == sim.user[job] for other in (*sim.queue, *sim.running))


def _user_usage(sim: Simulation, job: int) -> float:
    return sim.user_usage[sim.user[job]].at(sim.now)


def _user_share(sim: Simulation, job: int) -> float:
    total = sim.usage.at(sim.now)
    return _user_usage(sim, job) / total if total > 0 else 0.0


def _pool_queued_gpus(sim: Simulation, job: int) -> int:
    same = (other for other in sim.queue if sim.job_class[other] == sim.job_class[job])
    return sum(sim.gpus[other] for other in same)


def _queued_work(sim: Simulation, _: int) -> float:
    total = 0.0
    for job in sim.queue:
        total += sim.estimate[job] * sim.gpus[job]
    return total


def _busy_gpus(sim: Simulation, _: int) -> int:
    return sum(sim.total.gpus) - sum(sim.free.gpus)


def _fragmentation(sim: Simulation, _: int) -> float:
    with_free = [node for node, free in enumerate(sim.free.gpus) if free]
    partly = sum(sim.free.gpus[node] < sim.total.gpus[node] for node in with_free)
    return partly / len(with_free) if with_free else 0.0


def _arrival_rate(sim: Simulation, _: int) -> float:
    since = sim.now - ARRIVAL_WINDOW_S
    return sum(time > since for time in sim.submit[: sim.arrived]) / ARRIVAL_WINDOW_S


WORDS: dict[str, Callable[[Simulation, int], float]] = {
    "submit": lambda sim, job: sim.submit[job],
    "wait": lambda sim, job: sim.now - sim.submit[job],
    "estimate": lambda sim, job: sim.estimate[job],
    "gpus": lambda sim, job: sim.gpus[job],
    "cpus": lambda sim, job: sim.cpus[job],
    "memory_mib": lambda sim, job: sim.memory_mib[job],
    "work": lambda sim, job: sim.estimate[job] * sim.gpus[job],
    "priority": lambda sim, job: float(sim.inputs.workload.priority[job]),
    "deadline": lambda sim, job: float(sim.inputs.workload.deadline[job]),
    "slack": lambda sim, job: float(sim.inputs.workload.deadline[job]) - sim.now,
    "random": lambda sim, job: float(sim.inputs.random[job]),
    "nodes_min": lambda sim, job: sim.nodes_min[job],
    "user_usage": _user_usage,
    "user_share": _user_share,
    "user_jobs": _user_jobs,
    "pool_free_gpus": lambda sim, job: sum(sim.free.gpus[node] for node in sim.nodes_of(job)),
    "pool_total_gpus": lambda sim, job: sum(sim.total.gpus[node] for node in sim.nodes_of(job)),
    "pool_queued_gpus": _pool_queued_gpus,
    "can_start": lambda sim, job: sim.place(job, sim.free) is not None,
    "now": lambda sim, _: sim.now,
    "queue_len": lambda sim, _: len(sim.queue),
    "queued_gpus": lambda sim, _: sum(sim.gpus[job] for job in sim.queue),
    "queued_work": _queued_work,
    "running_jobs": lambda sim, _: len(sim.running),
    "busy_gpus": _busy_gpus,
    "free_gpus": lambda sim, _: sum(sim.free.gpus),
    "total_gpus": lambda sim, _: sum(sim.total.gpus),
    "utilization": lambda sim, job: _busy_gpus(sim, job) / sum(sim.total.gpus),
    "fragmentation": _fragmentation,
    "arrival_rate": _arrival_rate,
    "num_users": lambda sim, _: len(sim.user_usage),
    "max_node_gpus": lambda sim, _: max(sim.total.gpus),
    "max_node_cpus": lambda sim, _: max(sim.total.cpus),
    "max_node_memory_mib": lambda sim, _: max(sim.total.memory_mib),
    "max_priority": lambda sim, _: sim.inputs.max_priority,
}
