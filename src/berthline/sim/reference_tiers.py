"""Placements by tier and score, as the reference simulator defines them.

Tier 1 holds the placements of a gang on exactly as many nodes as it needs on an empty cluster,
tier 2 those on one node more that leave no more nodes fragmented than before. Tiers and scores are
those of RLTune's allocator, but complete: every split of the gang over the nodes counts.

`native/src/place/tiers.cpp` must give the same results, by another algorithm.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

Order = Literal["defrag", "balance"]
Tier = Literal[1, 2]
TIERS: tuple[Tier, ...] = (1, 2)
"""In the order in which they are tried."""
Placement = dict[int, int]  # node -> GPUs, by node

PLACEMENTS_IN_TIERS = ("defrag", "balance", "milp-candidates")


class TierNode(NamedTuple):
    """A node the gang may use; functions here take nodes in the order of their ids."""

    id: int
    capacity: int  # GPUs of this gang it can take now; none if not positive
    free: int  # whole GPUs, at least `capacity`
    total: int


def is_fragmented(free: int, total: int) -> bool:
    """Tell whether some of the node's GPUs are in use and some are not."""
    return 0 < free < total


def scores(node: TierNode, share: int) -> tuple[int, int, int]:
    """Return what taking `share` GPUs of the node changes; smaller is better in each of them.

    Returns:
        The change of the number of fragmented nodes, of the GPUs in use on fragmented nodes
        (waste), and of the sum of squares of the GPUs in use on a node (balance).
    """
    before, after = node.free, node.free - share
    was, becomes = is_fragmented(before, node.total), is_fragmented(after, node.total)
    return (
        becomes - was,
        becomes * (node.total - after) - was * (node.total - before),
        (node.total - after) ** 2 - (node.total - before) ** 2,
    )


def best(
    nodes: Sequence[TierNode], gpus: int, nodes_min: int, tier: Tier, order: Order
) -> Placement | None:
    """Return the best placement of a tier; None = the tier is empty.

    Ties go to the smallest list of (node, GPUs), by node.

    Nodes are processed from the last to the first. For every (nodes used, GPUs placed, change of
    fragmentation) only the best way to get there is kept. The change of fragmentation is part of
    that state because tier 2 limits it: the best by balance alone may break the limit, and what
    replaces it need not be second best on any part of the nodes.

    Args:
        nodes: the nodes the gang may use, by id.
        gpus: size of the gang, at least 1.
        nodes_min: fewest nodes that hold the gang on an empty cluster, at least 1.
        tier: 1 or 2.
        order: `defrag` ranks by (fragmentation, waste, balance), `balance` by (balance,
            fragmentation, waste).
    """
    count = nodes_min + tier - 1
    most = largest_sums(nodes, count)
    # (nodes used, GPUs placed, change of fragmentation) -> (ranked scores, shares)
    found: dict[tuple[int, int, int], tuple[tuple[int, ...], tuple[tuple[int, int], ...]]]
    found = {(0, 0, 0): ((0, 0, 0), ())}
    for node in reversed(first_of_each_kind(nodes, count)):
        for (used, placed, changed), (score, shares) in list(found.items()):
            for share in range(1, min(node.capacity, gpus - placed) + 1):
                rest = count - used - 1
                if rest < 0 or placed + share + most[rest] < gpus:
                    continue
                fragmentation, waste, balance = scores(node, share)
                ranked = (
                    (fragmentation, waste, balance)
                    if order == "defrag"
                    else (balance, fragmentation, waste)
                )
                state = (used + 1, placed + share, changed + fragmentation)
                way = (tuple(map(operator.add, score, ranked)), ((node.id, share), *shares))
                found[state] = min(way, found.get(state, way))
    complete = [
        way
        for (used, placed, changed), way in found.items()
        if used == count and placed == gpus and (tier == 1 or changed <= 0)
    ]
    return dict(min(complete)[1]) if complete else None


def ways(nodes: Sequence[TierNode], gpus: int, nodes_min: int, tier: Tier) -> int:
    """Return how many placements a tier holds: 0, 1, or 2 for several."""
    count = nodes_min + tier - 1
    most = largest_sums(nodes, count)
    known = {(0, 0, 0): 1}  # (nodes used, GPUs placed, change of fragmentation) -> ways
    # One node more of each kind than can be used, so that exchangeable nodes count as several ways.
    for node in first_of_each_kind(nodes, count + 1):
        for (used, placed, changed), number in list(known.items()):
            for share in range(1, min(node.capacity, gpus - placed) + 1):
                rest = count - used - 1
                if rest < 0 or placed + share + most[rest] < gpus:
                    continue
                state = (used + 1, placed + share, changed + scores(node, share)[0])
                known[state] = known.get(state, 0) + number
    number = sum(
        number
        for (used, placed, changed), number in known.items()
        if used == count and placed == gpus and (tier == 1 or changed <= 0)
    )
    return min(2, number)


def candidates(nodes: Sequence[TierNode], gpus: int, nodes_min: int) -> list[Placement]:
    """Return the best of tier 1 by defrag and by balance, then of tier 2; each placement once."""
    orders: tuple[Order, ...] = ("defrag", "balance")
    found: list[Placement] = []
    for tier in TIERS:
        for order in orders:
            placement = best(nodes, gpus, nodes_min, tier, order)
            if placement is not None and placement not in found:
                found.append(placement)
    return found


def best_candidate(
    nodes: Sequence[TierNode], gpus: int, nodes_min: int, next_gpus: int
) -> Placement | None:
    """Return the candidate with the smallest objective, the earlier one of equals.

    This is the optimum of RLTune's mixed-integer program, whose only free choice is the candidate.

    Args:
        nodes: the nodes the gang may use, by id.
        gpus: size of the gang.
        nodes_min: fewest nodes that hold the gang on an empty cluster.
        next_gpus: size of the next gang; 0 = there is none, and every node counts the same.
    """
    found = candidates(nodes, gpus, nodes_min)
    return min(found, key=lambda placement: objective(nodes, placement, next_gpus), default=None)


def objective(nodes: Sequence[TierNode], placement: Placement, next_gpus: int) -> int:
    """Return 10 x RLTune's objective, so that it is a whole number.

    The objective is fragmented + 0.3 * (max(free) - min(free)) - 0.5 * fitting, over all nodes
    after the placement; `fitting` counts the nodes on which the next gang fits.
    """
    free = [node.free - placement.get(node.id, 0) for node in nodes]
    fragmented = sum(
        is_fragmented(left, node.total) for left, node in zip(free, nodes, strict=True)
    )
    fitting = sum(left >= next_gpus for left in free)
    return 10 * fragmented + 3 * (max(free) - min(free)) - 5 * fitting


def first_of_each_kind(nodes: Sequence[TierNode], most: int) -> list[TierNode]:
    """Return, of nodes that differ only in their ids, the first `most`.

    A placement on `most` nodes that uses a later one has an unused earlier one of that kind: moving
    the share to it changes no score and makes the list of shares smaller.
    """
    seen: dict[tuple[int, int, int], int] = {}
    first = []
    for node in nodes:
        kind = node[1:]
        seen[kind] = seen.get(kind, 0) + 1
        if node.capacity > 0 and seen[kind] <= most:
            first.append(node)
    return first


def largest_sums(nodes: Sequence[TierNode], most: int) -> list[int]:
    """Return the GPUs that 0, 1, ..., `most` nodes can take at most."""
    capacities = sorted((max(node.capacity, 0) for node in nodes), reverse=True)
    return [sum(capacities[:count]) for count in range(most + 1)]
