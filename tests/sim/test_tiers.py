"""Placements by tier and score, against all placements, enumerated."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from berthline.sim.reference_tiers import (
    TierNode,
    best,
    best_candidate,
    candidates,
    objective,
    ways,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.sim.reference_tiers import Order, Placement, Tier

TIERS: tuple[Tier, ...] = (1, 2)
ORDERS: tuple[Order, ...] = ("defrag", "balance")


def cluster(*free: int, total: int = 8) -> list[TierNode]:
    """Nodes 0, 1, ... of equal size with these free GPUs, all of which the gang can take."""
    return [TierNode(node, gpus, gpus, total) for node, gpus in enumerate(free)]


@st.composite
def clusters(draw: st.DrawFn) -> list[TierNode]:
    """Nodes of few sizes, so that many are equal; on some, not all free GPUs can be used."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=2))
    nodes: list[TierNode] = []
    for _ in range(draw(st.integers(0, 5))):
        total = draw(st.sampled_from(sizes))
        free = draw(st.integers(0, total) | st.just(total))
        capacity = draw(st.just(free) | st.integers(-1, free))
        before = nodes[-1].id if nodes else -1
        nodes.append(TierNode(before + draw(st.integers(1, 3)), capacity, free, total))
    return nodes


def splits(nodes: list[TierNode], gpus: int, count: int) -> Iterator[Placement]:
    """Every placement on exactly `count` nodes."""
    for used in itertools.combinations(nodes, count):
        for shares in itertools.product(*(range(1, node.capacity + 1) for node in used)):
            if sum(shares) == gpus:
                yield {node.id: share for node, share in zip(used, shares, strict=True)}


def measure(nodes: list[TierNode], placement: Placement) -> tuple[int, int, int]:
    """Fragmented nodes, GPUs in use on them, squares of GPUs in use: of the whole cluster."""
    after = [(node.free - placement.get(node.id, 0), node.total) for node in nodes]
    partial = [(free, total) for free, total in after if 0 < free < total]
    return (
        len(partial),
        sum(total - free for free, total in partial),
        sum((total - free) ** 2 for free, total in after),
    )


def tier_of(nodes: list[TierNode], gpus: int, nodes_min: int, tier: Tier) -> list[Placement]:
    """All placements of a tier."""
    if tier == 1:
        return list(splits(nodes, gpus, nodes_min))
    fragmented = measure(nodes, {})[0]
    return [
        placement
        for placement in splits(nodes, gpus, nodes_min + 1)
        if measure(nodes, placement)[0] <= fragmented
    ]


def first(nodes: list[TierNode], placements: list[Placement], order: Order) -> Placement | None:
    """The best of these placements."""

    def key(placement: Placement) -> tuple[int, int, int, list[tuple[int, int]]]:
        fragmented, waste, squares = measure(nodes, placement)
        shares = list(placement.items())
        if order == "defrag":
            return (fragmented, waste, squares, shares)
        return (squares, fragmented, waste, shares)

    return min(placements, key=key, default=None)


# In the second example the most balanced placement on two nodes is not in tier 2.
@given(clusters(), st.integers(1, 9), st.integers(1, 3))
@example(cluster(3, 3), 4, 1)
@example(cluster(1, 2, 4, 4, total=4), 3, 1)
def test_tiers__equal_the_best_of_all_placements(
    nodes: list[TierNode], gpus: int, nodes_min: int
) -> None:
    for tier in TIERS:
        placements = tier_of(nodes, gpus, nodes_min, tier)
        assert ways(nodes, gpus, nodes_min, tier) == min(2, len(placements))
        for order in ORDERS:
            found = best(nodes, gpus, nodes_min, tier, order)
            assert found == first(nodes, placements, order)
            assert found is None or list(found) == sorted(found)


@given(clusters(), st.integers(1, 9), st.integers(1, 3), st.integers(0, 6))
def test_candidates__the_smallest_objective_and_of_equals_the_earlier_candidate(
    nodes: list[TierNode], gpus: int, nodes_min: int, next_gpus: int
) -> None:
    heads = [
        first(nodes, tier_of(nodes, gpus, nodes_min, tier), order)
        for tier in TIERS
        for order in ORDERS
    ]
    found = candidates(nodes, gpus, nodes_min)
    assert found == [
        head for i, head in enumerate(heads) if head is not None and head not in heads[:i]
    ]
    values = [objective(nodes, placement, next_gpus) for placement in found]
    expected = found[values.index(min(values))] if found else None
    assert best_candidate(nodes, gpus, nodes_min, next_gpus) == expected


def test_tier_1__splits_that_do_not_fill_the_first_node_count() -> None:
    """Free (7, 3), a gang of 8: 7+1, 6+2 and 5+3, and balance asks for the first of them.

    The node with 7 free has one GPU in use. After 7+1 the squares are 64 + 36, after 6+2 49 + 49,
    after 5+3 36 + 64. Fragmented nodes: 7+1 leaves one, 6+2 two, 5+3 one; waste 6, 14, 6.
    """
    nodes = cluster(7, 3)
    assert ways(nodes, 8, 2, 1) == 2
    assert best(nodes, 8, 2, 1, "balance") == {0: 6, 1: 2}
    assert best(nodes, 8, 2, 1, "defrag") == {0: 5, 1: 3}
    # Equal in all three scores, so the list with fewer GPUs on the first node wins.
    assert best(cluster(3, 7), 8, 2, 1, "defrag") == {0: 1, 1: 7}


def test_tier_2__holds_a_gang_that_has_no_place_in_tier_1() -> None:
    """Free (3, 3), a gang of 4: on one node it has no place; 1+3 and 3+1 fill a node, 2+2 none.

    2+2 leaves both nodes fragmented as they were, so it also belongs to tier 2, and is the most
    balanced.
    """
    nodes = cluster(3, 3)
    assert best(nodes, 4, 1, 1, "defrag") is None
    assert ways(nodes, 4, 1, 1) == 0
    assert ways(nodes, 4, 1, 2) == 2
    assert best(nodes, 4, 1, 2, "defrag") == {0: 1, 1: 3}
    assert best(nodes, 4, 1, 2, "balance") == {0: 2, 1: 2}


def test_tier_2__balance_gives_way_to_the_limit_on_fragmentation() -> None:
    """Two whole nodes and two in use: two GPUs on each whole node balance best but fragment both.

    Of the rest, one more GPU on a whole node is offset by filling the node with one free.
    """
    nodes = cluster(4, 4, 1, 2, total=4)
    without_limit = best(nodes, 3, 2, 1, "balance")
    assert without_limit == {0: 1, 1: 2}
    assert best(nodes, 3, 1, 2, "balance") == {0: 2, 2: 1}


@pytest.mark.parametrize(("free", "expected"), [((8, 8), 2), ((8, 7), 1), ((7, 7), 0)])
def test_ways__nodes_that_are_alike_are_several(free: tuple[int, ...], expected: int) -> None:
    assert ways(cluster(*free), 8, 1, 1) == expected


@pytest.mark.parametrize(("next_gpus", "node", "value"), [(1, 1, 13), (3, 0, 14)])
def test_best_candidate__the_next_gang_decides(next_gpus: int, node: int, value: int) -> None:
    """A gang of 2 on nodes of 4 with (2, 3) free leaves (0, 3) or (2, 1).

    A next gang of one: 10 + 3 * 3 - 5 and 20 + 3 * 1 - 10. A next gang of three fits only on the
    first: 10 + 9 - 5 and 20 + 3. The tier-2 placement 1 + 1 leaves (1, 2): 13 and 23, but comes
    later.
    """
    nodes = cluster(2, 3, total=4)
    assert best_candidate(nodes, 2, 1, next_gpus) == {node: 2}
    assert objective(nodes, {node: 2}, next_gpus) == value
