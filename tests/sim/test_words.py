"""What each word of the vocabulary means, computed by hand at two decision points.

That the native core means the same is checked on random runs (tests/agreement).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import numpy as np
import pytest
from tests.sim.scenarios import jobs, nodes

from berthline.policies.formulas import Formula
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare
from berthline.sim.reference import Simulation
from berthline.sim.reference_decide import choose
from berthline.sim.reference_words import WORDS

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.sim.reference_decide import Choice

Moment = tuple[float, int]  # (time, waiting job)


def probe(workload: Workload, cluster: Cluster) -> dict[Moment, dict[str, float]]:
    """Return the words' values at the last decision of each instant, under fcfs with skip."""
    scheduler = Scheduler.parse("[submit + 0 * random + 0 * predicted]+skip")
    inputs = prepare(workload, cluster, scheduler, knowledge="estimate", seed=0, horizon=None)
    seen: dict[Moment, dict[str, float]] = {}

    def note_and_choose(simulation: Simulation) -> Choice | None:
        for job in simulation.queue:
            for word in WORDS:
                value = simulation.value(Formula.parse(word), job)
                seen.setdefault((simulation.now, job), {})[word] = value
        return choose(simulation)

    with mock.patch("berthline.sim.reference_decision_point.choose", note_and_choose):
        Simulation(inputs).run(lambda _: None)
    return seen


@pytest.fixture(scope="module")
def seen() -> dict[Moment, dict[str, float]]:
    """Red nodes of 4 and 2 GPUs, a blue one of 8. Job 5 is rejected.

    job       0     1     2     3     4     5
    user      0     1     0     2     1     3
    pool      red   blue  red   any   red   red
    gpus      3     8     4     2     1     99
    submit    0     0     10    20    4000  4000
    run       5000  100   50    60    70    1
    estimate  6000  100   40    60    70    1

    red 4  |0000... until 5000, one GPU free   (job 2 needs the whole node and waits)
    red 2  |      3 from 20 to 80
    blue 8 |1 until 100
    """
    workload = jobs(
        *((0, 5000, 3), (0, 100, 8), (10, 50, 4), (20, 60, 2), (4000, 70, 1), (4000, 1, 99)),
        estimate=[6000, 100, 40, 60, 70, 1],
        user=[0, 1, 0, 2, 1, 3],
        pool=[0, 1, 0, -1, 0, 0],
        pool_names=("red", "blue"),
        priority=[0, 0, 2.5, 0, 7, 0],
        deadline=[np.inf, np.inf, 500, np.inf, np.inf, np.inf],
        cpus=[0, 0, 12, 0, 0, 0],
        memory_mib=[0, 0, 100, 0, 0, 0],
    )
    cluster = nodes(
        *(4, 2, 8), pool=["red", "red", "blue"], cpus=[16, 0, 64], memory_mib=[512, 0, 256]
    )
    return probe(workload, cluster)


def test_words__of_a_waiting_job(seen: dict[Moment, dict[str, float]]) -> None:
    """Job 2 at 20, when job 3 has just started: only it waits."""
    expected = {
        "submit": 10,
        "wait": 10,
        "estimate": 40,
        "gpus": 4,
        "cpus": 12,
        "memory_mib": 100,
        "work": 160,
        "priority": 2.5,
        "deadline": 500,
        "slack": 480,
        "attained": 0,
        "remaining": 40,
        "restarts": 0,
        "running": 0,
        "predicted": 3600,  # no job had finished when it was submitted
        "gittins": 0,
        "nodes_min": 1,
        "user_usage": 3 * 20,  # job 0
        "user_share": 60 / (60 + 8 * 20),
        "user_jobs": 2,
        "user_gpus": 3,
        "borrowed_gpus": 0,
        "pool_free_gpus": 1,  # 4 - 3 on one red node, none on the other
        "pool_total_gpus": 6,
        "pool_queued_gpus": 4,
        "pool_fragmentation": 1.0,
        "rack_free_gpus": 1,  # all nodes are in one rack
        "can_start": 0,
        "ways_tier1": 0,
        "ways_tier2": 0,
        "ranked": 0,
        "now": 20,
        "queue_len": 1,
        "queued_gpus": 4,
        "queued_work": 160,
        "running_jobs": 3,
        "busy_gpus": 13,
        "free_gpus": 1,
        "total_gpus": 14,
        "down_gpus": 0,
        "utilization": 13 / 14,
        "fragmentation": 1.0,  # one node has free GPUs, and it is partly in use
        "arrival_rate": 4 / 3600,
        "arrival_burstiness": 0.5,  # gaps 0, 10, 10: variance 200/9 over the square of 20/3
        "num_users": 3,
        "max_node_gpus": 8,
        "max_node_cpus": 64,
        "max_node_memory_mib": 512,
        "max_priority": 2.5,  # job 4, with 7, is still to come
    }
    found = dict(seen[20.0, 2])
    assert 0 <= found.pop("random") < 1
    assert found == expected


def test_words__later(seen: dict[Moment, dict[str, float]]) -> None:
    """Job 2 at 4000: jobs 1 and 3 are over, job 4 has started on red, job 5 is rejected."""
    found = seen[4000.0, 2]
    used = {0: 3 * 4000, 1: 800, 2: 120}
    assert found["wait"] == 3990
    assert found["slack"] == -3500
    assert found["user_usage"] == used[0]
    assert found["user_share"] == used[0] / sum(used.values())
    assert found["user_jobs"] == 2
    assert found["arrival_rate"] == 2 / 3600, "the rejected one counts; those of 0 to 20 do not"
    assert found["num_users"] == 4
    assert found["queue_len"] == 1
    assert found["running_jobs"] == 2
    assert found["pool_free_gpus"] == 2
    assert found["free_gpus"] == 10
    assert found["fragmentation"] == 0.0, "node 0 is full, the other two are empty"
    assert found["can_start"] == 0


def test_words__can_start_is_one_before_the_start(seen: dict[Moment, dict[str, float]]) -> None:
    """At 5000 job 0 ends; job 2 is placed, and the last record is from before its start."""
    assert seen[5000.0, 2]["can_start"] == 1
    assert seen[5000.0, 2]["running_jobs"] == 0
    assert seen[5000.0, 2]["utilization"] == 0
    assert seen[5000.0, 2]["fragmentation"] == 0


def test_user_share__is_zero_before_anything_ran() -> None:
    found = probe(jobs((0, 1, 1), (0, 1, 1)), nodes(1))
    assert found[0.0, 0]["user_share"] == 0.0
    assert found[0.0, 1]["user_usage"] == 0.0
    assert found[1.0, 1]["user_share"] == 1.0


def test_max_priority__is_at_least_one() -> None:
    found = probe(jobs((0, 1, 1), priority=-3), nodes(1))
    assert found[0.0, 0]["max_priority"] == 1.0


def test_nodes_min__of_a_gang() -> None:
    found = probe(jobs((0, 1, 7)), nodes(2, 4, 2))
    assert found[0.0, 0]["nodes_min"] == 3


def test_rack_free_gpus__is_the_most_that_is_free_in_one_rack_of_its_own_nodes() -> None:
    """Job 0 takes 3 GPUs of rack a; in rack b 2 red ones are free and 8 blue ones."""
    found = probe(
        jobs((0, 9, 3), (0, 9, 7), (0, 9, 3), pool=[0, 0, 1], pool_names=("red", "blue")),
        nodes(*(4, 2, 2, 8), pool=["red", "red", "red", "blue"], rack=["a", "a", "b", "b"]),
    )
    assert found[0.0, 1]["rack_free_gpus"] == 3
    assert found[0.0, 2]["rack_free_gpus"] == 8
