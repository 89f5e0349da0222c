"""Quotas: which GPUs are counted, and what happens to jobs that would hold too many."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, rejections, run, starts, story

from berthline.model.limits import Quota

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

OVER_QUOTA = "more GPUs than its quota allows"


def with_quotas(cluster: Cluster, *quotas: dict[str, Any]) -> Cluster:
    return dataclasses.replace(cluster, quotas=tuple(Quota(**quota) for quota in quotas))


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_over_quota__steps_aside_and_blocks_nobody(discipline: str) -> None:
    """user0 may hold two GPUs. Its job 1 waits for job 0; job 2, of user1, does not."""
    cluster = with_quotas(nodes(4), {"gpus": 2, "user": "user0"})
    workload = jobs((0, 50, 2), (1, 10, 1), (2, 10, 2), user=[0, 0, 1])
    assert story(run(workload, cluster, f"fcfs+{discipline}")) == [
        "0 submit 0",
        "0 start 0 on 0:2",
        "1 submit 1",
        "2 submit 2",
        "2 start 2 on 0:2",
        "12 finish 2",
        "50 finish 0",
        "50 start 1 on 0:1",
        "60 finish 1",
    ]


@pytest.mark.parametrize(
    ("quota", "started"),
    [
        ({"user": "user0"}, [0, 2, 3]),  # user0's second job waits
        ({"user": "*"}, [0, 2]),  # each user has one
        ({}, [0]),  # one for all together
        ({"pool": "red"}, [0, 1]),  # red's second job waits, and so does its third
        ({"pool": "red", "user": "*"}, [0, 1, 2]),  # one for each user in red
        ({"user": "nobody"}, [0, 1, 2, 3]),
    ],
)
def test_quota__whose_jobs_count(quota: dict[str, str], started: list[int]) -> None:
    """A quota of one GPU, for different jobs; users 0, 0, 1, 1 in pools red, blue, red, red."""
    cluster = with_quotas(nodes(8, 8, pool=["red", "blue"]), {"gpus": 1, **quota})
    workload = jobs(
        *[(0, 10, 1)] * 4, user=[0, 0, 1, 1], pool=[0, 1, 0, 0], pool_names=("red", "blue")
    )
    at_once = [job for job, time in starts(run(workload, cluster, "fcfs")).items() if time == 0]
    assert at_once == started


def test_quota__of_a_type_closes_the_type_only() -> None:
    """Two V100 are allowed; the third job finds the P100, the fourth waits for a V100."""
    cluster = with_quotas(
        nodes(4, 1, gpu_type=["V100", "P100"]).with_conditions({"gpu_speeds": 0}),
        {"gpus": 2, "gpu_type": "V100-32"},
    )
    log = run(jobs(*[(0, 10, 1)] * 4), cluster, "fcfs")
    assert allocations(log) == {0: {0: 1}, 1: {0: 1}, 2: {1: 1}, 3: {0: 1}}
    assert starts(log) == {0: 0, 1: 0, 2: 0, 3: 10}


def test_quota__all_that_hold_for_a_job_must_have_room() -> None:
    cluster = with_quotas(nodes(8), {"gpus": 3, "user": "*"}, {"gpus": 4})
    workload = jobs((0, 10, 3), (0, 20, 2), (0, 30, 1), user=[0, 1, 1])
    assert starts(run(workload, cluster, "fcfs")) == {0: 0, 1: 10, 2: 0}


def test_quota__counts_parts_of_gpus() -> None:
    """0.75 GPUs: a half and a quarter fit, another quarter does not; a job without GPUs does."""
    cluster = with_quotas(nodes(2), {"gpus": 0.75})
    workload = jobs(
        *[(0, 10, 1)] * 3, (0, 10, 0), gpu_milli=[500, 250, 250, 1000], cpus=[0, 0, 0, 4]
    )
    assert starts(run(workload, cluster, "fcfs")) == {0: 0, 1: 0, 2: 10, 3: 0}


def test_quota__that_can_never_hold_the_job_rejects_it() -> None:
    cluster = with_quotas(nodes(8), {"gpus": 2, "user": "user1"})
    workload = jobs((0, 5, 3), (0, 5, 3), (0, 5, 2), user=[0, 1, 1])
    log = run(workload, cluster, "fcfs")
    assert rejections(log) == {1: OVER_QUOTA}
    assert starts(log) == {0: 0, 2: 0}


def test_quota__of_a_type_rejects_only_who_can_use_no_other() -> None:
    """No V100 for a gang of two: job 0 may use the P100 node, job 1 may not, job 2 is too large."""
    cluster = with_quotas(
        nodes(4, 2, gpu_type=["V100", "P100"]), {"gpus": 1, "gpu_type": "V100-32"}
    )
    workload = jobs(
        *((0, 5, 2), (0, 5, 2), (0, 5, 3)), gpu_types=[-1, 0, -1], gpu_type_sets=("V100",)
    )
    log = run(workload, cluster, "fcfs")
    assert rejections(log) == {1: OVER_QUOTA, 2: OVER_QUOTA}
    assert allocations(log) == {0: {1: 2}}


def test_quota__is_given_back_by_a_preempted_job() -> None:
    """One GPU for user0. Its short job 1 takes the place of its long job 0 only when both count.

    Job 0 is preempted for job 2 of user1 (one GPU in all); then user0 holds nothing, and at 12
    its job 1 comes before job 0.
    """
    cluster = with_quotas(nodes(1), {"gpus": 1, "user": "user0"})
    cluster = cluster.with_conditions({"checkpoint": 0, "restart": 0})
    workload = jobs((0, 50, 1), (2, 10, 1), (2, 10, 1), user=[0, 1, 0])
    assert story(run(workload, cluster, "srpt!srpt")) == [
        "0 submit 0",
        "0 start 0 on 0:1",
        "2 submit 1",
        "2 submit 2",
        "2 preempt 0 (for another job)",
        "2 start 1 on 0:1",
        "12 finish 1",
        "12 start 2 on 0:1",
        "22 finish 2",
        "22 resume 0 on 0:1",
        "70 finish 0",
    ]


def test_quota__a_type_that_is_closed_for_ever_is_as_if_it_were_not_there() -> None:
    """No gang of four may have a V100 here, so it takes the two nodes of P100, though one would do.

    Otherwise it would wait forever for the one node that it may not use.
    """
    cluster = with_quotas(
        nodes(4, 2, 2, gpu_type=["V100", "P100", "P100"]), {"gpus": 1, "gpu_type": "V100-32"}
    )
    assert allocations(run(jobs((0, 5, 4)), cluster, "fcfs")) == {0: {1: 2, 2: 2}}
