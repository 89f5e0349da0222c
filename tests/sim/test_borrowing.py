"""Pools that borrow and lend: own nodes first, lent ones when idle, returned on demand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tests.sim.scenarios import allocations, jobs, nodes, rejections, run, starts, story

from berthline.model.limits import PoolRules

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

POOLS = ("red", "blue", "grey")
BORROW = {"red": PoolRules(borrow=True), "blue": PoolRules(lend=True)}


def pools(*names: str, rules: dict[str, PoolRules] = BORROW) -> Cluster:
    """Return nodes of two GPUs in these pools; a preemption costs a restart of 5 s, no work."""
    cluster = nodes(*[2] * len(names), pool=names)
    cluster = cluster.with_conditions({"checkpoint": 0, "restart": 5})
    return dataclasses.replace(cluster, pool_rules=rules)


def test_borrow__own_nodes_come_first_then_those_of_lenders() -> None:
    """Grey does not lend, so red's third job waits, until red's own node is free."""
    workload = jobs(*[(0, 10, 2)] * 3, pool=0, pool_names=POOLS)
    log = run(workload, pools("blue", "grey", "red"), "fcfs")
    assert allocations(log) == {0: {2: 2}, 1: {0: 2}, 2: {2: 2}}
    assert starts(log) == {0: 0, 1: 0, 2: 10}


def test_borrow__is_for_pools_that_may() -> None:
    """Blue lends but does not borrow; nor does red without its rule."""
    workload = jobs(*[(0, 10, 2)] * 2, pool=1, pool_names=POOLS)
    assert starts(run(workload, pools("blue", "red"), "fcfs")) == {0: 0, 1: 10}
    workload = jobs(*[(0, 10, 2)] * 2, pool=0, pool_names=POOLS)
    rules = {"blue": PoolRules(lend=True)}
    assert starts(run(workload, pools("blue", "red", rules=rules), "fcfs")) == {0: 0, 1: 10}


def test_borrow__a_gang_may_be_on_own_and_on_lent_nodes() -> None:
    """Four GPUs are more than red has; with blue's it can be placed. Six can never be."""
    workload = jobs((0, 10, 4), (0, 10, 6), pool=0, pool_names=POOLS)
    log = run(workload, pools("blue", "red"), "fcfs")
    assert allocations(log) == {0: {0: 2, 1: 2}}
    assert rejections(log) == {1: "more GPUs than the nodes it may use have"}


def test_borrow__nothing_is_given_back_without_a_rule() -> None:
    workload = jobs((0, 100, 2), (0, 100, 2), (10, 30, 2), pool=[0, 0, 1], pool_names=POOLS)
    log = run(workload, pools("red", "blue"), "fcfs")
    assert starts(log) == {0: 0, 1: 0, 2: 100}


def test_reclaim__the_owner_takes_its_node_back() -> None:
    """Job 1 has borrowed blue's node for 10 s when job 2 of blue comes.

    It resumes at 40, on blue's node again, with 5 s for the restart and 90 s of work left.
    """
    workload = jobs((0, 100, 2), (0, 100, 2), (10, 30, 2), pool=[0, 0, 1], pool_names=POOLS)
    assert story(run(workload, pools("red", "blue"), "fcfs!reclaim")) == [
        "0 submit 0",
        "0 submit 1",
        "0 start 0 on 0:2",
        "0 start 1 on 1:2",
        "10 submit 2",
        "10 preempt 1 (for another job)",
        "10 start 2 on 1:2",
        "40 finish 2",
        "40 resume 1 on 1:2",
        "100 finish 0",
        "135 finish 1",
    ]


def test_reclaim__is_not_for_borrowers_and_not_from_owners() -> None:
    """Job 2 of red cannot take back what red's job 1 borrowed, nor blue what blue holds itself."""
    workload = jobs(
        *((0, 50, 2), (0, 60, 2), (10, 5, 2), (10, 5, 2)), pool=[0, 1, 0, 1], pool_names=POOLS
    )
    log = run(workload, pools("red", "blue"), "fcfs+skip!reclaim")
    assert starts(log) == {0: 0, 1: 0, 2: 50, 3: 60}


def test_reclaim__takes_a_gang_that_is_partly_at_home() -> None:
    """Job 0 holds red's node and blue's: it stops as a whole, and cannot resume before 40."""
    workload = jobs((0, 100, 4), (10, 30, 1), pool=[0, 1], pool_names=POOLS)
    assert story(run(workload, pools("red", "blue"), "fcfs!reclaim"))[2:] == [
        "10 submit 1",
        "10 preempt 0 (for another job)",
        "10 start 1 on 1:1",
        "40 finish 1",
        "40 resume 0 on 0:2 1:2",
        "135 finish 0",
    ]
