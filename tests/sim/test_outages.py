"""Failures and outages: what stops, what is lost, when it resumes, and when nodes fail."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.sim.scenarios import allocations, finishes, jobs, nodes, run, starts, story

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.limits import Outage
from berthline.model.schedule import FINISH, NODE_DOWN, NODE_UP
from berthline.sim.outages import outages


def with_outages(cluster: Cluster, *rows: tuple[float, float, tuple[int, ...]]) -> Cluster:
    """Return the cluster with outages (down, up, nodes); 20 s checkpoints, 5 s restarts."""
    given = tuple(Outage(down=down, up=up, nodes=which) for down, up, which in rows)
    conditions = {"checkpoint": 20, "restart": 5}
    return dataclasses.replace(cluster, outages=given).with_conditions(conditions)


def test_outage__stops_the_whole_gang_and_costs_what_was_not_saved() -> None:
    """30 of 100 s are done, 20 are saved; it resumes at 50, makes progress from 55, for 80 s."""
    cluster = with_outages(nodes(2, 2), (30, 50, (1,)))
    assert story(run(jobs((0, 100, 4)), cluster, "fcfs")) == [
        "0 submit 0",
        "0 start 0 on 0:2 1:2",
        "30 node down 1",
        "30 preempt 0 (its node went down)",
        "50 node up 1",
        "50 resume 0 on 0:2 1:2",
        "135 finish 0",
    ]


def test_outage__its_jobs_go_on_where_there_is_room_next() -> None:
    """Two jobs stop, by id; they wait again, before jobs that were submitted later."""
    cluster = with_outages(nodes(2, 2, 1), (30, np.inf, (0,)))
    workload = jobs((0, 100, 1), (0, 40, 1), (0, 50, 1), (0, 100, 1), (0, 100, 1))
    assert story(run(workload, cluster, "fcfs"))[10:18] == [
        "30 node down 0",
        "30 preempt 0 (its node went down)",
        "30 preempt 1 (its node went down)",
        "50 finish 2",
        "50 resume 0 on 1:1",
        "100 finish 3",
        "100 finish 4",
        "100 resume 1 on 1:1",
    ]


def test_outage__of_a_rack_takes_all_its_nodes_at_one_instant() -> None:
    cluster = Cluster.from_groups([NodeGroup(count=4, gpus=1, nodes_per_rack=2)])
    cluster = with_outages(cluster, (10, 20, (0, 1)))
    workload = jobs(*[(0, 15, 1)] * 4)
    assert story(run(workload, cluster, "fcfs"))[8:] == [
        "10 node down 0",
        "10 preempt 0 (its node went down)",
        "10 node down 1",
        "10 preempt 1 (its node went down)",
        "15 finish 2",
        "15 finish 3",
        "15 resume 0 on 2:1",
        "15 resume 1 on 3:1",
        "20 node up 0",
        "20 node up 1",
        "35 finish 0",
        "35 finish 1",
    ]


def test_outage__for_ever_leaves_the_job_unfinished_and_counted() -> None:
    cluster = with_outages(nodes(1), (10, np.inf, (0,)))
    workload = jobs((0, 15, 1), (20, 5, 1))
    log = run(workload, cluster, "fcfs")
    assert story(log)[2:] == [
        "10 node down 0",
        "10 preempt 0 (its node went down)",
        "20 submit 1",
    ]
    counts = bl.simulate(workload, cluster, "fcfs").metrics().jobs
    assert (counts.submitted, counts.completed, counts.rejected, counts.unfinished) == (2, 0, 0, 2)


def test_outage__a_job_that_ends_as_its_node_goes_down_has_ended() -> None:
    """At one instant jobs end, then nodes come back, then nodes go down, then jobs arrive."""
    cluster = with_outages(nodes(1, 1), (0, 30, (0,)), (30, 40, (1,)))
    assert story(run(jobs((0, 30, 1), (30, 5, 1)), cluster, "fcfs")) == [
        "0 node down 0",
        "0 submit 0",
        "0 start 0 on 1:1",
        "30 finish 0",
        "30 node up 0",
        "30 node down 1",
        "30 submit 1",
        "30 start 1 on 0:1",
        "35 finish 1",
    ]


def test_outage__jobs_wait_for_nodes_that_are_down_and_are_not_rejected() -> None:
    cluster = with_outages(nodes(2, 4), (0, 60, (1,)))
    workload = jobs((5, 10, 4), (6, 10, 1), (7, 10, 9))
    log = run(workload, cluster, "fcfs+skip")
    assert starts(log) == {0: 60, 1: 6}
    assert allocations(log)[1] == {0: 1}


def test_outage__easy_reserves_nothing_for_a_head_that_fits_on_no_node_that_is_up() -> None:
    """It is not known when node 1 comes back: job 1 passes, however long it runs."""
    cluster = with_outages(nodes(2, 4), (0, 60, (1,)))
    for discipline in ("easy", "conservative"):
        log = run(jobs((5, 10, 4), (6, 500, 1)), cluster, f"fcfs+{discipline}")
        assert starts(log) == {0: 60, 1: 6}


def test_outages__that_overlap_are_one() -> None:
    cluster = with_outages(nodes(1), (10, 30, (0,)), (20, 40, (0,)), (40, 50, (0,)), (60, 61, (0,)))
    found = outages(cluster, seed=0, until=100)
    assert found.time.tolist() == [10, 50, 60, 61]
    assert found.up.tolist() == [0, 1, 0, 1]


def test_failures__have_the_means_that_were_asked_for() -> None:
    """About 2,000 failures of 40 nodes: times between and to repair within 10 % of their means."""
    cluster = Cluster.uniform(nodes=40, gpus_per_node=1)
    cluster = cluster.with_conditions({"mtbf": 900, "mttr": 100})
    found = outages(cluster, seed=3, until=50_000)
    between, repair = [], []
    for node in range(40):
        times = found.time[found.node == node]
        assert (np.diff(times) > 0).all()
        assert found.up[found.node == node].tolist() == [0, 1] * (len(times) // 2)
        between += np.diff(times, prepend=0.0)[0::2].tolist()
        repair += np.diff(times, prepend=0.0)[1::2].tolist()
    assert len(between) == pytest.approx(40 * 50_000 / 1000, rel=0.1)
    assert np.mean(between) == pytest.approx(900, rel=0.1)
    assert np.mean(repair) == pytest.approx(100, rel=0.1)
    assert np.std(repair) == pytest.approx(100, rel=0.15), "exponential, not constant"


def test_failures__of_a_rack_are_those_of_all_its_nodes() -> None:
    cluster = Cluster.from_groups([NodeGroup(count=6, gpus=1, nodes_per_rack=2)])
    cluster = cluster.with_conditions({"rack_mtbf": 500, "rack_mttr": 50})
    found = outages(cluster, seed=1, until=5000)
    times = [found.time[found.node == node].tolist() for node in range(6)]
    assert times[0] == times[1] != times[2] == times[3] != times[4] == times[5]
    assert all(times)


def test_failures__of_a_group_replace_those_of_the_cluster() -> None:
    groups = [NodeGroup(count=1, gpus=1, mtbf=50, mttr=5), NodeGroup(count=1, gpus=1)]
    found = outages(Cluster.from_groups(groups), seed=1, until=5000)
    assert set(found.node.tolist()) == {0}


def test_failures__the_seed_decides() -> None:
    cluster = nodes(1, 1).with_conditions({"mtbf": 100, "mttr": 10})
    one, same, other = (outages(cluster, seed=seed, until=1000).time for seed in (1, 1, 2))
    assert one.tolist() == same.tolist() != other.tolist()


def test_failures__no_job_is_lost_and_the_run_ends() -> None:
    """Nodes fail a hundred times as often as jobs end; progress is always saved."""
    cluster = nodes(2, 2).with_conditions({"mtbf": 40, "mttr": 10, "checkpoint": 0, "restart": 1})
    log = run(jobs(*[(float(i), 90, 1 + i % 4) for i in range(12)]), cluster, "fcfs+easy")
    assert sorted(finishes(log)) == list(range(12))
    assert log.kind[-1] == FINISH
    assert (log.kind == NODE_DOWN).sum() > 20
    assert (log.kind == NODE_UP).sum() > 20
