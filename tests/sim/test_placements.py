"""Where gangs go: each placement rule, ties, gangs over several nodes, nodes of different sizes."""

from __future__ import annotations

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, run, starts

from berthline.random_streams import stream_key, uniform


@pytest.mark.parametrize(
    ("placement", "node"), [("first-fit", 0), ("best-fit", 1), ("worst-fit", 3), ("scatter", 0)]
)
def test_one_node__each_rule_and_ties_to_the_lowest_id(placement: str, node: int) -> None:
    """Nodes with 3, 2, 2, 4, 4 and 1 GPUs; a job of two."""
    log = run(jobs((0, 1, 2)), nodes(3, 2, 2, 4, 4, 1), f"fcfs@{placement}")
    assert allocations(log) == {0: {node: 2}}


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        ("first-fit", [{0: 1}, {0: 1}, {1: 2}, {0: 1}]),
        ("best-fit", [{1: 1}, {1: 1}, {0: 2}, {0: 1}]),
        ("worst-fit", [{0: 1}, {0: 1}, {1: 2}, {0: 1}]),
    ],
)
def test_one_node__what_counts_is_what_is_free_now(
    placement: str, expected: list[dict[int, int]]
) -> None:
    """Nodes of 3 and 2 GPUs; jobs of 1, 1, 2 and 1 GPUs come in that order.

    worst-fit: node 0 has 3 free, then 2 as node 1 has: the tie goes to the lowest id.
    """
    workload = jobs((0, 9, 1), (1, 9, 1), (2, 9, 2), (3, 9, 1))
    log = run(workload, nodes(3, 2), f"fcfs@{placement}")
    assert list(allocations(log).values()) == expected


@pytest.mark.parametrize(
    ("placement", "start", "allocation"),
    [
        *((rule, 10, {0: 2}) for rule in ("first-fit", "best-fit", "worst-fit")),
        ("scatter", 2, {0: 1, 1: 1}),
    ],
)
def test_one_node__consolidated_waits_where_scatter_does_not(
    placement: str, start: float, allocation: dict[int, int]
) -> None:
    """Two nodes of two GPUs; at 2 one GPU of each is free. Job 4 needs two, so one node.

    node 0 |000000000044       node 0 |0000000000
    node 0 |1         44       node 0 |1 44
    node 1 |2222222222         node 1 |2222222222
    node 1 |3                  node 1 |3 44
            consolidated               scatter
    """
    workload = jobs((0, 10, 1), (0, 1, 1), (0, 10, 1), (0, 1, 1), (2, 2, 2))
    if placement == "worst-fit":  # it fills the nodes in turn
        workload = jobs((0, 10, 1), (0, 10, 1), (0, 1, 1), (0, 1, 1), (2, 2, 2))
    log = run(workload, nodes(2, 2), f"fcfs@{placement}")
    assert starts(log)[4] == start
    assert allocations(log)[4] == allocation


def test_scatter__walks_the_nodes_by_id_and_takes_what_is_free() -> None:
    workload = jobs((0, 9, 1), (1, 9, 4), (2, 9, 1))
    log = run(workload, nodes(2, 2, 2), "fcfs@scatter")
    assert allocations(log) == {0: {0: 1}, 1: {0: 1, 1: 2, 2: 1}, 2: {2: 1}}


@pytest.mark.parametrize("cluster", [nodes(*[4] * 6), nodes(*[4] * 80)], ids=["6", "80"])
def test_random__draws_depend_on_seed_job_and_step_only(cluster) -> None:
    workload = jobs((0, 9, 3), (0, 9, 4), (1, 9, 7), (2, 9, 1))
    seen = set()
    for seed in range(6):
        key = stream_key(seed, "placement")
        log = run(workload, cluster, "fcfs@random", seed=seed)
        free = dict.fromkeys(range(cluster.num_nodes), 4)
        for job, allocation in allocations(log).items():
            left = int(workload.gpus[job])
            for step, (node, gpus) in enumerate(allocation.items()):
                at_least = left - (4 if len(allocation) - step == 2 else 0)
                fitting = [n for n in free if free[n] >= at_least and n not in [*allocation][:step]]
                assert node == fitting[int(uniform(key, job, step) * len(fitting))]
                left -= gpus
            for node, gpus in allocation.items():
                free[node] -= gpus
        seen.add(tuple(tuple(a.items()) for a in allocations(log).values()))
    assert len(seen) > 3, "other seeds, other nodes"


@pytest.mark.parametrize("count", [3, 40], ids=["scanned", "indexed"])
@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(4, {0: 4}), (5, {0: 4, 1: 1}), (8, {0: 4, 1: 4}), (9, {0: 4, 1: 4, 2: 1})],
)
def test_gang__over_the_fewest_nodes(gpus: int, expected: dict[int, int], count: int) -> None:
    """Nodes of four GPUs; the first is filled, then the next."""
    log = run(jobs((0, 1, gpus)), nodes(*[4] * count), "fcfs")
    assert allocations(log) == {0: expected}


def test_gang__never_takes_more_nodes_than_it_needs() -> None:
    """Three nodes of four GPUs; one GPU of each is busy until 9. Eight GPUs need two whole nodes.

    Nine GPUs are free from the start, but on three nodes: job 3 waits until 9.
    """
    workload = jobs((0, 9, 3), (0, 9, 3), (0, 9, 3), (1, 9, 8))
    log = run(workload, nodes(4, 4, 4), "fcfs")
    assert starts(log)[3] == 9
    assert allocations(log)[3] == {0: 4, 1: 4}
    # Six GPUs could take 4 + 2, or 3 + 3: never 3 + 2 + 1.
    workload = jobs((0, 9, 2), (0, 9, 2), (0, 9, 3), (1, 9, 6))
    log = run(workload, nodes(4, 4, 4), "fcfs@worst-fit")
    assert starts(log)[3] == 9


@pytest.mark.parametrize(
    ("gpus", "placement", "expected"),
    [
        # 10 = 8 + 2: the first node must hold what the largest other (8) cannot: at least 2.
        (10, "first-fit", {0: 2, 1: 8}),
        (10, "best-fit", {0: 2, 1: 8}),
        (10, "worst-fit", {1: 8, 2: 2}),
        # 12 = 8 + 4: the node of two GPUs cannot be one of two.
        (12, "first-fit", {1: 8, 2: 4}),
        (12, "best-fit", {2: 4, 1: 8}),
        (12, "worst-fit", {1: 8, 2: 4}),
        # 13 needs three nodes; any node may be one of them, if the others are large enough.
        (13, "first-fit", {0: 2, 1: 8, 2: 3}),
        (13, "best-fit", {0: 2, 2: 4, 1: 7}),
        (13, "worst-fit", {1: 8, 2: 4, 3: 1}),
        (16, "first-fit", {1: 8, 2: 4, 3: 4}),
        (18, "first-fit", {0: 2, 1: 8, 2: 4, 3: 4}),
        (18, "scatter", {0: 2, 1: 8, 2: 4, 3: 4}),
        (10, "scatter", {0: 2, 1: 8}),
    ],
)
@pytest.mark.parametrize("more", [0, 16], ids=["scanned", "indexed"])
def test_gang__on_nodes_of_different_sizes(
    gpus: int, placement: str, expected: dict[int, int], more: int
) -> None:
    """Nodes of 2, 8, 4 and 4 GPUs (and of one GPU, which these gangs cannot use)."""
    if more and placement == "best-fit" and gpus == 13:
        expected = {4: 1, 2: 4, 1: 8}  # here one of the small nodes can be the third
    log = run(jobs((0, 1, gpus)), nodes(2, 8, 4, 4, *[1] * more), f"fcfs@{placement}")
    assert allocations(log) == {0: expected}
    assert list(allocations(log)[0]) == list(expected), "in the order in which they were taken"


def test_gang__waits_for_the_large_node_that_makes_it_fit() -> None:
    """Nodes of 2, 8, 4 and 4. While the large one is busy, ten GPUs would need three nodes.

    2 GPUs |          1111111111     2 GPUs |0000000000
    8 GPUs |00000000001111111111     8 GPUs |0111111111 (6 GPUs of job 0, 2 of job 1)
    4 GPUs |                         4 GPUs | 1111111111
    4 GPUs |                         4 GPUs | 1111111111
            consolidated                     scatter
    """
    workload = jobs((0, 10, 8), (1, 10, 10))
    log = run(workload, nodes(2, 8, 4, 4), "fcfs")
    assert starts(log) == {0: 0, 1: 10}
    assert allocations(log) == {0: {1: 8}, 1: {0: 2, 1: 8}}
    scattered = run(workload, nodes(2, 8, 4, 4), "fcfs@scatter")
    assert starts(scattered) == {0: 0, 1: 1}
    assert allocations(scattered) == {0: {0: 2, 1: 6}, 1: {1: 2, 2: 4, 3: 4}}


@pytest.mark.parametrize("count", [8, 40], ids=["scanned", "indexed"])
def test_gang__larger_than_64_fits_where_a_small_one_does_not(count: int) -> None:
    """Nodes of 12 GPUs, one busy on each. 12 GPUs need a whole node; 76 = 64 + 12 need seven.

    Seven nodes have 77 free GPUs, so the large gang starts and the small one waits.
    """
    workload = jobs(*[(0, 100, 1)] * count, (1, 10, 12), (2, 10, 76), (3, 10, 12))
    log = run(workload, nodes(*[12] * count), "fcfs+skip@worst-fit")
    assert starts(log)[count] == 100
    assert starts(log)[count + 1] == 2
    assert starts(log)[count + 2] == 100
    assert allocations(log)[count + 1] == {**dict.fromkeys(range(6), 11), 6: 10}
