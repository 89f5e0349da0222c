"""Placement in the reference simulator: on which nodes a job can go, and on which it goes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import FALLBACK, WHOLE_GPUS
from berthline.policies.rules import PLACEMENTS_BY_JOB_MIX
from berthline.random_streams import uniform
from berthline.sim.quotas import ANY_TYPE
from berthline.sim.reference_fgd import growth
from berthline.sim.reference_state import NEW_SLOT, Allocation, Free, Share
from berthline.sim.reference_tiers import (
    PLACEMENTS_IN_TIERS,
    TIERS,
    Order,
    TierNode,
    best,
    best_candidate,
)
from berthline.sim.reference_words import NODE_WORDS, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.sim.reference import Simulation


def units(sim: Simulation, job: int) -> int:
    """The pieces in which the job is placed: its GPUs; 1 for a part of a GPU or no GPU."""
    return max(sim.gpus[job], 1)


def capacity(sim: Simulation, job: int, node: int, free: Free) -> int:
    """How many pieces of the job a node can take, with their CPUs and memory."""
    if sim.gpus[job] == 0:
        most = 1
    elif sim.gpu_milli[job] < 1000:
        fits = any(left >= sim.gpu_milli[job] for left in free.shared[node].values())
        most = int(fits or free.gpus[node] > 0)
    else:
        most = free.gpus[node]
    pieces = units(sim, job)
    if sim.cpus[job] and sim.total.cpus[node]:
        most = min(most, free.cpus[node] * pieces // sim.cpus[job])
    if sim.memory_mib[job] and sim.total.memory_mib[node]:
        most = min(most, free.memory_mib[node] * pieces // sim.memory_mib[job])
    return most


def nodes_min(sim: Simulation, job: int, nodes: Iterable[int]) -> int | None:
    """Fewest of these nodes that hold the job when all are empty; None = they cannot."""
    left, count = units(sim, job), 0
    for most in sorted((capacity(sim, job, node, sim.total) for node in nodes), reverse=True):
        if left <= 0:
            break
        left -= most
        count += 1
    return count if left <= 0 else None


def never_fits(sim: Simulation, job: int) -> int | None:
    """Return why the job cannot run even on an empty cluster; None = it can.

    Also records the fewest nodes that hold it, in its own pool and with borrowed nodes; nodes that
    its quotas never let it use do not count.
    """
    own = sim.job_class[job]
    if sim.inputs.class_reason[own] >= 0:
        return int(sim.inputs.class_reason[own])
    borrowed = int(sim.inputs.borrow_class[own])
    last = sim.nodes_of_class[borrowed if borrowed >= 0 else own]
    fewest = nodes_min(sim, job, last)
    if fewest is None:
        if sum(sim.total.gpus[node] for node in last) < sim.gpus[job]:
            return 2
        needed, sim.memory_mib[job] = sim.memory_mib[job], 0
        without_memory = sum(capacity(sim, job, node, sim.total) for node in last)
        sim.memory_mib[job] = needed
        return 3 if without_memory < units(sim, job) else 4
    if fewest > sim.conditions.max_nodes:
        return 5
    closed = closed_types(sim, job, [0] * len(sim.quota_used))
    if closed is None:
        return 6
    for job_class in (own, borrowed):
        if job_class >= 0:
            nodes = sim.nodes_of_class[job_class]
            found = nodes_min(sim, job, [n for n in nodes if sim.node_type[n] not in closed])
            if found is not None and found <= sim.conditions.max_nodes:
                sim.nodes_min[job, job_class] = found
    return None if (job, own) in sim.nodes_min or (job, borrowed) in sim.nodes_min else 6


def closed_types(sim: Simulation, job: int, used: list[int]) -> set[int] | None:
    """Return the GPU types whose quota has no room for the job; None = it may not start at all."""
    closed = set()
    need = sim.milli(job)
    for counter in sim.inputs.quotas.of_job(job):
        if used[counter] + need > sim.inputs.quotas.limit[counter]:
            kind = int(sim.inputs.quotas.gpu_type[counter])
            if kind == ANY_TYPE:
                return None
            closed.add(kind)
    return closed


def place(sim: Simulation, job: int, free: Free, *, own_nodes: bool = False) -> Allocation | None:
    """Return an allocation of the job within what is free; None = it does not fit.

    The nodes of its own pool come first; then, unless `own_nodes`, also those it may borrow.
    """
    for nodes, fewest in choices_of_nodes(sim, job, own_nodes=own_nodes):
        allocation = place_on(sim, job, free, nodes, fewest, units(sim, job))
        if allocation:
            return allocation
    return None


def choices_of_nodes(
    sim: Simulation, job: int, *, own_nodes: bool = False
) -> list[tuple[list[int], int]]:
    """Return nodes open to a job and how many it needs: its own, then with borrowed ones."""
    closed = closed_types(sim, job, sim.quota_used)
    if closed is None:
        return []
    own = sim.job_class[job]
    return [
        (
            [
                node
                for node in sim.nodes_of_class[job_class]
                if sim.up[node] and sim.node_type[node] not in closed
            ],
            sim.nodes_min[job, job_class],
        )
        for job_class in ((own,) if own_nodes else (own, int(sim.inputs.borrow_class[own])))
        if (job, job_class) in sim.nodes_min
    ]


def place_on(
    sim: Simulation, job: int, free: Free, nodes: list[int], fewest: int, left: int
) -> Allocation | None:
    """Return where the placement rule puts `left` pieces of a job, on `fewest` of these nodes."""
    rule = sim.scheduler.placement
    room = {node: capacity(sim, job, node, free) for node in nodes}
    if rule == "scatter":
        allocation = []
        for node, most in room.items():
            if left and most:
                allocation.append(share_on(sim, job, node, min(most, left), free))
                left -= min(most, left)
        return None if left else allocation
    if rule == "rack-aware":
        nodes = _best_rack(sim, free, room, fewest, left)
    elif rule in PLACEMENTS_IN_TIERS and sim.milli(job) >= 1000:
        return _tiers(sim, job, free, room, fewest)
    return _node_by_node(sim, job, free, {node: room[node] for node in nodes}, fewest, left)


def _node_by_node(
    sim: Simulation, job: int, free: Free, room: dict[int, int], fewest: int, left: int
) -> Allocation | None:
    """Place on exactly the fewest nodes the job needs on an empty cluster.

    One node after another, each as full as possible; a node qualifies if the largest others can
    hold the rest.
    """
    if sum(sorted(room.values(), reverse=True)[:fewest]) < left:
        return None
    room = room.copy()
    allocation: Allocation = []
    for others in reversed(range(fewest)):
        nodes = qualifying(room, left, others)
        node = _pick(sim, job, nodes, free, len(allocation), left, room)
        pieces = min(room.pop(node), left)
        allocation.append(share_on(sim, job, node, pieces, free))
        left -= pieces
    return allocation


def qualifying(room: dict[int, int], left: int, others: int) -> list[int]:
    """Return the nodes with enough room that the `others` largest ones can hold the rest."""
    at_least = left - sum(sorted(room.values(), reverse=True)[:others])
    return [node for node, most in room.items() if most >= at_least]


def _pick(
    sim: Simulation,
    job: int,
    nodes: list[int],
    free: Free,
    step: int,
    left: int,
    room: dict[int, int],
) -> int:
    """Choose among nodes (by id) by the placement rule; ties go to the lowest id."""
    rule = sim.scheduler.placement
    if rule == "worst-fit":
        return max(nodes, key=free.milli)
    if rule == "random":
        draw = uniform(sim.inputs.placement_key, int(sim.inputs.draw[job]), step)
        return nodes[int(draw * len(nodes))]
    if rule == "formula":
        return min(nodes, key=lambda node: _node_value(sim, job, node, free))
    if rule in PLACEMENTS_BY_JOB_MIX:
        return min(nodes, key=lambda node: growth(sim, job, node, min(room[node], left), free)[0])
    if rule in ("first-fit", "first-available"):
        return nodes[0]
    return min(nodes, key=free.milli)  # best-fit, and within the other rules


def _node_value(sim: Simulation, job: int, node: int, free: Free) -> float:
    formula = sim.scheduler.node_order
    assert formula is not None
    value = formula.evaluate(
        lambda word: float(
            NODE_WORDS[word](sim, node, free) if word in NODE_WORDS else WORDS[word](sim, job)
        )
    )
    return math.inf if math.isnan(value) else value


def share_on(sim: Simulation, job: int, node: int, pieces: int, free: Free) -> Share:
    """Return what the job holds on a node; for a part of a GPU also on which GPU."""
    if sim.gpus[job] == 0:
        return Share(node, 0)
    if sim.gpu_milli[job] == 1000:
        return Share(node, pieces)
    if sim.scheduler.placement in PLACEMENTS_BY_JOB_MIX:
        return Share(node, 1, growth(sim, job, node, 1, free)[1])
    fitting = [
        (left, slot) for slot, left in free.shared[node].items() if left >= sim.gpu_milli[job]
    ]
    return Share(node, 1, min(fitting)[1] if fitting else NEW_SLOT)


def _best_rack(
    sim: Simulation, free: Free, room: dict[int, int], fewest: int, left: int
) -> list[int]:
    """Return the nodes of the rack with the fewest free GPUs that holds the job; else all."""
    racks: dict[int, list[int]] = {}
    for node in room:
        racks.setdefault(sim.rack[node], []).append(node)
    fitting = [
        (sum(free.milli(node) for node in nodes), rack)
        for rack, nodes in racks.items()
        if sum(sorted((room[node] for node in nodes), reverse=True)[:fewest]) >= left
    ]
    return racks[min(fitting)[1]] if fitting else list(room)


def _tiers(
    sim: Simulation, job: int, free: Free, room: dict[int, int], fewest: int
) -> Allocation | None:
    nodes = [
        TierNode(node, most, free.gpus[node], sim.total.gpus[node]) for node, most in room.items()
    ]
    if sim.scheduler.placement == "milp-candidates":
        found = best_candidate(nodes, sim.gpus[job], fewest, sim.next_gpus(job))
    else:
        order: Order = "balance" if sim.scheduler.placement == "balance" else "defrag"
        by_tier = (best(nodes, sim.gpus[job], fewest, tier, order) for tier in TIERS)
        found = next(filter(None, by_tier), None)
    return [Share(node, gpus) for node, gpus in found.items()] if found else None


def planned(
    sim: Simulation, job: int, jobs: list[int], allocation: Allocation, free: Free
) -> Allocation:
    """Return where the job goes: by its rule, or by a plan for it and the next jobs."""
    if sim.inputs.plan is None or sim.milli(job) < 1000:
        return allocation
    following = jobs[jobs.index(job) :]
    found = sim.inputs.plan(
        following,
        np.array([gpus if up else 0 for gpus, up in zip(free.gpus, sim.up, strict=True)]),
        np.array(free.cpus),
        np.array(free.memory_mib),
    )
    if isinstance(found, int):
        sim.write(FALLBACK, job, found)
        return allocation
    return [Share(node, gpus) for node, gpus in found]


def change(sim: Simulation, free: Free, job: int, allocation: Allocation, sign: int) -> None:
    """Add (+1) or remove (-1) an allocation from what is free."""
    pieces = units(sim, job)
    for node, gpus, slot in allocation:
        if slot == WHOLE_GPUS:
            free.gpus[node] += sign * gpus
        else:
            _change_slot(free, node, slot, sign * sim.gpu_milli[job])
        # A node's part of the gang's CPUs and memory is in proportion, rounded up.
        part = max(gpus, 1)
        free.cpus[node] += sign * -(-sim.cpus[job] * part // pieces)
        free.memory_mib[node] += sign * -(-sim.memory_mib[job] * part // pieces)


def _change_slot(free: Free, node: int, slot: int, milli: int) -> None:
    slots = free.shared[node]
    if slot == NEW_SLOT:
        slot = unused_slot(free, node)
    if slot not in slots:  # an unused GPU becomes a shared one
        free.gpus[node] -= 1
        slots[slot] = 1000
    slots[slot] += milli
    if slots[slot] == 1000:
        del slots[slot]
        free.gpus[node] += 1


def unused_slot(free: Free, node: int) -> int:
    """Return the lowest number that no shared GPU of the node has."""
    slot = 0
    while slot in free.shared[node]:
        slot += 1
    return slot
