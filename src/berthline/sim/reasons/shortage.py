"""Which resource a waiting job is short of, and by how much.

The reference simulator's placement is asked with one obstacle removed at a time: would the job fit
if no quota closed a GPU type, if no node were down, if it needed no CPUs, on nodes of other pools?
The first obstacle whose removal lets the job fit is the reason; if no single one does, GPUs are
short.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from berthline.sim.quotas import ANY_TYPE
from berthline.sim.reasons.reason_codes import Finding, Reason
from berthline.sim.reference_place import (
    capacity,
    closed_types,
    nodes_min,
    place,
    place_on,
    units,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from berthline.sim.reference_state import Allocation
    from berthline.sim.snapshots.replay import Replay


def find_shortage(sim: Replay, job: int) -> Finding | None:
    """Return what a job is short of in the present state; None = it fits."""
    if place(sim, job, sim.free):
        return None
    free = free_gpus(sim, job)
    need = sim.milli(job) / 1000
    if _would_fit(sim, job, without_quotas=True):
        return over_quota(sim, job)
    if _would_fit(sim, job, without_failures=True):
        down = [node for node in allowed_nodes(sim, job) if not sim.up[node]]
        gpus = sum(sim.total.gpus[node] for node in down)
        return Finding(
            Reason.NODE_DOWN,
            short=_gpus_short(need, free),
            free_gpus=free,
            detail=f"{len(down)} of its nodes with {gpus} GPUs are down",
        )
    for reason, leave_out in (
        (Reason.CPUS_SHORT, ("cpus",)),
        (Reason.MEMORY_SHORT, ("memory_mib",)),
        (Reason.CPUS_SHORT, ("cpus", "memory_mib")),
    ):
        with _not_needing(sim, job, leave_out):
            allocation = place(sim, job, sim.free)
        if allocation:
            return Finding(reason, short=_missing_on(sim, job, allocation), free_gpus=free)
    if sim.gpus[job] == 0:  # several obstacles at once
        return Finding(Reason.CPUS_SHORT, free_gpus=free)
    if need <= free:
        fewest, together = _together(sim, job)
        return Finding(
            Reason.FRAGMENTED,
            short=_gpus_short(need, together),
            free_gpus=free,
            detail=f"at most {together:g} on {fewest} node{'' if fewest == 1 else 's'}",
        )
    elsewhere = _elsewhere(sim, job)
    return Finding(
        elsewhere or Reason.WAITING_FOR_GPUS, short=_gpus_short(need, free), free_gpus=free
    )


def over_quota(sim: Replay, job: int) -> Finding:
    """Return the finding for a job that a quota keeps from starting."""
    quotas, need = sim.inputs.quotas, sim.milli(job)
    full = [
        counter
        for counter in quotas.of_job(job)
        if sim.quota_used[counter] + need > quotas.limit[counter]
    ]
    # A quota over all types excludes it everywhere; a quota of one type only from those nodes.
    full.sort(key=lambda counter: quotas.gpu_type[counter] != ANY_TYPE)
    [counter, *_] = full
    used, limit = sim.quota_used[counter] / 1000, int(quotas.limit[counter]) / 1000
    kind = int(quotas.gpu_type[counter])
    of_type = "" if kind == ANY_TYPE else f" of type {sim.inputs.cluster.types[kind].name}"
    return Finding(
        Reason.QUOTA,
        short={"gpus": used + need / 1000 - limit},
        free_gpus=free_gpus(sim, job),
        detail=f"{used:g} of {limit:g} GPUs{of_type} that its quota allows are in use",
    )


def allowed_nodes(sim: Replay, job: int) -> list[int]:
    """Return the nodes that a job may use, including borrowed ones, up or down."""
    own = sim.job_class[job]
    borrowed = int(sim.inputs.borrow_class[own])
    return sim.nodes_of_class[own if borrowed < 0 else borrowed]


def free_gpus(sim: Replay, job: int) -> float:
    """Return the GPUs that are free on the nodes a job may use."""
    return sum(sim.free.milli(node) for node in allowed_nodes(sim, job) if sim.up[node]) / 1000


def _gpus_short(need: float, free: float) -> dict[str, float]:
    return {"gpus": need - free} if need > free else {}


def _would_fit(
    sim: Replay, job: int, *, without_quotas: bool = False, without_failures: bool = False
) -> bool:
    """Whether a job would fit without quotas of GPU types, or without failures of nodes."""
    closed = closed_types(sim, job, sim.quota_used) or set()
    if (without_quotas and not closed) or (without_failures and all(sim.up)):
        return False
    own = sim.job_class[job]
    for job_class in (own, int(sim.inputs.borrow_class[own])):
        if (job, job_class) not in sim.nodes_min:
            continue
        nodes = [
            node
            for node in sim.nodes_of_class[job_class]
            if (without_failures or sim.up[node])
            and (without_quotas or sim.node_type[node] not in closed)
        ]
        fewest = sim.nodes_min[job, job_class]
        if place_on(sim, job, sim.free, nodes, fewest, units(sim, job)):
            return True
    return False


@contextlib.contextmanager
def _not_needing(sim: Replay, job: int, resources: Iterable[str]) -> Iterator[None]:
    """Set a job's need for some resources to zero temporarily."""
    columns = [getattr(sim, resource) for resource in resources]
    kept = [column[job] for column in columns]
    for column in columns:
        column[job] = 0
    try:
        yield
    finally:
        for column, value in zip(columns, kept, strict=True):
            column[job] = value


def _missing_on(sim: Replay, job: int, allocation: Allocation) -> dict[str, float]:
    """Return the CPUs and memory missing where the GPUs are free."""
    short = {"cpus": 0.0, "memory_mib": 0.0}
    pieces = units(sim, job)
    for node, gpus, _ in allocation:
        for resource in short:
            need, total = getattr(sim, resource)[job], getattr(sim.total, resource)[node]
            part = -(-need * max(gpus, 1) // pieces)
            if total:
                short[resource] += max(part - getattr(sim.free, resource)[node], 0)
    return {resource: amount for resource, amount in short.items() if amount}


def _together(sim: Replay, job: int) -> tuple[int, float]:
    """Return how few nodes a job must fit on, and the GPUs it could get on that many now."""
    own = sim.job_class[job]
    closed = closed_types(sim, job, sim.quota_used) or set()
    best = (1, 0.0)
    for job_class in (own, int(sim.inputs.borrow_class[own])):
        fewest = sim.nodes_min.get((job, job_class))
        if fewest is None:
            continue
        rooms = [
            capacity(sim, job, node, sim.free)
            for node in sim.nodes_of_class[job_class]
            if sim.up[node] and sim.node_type[node] not in closed
        ]
        room = sum(sorted(rooms, reverse=True)[:fewest]) * sim.gpu_milli[job] / 1000
        best = max(best, (fewest, room), key=lambda found: found[1])
    return best


def _elsewhere(sim: Replay, job: int) -> Reason | None:
    """Return why a job may not use other GPUs that it would fit on; None = there are none."""
    workload = sim.inputs.workload
    may_use = set(allowed_nodes(sim, job))
    if len(may_use) == len(sim.up):
        return None
    up = [node for node in range(len(sim.up)) if sim.up[node]]
    types = {sim.node_type[node] for node in may_use}
    pools = {int(sim.inputs.cluster.pool[node]) for node in may_use}
    if workload.pool[job] >= 0 and _fits_on(sim, job, [n for n in up if sim.node_type[n] in types]):
        return Reason.POOL_FULL
    if workload.gpu_types[job] >= 0:
        same_pool = [n for n in up if int(sim.inputs.cluster.pool[n]) in pools]
        if _fits_on(sim, job, up if workload.pool[job] < 0 else same_pool):
            return Reason.GPU_TYPE_FULL
    return Reason.POOL_FULL if workload.pool[job] >= 0 and _fits_on(sim, job, up) else None


def _fits_on(sim: Replay, job: int, nodes: list[int]) -> bool:
    fewest = nodes_min(sim, job, nodes)
    if fewest is None:
        return False
    return place_on(sim, job, sim.free, nodes, fewest, units(sim, job)) is not None
