"""Sleeping nodes: when an idle node falls asleep, and what it costs to wake it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run

from berthline.model.limits import Outage

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster


def sleepy(*gpus: int, **conditions: float) -> Cluster:
    return nodes(*gpus).with_conditions({"sleep_after": 10, "wake_delay": 7, **conditions})


@pytest.mark.parametrize(("submit", "end"), [(14, 19), (15, 27), (100, 112)])
def test_sleep__a_node_idle_for_long_enough_takes_time_to_wake(submit: float, end: float) -> None:
    """Job 0 leaves at 5. A job that starts 10 s later or more pays 7 s."""
    assert finishes(run(jobs((0, 5, 1), (submit, 5, 1)), sleepy(1), "fcfs")) == {0: 5, 1: end}


def test_sleep__a_node_is_idle_from_the_beginning() -> None:
    assert finishes(run(jobs((9, 5, 1)), sleepy(1), "fcfs")) == {0: 14}
    assert finishes(run(jobs((10, 5, 1)), sleepy(1), "fcfs")) == {0: 22}


def test_sleep__a_node_in_use_is_awake() -> None:
    """Job 0 keeps node 0 awake for job 1, which is not late; on node 1 it would be."""
    workload = jobs((0, 50, 1), (20, 5, 1))
    assert finishes(run(workload, sleepy(2, 2), "fcfs@best-fit"))[1] == 25
    assert finishes(run(workload, sleepy(2, 2), "fcfs@worst-fit"))[1] == 32


def test_sleep__a_gang_waits_for_its_sleeping_nodes_once() -> None:
    """Job 0 has woken node 0. Nodes 1 and 2 are asleep at 20: 7 s, not 14."""
    workload = jobs((15, 3, 1), (20, 5, 5))
    cluster = sleepy(2, 2, 2)
    assert finishes(run(workload, cluster, "fcfs")) == {0: 25, 1: 32}


def test_sleep__adds_to_other_delays() -> None:
    cluster = sleepy(1, start_delay=3)
    assert finishes(run(jobs((20, 5, 1)), cluster, "fcfs")) == {0: 20 + 3 + 7 + 5}


def test_sleep__a_repaired_node_comes_back_awake() -> None:
    cluster = dataclasses.replace(sleepy(1), outages=(Outage(down=1, up=30, nodes=(0,)),))
    assert finishes(run(jobs((25, 5, 1)), cluster, "fcfs")) == {0: 35}
    assert finishes(run(jobs((39, 5, 1)), cluster, "fcfs")) == {0: 44}
    assert finishes(run(jobs((40, 5, 1)), cluster, "fcfs")) == {0: 52}


def test_sleep__easy_counts_the_delay_against_the_reservation() -> None:
    """Job 0 holds node 0 until 40; job 1 needs both nodes then. Job 2 would run on sleeping node 1.

    At 20, with a run time of 14 s it would end at 41; with 13 s, at 40. If it has to wait, job 1
    wakes node 1 and ends at 57.
    """
    cluster = sleepy(1, 1)
    for run_time, end in ((13, 40), (14, 57 + 14)):
        workload = jobs((0, 40, 1), (19, 10, 2), (20, run_time, 1))
        found = finishes(run(workload, cluster, "fcfs+easy"))
        assert found[2] == end
