"""Moves (`!defrag`): running jobs make room for the head where that saves more than it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import jobs, nodes, run, starts, story

from berthline.model.schedule import PREEMPT

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

# Two nodes of two GPUs. From 10 on one GPU of each is free: job 0 is on node 0, job 2 on node 1.
SPLIT = ((0, 1000, 1), (0, 10, 1), (0, 1000, 1))


def two_nodes(**conditions: float) -> Cluster:
    return nodes(2, 2).with_conditions({"checkpoint": 0, "restart": 60, **conditions})


def test_defrag__a_move_that_pays() -> None:
    """Job 3 needs a whole node. Without a move it waits from 20 to 1000: 980 s on two GPUs.

    Either node costs one restart of 60 GPU-seconds; node 0 comes first. Job 0 has 980 s left.
    """
    assert story(run(jobs(*SPLIT, (20, 50, 2)), two_nodes(), "fcfs!defrag"))[7:] == [
        "20 submit 3",
        "20 preempt 0 (to move it)",
        "20 start 3 on 0:2",
        "20 resume 0 on 1:1",
        "70 finish 3",
        "1000 finish 2",
        "1060 finish 0",
    ]


@pytest.mark.parametrize(("submit", "is_moved"), [(969, True), (970, False), (980, False)])
def test_defrag__only_when_the_gain_exceeds_the_cost(submit: float, is_moved: bool) -> None:
    """The head saves 2 * (1000 - submit) GPU-seconds; a move costs 60."""
    log = run(jobs(*SPLIT, (submit, 50, 2)), two_nodes(), "fcfs!defrag")
    assert starts(log)[3] == (submit if is_moved else 1000)
    assert (log.kind == PREEMPT).sum() == is_moved


@pytest.mark.parametrize(("submit", "is_moved"), [(900, True), (964, True), (966, False)])
def test_defrag__lost_work_is_a_cost(submit: float, is_moved: bool) -> None:
    """With a checkpoint every 100 s up to 99 s are lost: at 964, 64 + 2 of restart against 72."""
    cluster = two_nodes(checkpoint=100, restart=2)
    log = run(jobs(*SPLIT, (submit, 50, 2)), cluster, "fcfs!defrag")
    assert starts(log)[3] == (submit if is_moved else 1000)


def test_defrag__the_cheapest_node_is_emptied() -> None:
    """Job 2 is younger: it has less to lose than job 0."""
    workload = jobs((0, 1000, 1), (0, 10, 1), (5, 1000, 1), (20, 50, 2))
    log = run(workload, two_nodes(checkpoint=1800), "fcfs!defrag")
    assert story(log)[-6:-3] == [
        "20 preempt 2 (to move it)",
        "20 start 3 on 1:2",
        "20 resume 2 on 0:1",
    ]


def test_defrag__no_more_moves_than_allowed() -> None:
    """Nodes of four with two jobs each: one of them must move both its jobs."""
    workload = jobs(*[(0, 1000, 1)] * 2, (0, 10, 2), *[(0, 1000, 1)] * 2, (20, 50, 4))
    cluster = nodes(4, 4).with_conditions({"checkpoint": 0, "restart": 60})
    assert starts(run(workload, cluster, "fcfs!defrag:moves=1"))[5] == 1000
    assert starts(run(workload, cluster, "fcfs!defrag:moves=2"))[5] == 20


def test_defrag__not_when_the_moved_job_would_find_no_place() -> None:
    """Three of the four GPUs are in use: no move makes two free on one node."""
    workload = jobs(*[(0, 1000, 1)] * 3, (20, 50, 2))
    assert starts(run(workload, two_nodes(), "fcfs!defrag"))[3] == 1000


def test_defrag__a_moved_job_may_run_slower_where_it_goes() -> None:
    """Job 0 moves from a V100 to a GPU at half the speed: 980 s become 1960 s."""
    cluster = nodes(2, 2, gpu_type=["V100", "SLOW"]).with_conditions(
        {"checkpoint": 0, "restart": 60}
    )
    workload = jobs(*SPLIT, (20, 50, 2), gpu_types=[-1, -1, -1, 0], gpu_type_sets=("V100",))
    log = run(workload, cluster, "fcfs!defrag")
    assert "20 resume 0 on 1:1" in story(log)
    assert "2040 finish 0" in story(log)
