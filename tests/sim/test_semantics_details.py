"""Sentences of docs/concepts/semantics.md that no other file here checks, one run each."""

from __future__ import annotations

import dataclasses

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, run, starts, story

from berthline.model.limits import Outage, Quota


@pytest.mark.parametrize(("min_run", "start"), [("-1", 65), ("-0.5", 65), ("0", 50), ("30", 50)])
def test_min_run__below_zero_is_a_start_a_restart_and_a_checkpoint(
    min_run: str, start: float
) -> None:
    """5 + 20 + 40 s, at the first start too. Job 1 comes at 50; a decision is due every 5 s."""
    cluster = nodes(1).with_conditions({"start_delay": 5, "restart": 20, "checkpoint": 40})
    log = run(jobs((0, 200, 1), (50, 20, 1)), cluster, f"srpt!srpt:min_run={min_run}:every=5")
    assert starts(log)[1] == start


@pytest.mark.parametrize(("run_time", "start"), [(58, 42), (59, 160)])
def test_expected_end__counts_delays_of_running_jobs_and_of_candidates(
    run_time: float, start: float
) -> None:
    """Every start costs 10 s. Job 0 (100 s) ends at 110; then job 1 has both GPUs, until 160.

    Job 2 comes at 42. With 58 s it is over at 42 + 10 + 58 = 110, just in time.
    """
    workload = jobs((0, 100, 1), (1, 40, 2), (42, run_time, 1))
    cluster = nodes(2).with_conditions({"start_delay": 10})
    assert starts(run(workload, cluster, "fcfs+easy")) == {0: 0, 1: 110, 2: start}
    assert starts(run(workload, cluster, "fcfs+conservative")) == {0: 0, 1: 110, 2: start}


@pytest.mark.parametrize(("run_time", "start"), [(3, 62), (4, 125)])
def test_expected_end__what_is_left_of_an_estimate_is_not_negative(
    run_time: float, start: float
) -> None:
    """Job 0 has 50 s done and saved when its node fails, but an estimate of 20 s.

    It resumes at 60, with a restart of 5 s, so it is expected to end at 65, when job 1 is to get
    both GPUs. Job 2 comes at 62: it may go first if it is over at 65. Job 0 really ends at 115.
    """
    workload = jobs((0, 100, 1), (61, 10, 2), (62, run_time, 1), estimate=[20, 10, run_time])
    cluster = nodes(1, 1).with_conditions({"checkpoint": 0, "restart": 5})
    down = (Outage(down=50, up=60, nodes=(0,)), Outage(down=50, up=60, nodes=(1,)))
    cluster = dataclasses.replace(cluster, outages=down)
    assert starts(run(workload, cluster, "fcfs+easy")) == {0: 0, 1: 115, 2: start}


@pytest.mark.parametrize(("discipline", "start"), [("easy", 122), ("conservative", 60)])
def test_conservative__does_not_plan_with_nodes_that_must_wake_up(
    discipline: str, start: float
) -> None:
    """Waking takes 10 s. Node 0 has job 0 until 110 (it slept at 0); then job 1 has both nodes.

    Job 2 (45 s) comes at 60, when node 1 is asleep. It is over at 115: EASY counts the 10 s, and
    it comes after job 1 (110 to 122). Conservative does not count them.
    """
    workload = jobs((0, 100, 1), (1, 2, 2), (60, 45, 1))
    cluster = nodes(1, 1).with_conditions({"sleep_after": 0, "wake_delay": 10})
    assert starts(run(workload, cluster, f"fcfs+{discipline}"))[2] == start


@pytest.mark.parametrize(
    ("quota", "start", "where"),
    [
        (5, 1, {1: 4, 2: 2}),  # never a V100: two other nodes are the fewest
        (6, 100, {0: 6}),  # the V100 node alone is the fewest, but one GPU is in use
        (7, 1, {0: 6}),
    ],
)
def test_type_quota__that_is_used_up_now_is_like_a_node_in_use(
    quota: float, start: float, where: dict[int, int]
) -> None:
    """One V100 is in use until 100. A gang of six waits for the node that can hold it alone.

    So it does without a quota, when other jobs use that node.
    """
    cluster = nodes(8, 4, 4, gpu_type=["V100", "P100", "P100"])
    limit = Quota(gpus=quota, gpu_type="V100-32")
    cluster = dataclasses.replace(cluster, quotas=(limit,)).with_conditions({"gpu_speeds": 0})
    workload = jobs((0, 100, 1), (1, 10, 6), gpu_types=[0, -1], gpu_type_sets=("V100",))
    log = run(workload, cluster, "fcfs")
    assert starts(log)[1] == start
    assert allocations(log)[1] == where


def test_outages__that_overlap_or_touch_are_one_in_the_log() -> None:
    """Down from 10 to 30, from 20 to 40, from 40 to 50: the job is preempted once."""
    spans = ((10, 30), (20, 40), (40, 50))
    down = tuple(Outage(down=begin, up=end, nodes=(0,)) for begin, end in spans)
    cluster = dataclasses.replace(nodes(1).with_conditions({"checkpoint": 0, "restart": 0}))
    assert story(run(jobs((0, 20, 1)), dataclasses.replace(cluster, outages=down), "fcfs")) == [
        "0 submit 0",
        "0 start 0 on 0:1",
        "10 node down 0",
        "10 preempt 0 (its node went down)",
        "50 node up 0",
        "50 resume 0 on 0:1",
        "60 finish 0",
    ]


@pytest.mark.parametrize(("milli", "line"), [(300, "2 start 3 on 0#0"), (320, "10 start 3 on 0#0")])
def test_reservation__on_an_unused_gpu_has_the_lowest_number_in_its_copy(
    milli: int, line: str
) -> None:
    """Two GPUs: 300 of GPU 0 and 350 of GPU 1 are left until 10, when both jobs end.

    Job 2 (600) is reserved for 10. In that copy both GPUs are unused, so it opens number 0, and
    400 of it are left. Number 1 is not shared there: job 3 may use only the 300 of number 0.
    """
    workload = jobs(
        (0, 10, 1), (0, 10, 1), (1, 50, 1), (2, 200, 1), gpu_milli=[700, 650, 600, milli]
    )
    assert line in story(run(workload, nodes(2), "fcfs+easy"))


@pytest.mark.parametrize("placement", ["balance", "defrag"])
def test_tiers__count_a_shared_gpu_as_in_use(placement: str) -> None:
    """A whole GPU of node 0 is in use, and a tenth of one of node 1: both nodes count alike."""
    workload = jobs(
        *((0, 100, 1), (0, 100, 1), (1, 5, 1)), gpu_milli=[1000, 100, 1000],
        gpu_types=[0, 1, -1], gpu_type_sets=("V100", "P100"),
    )  # fmt: skip
    cluster = nodes(4, 4, gpu_type=["V100", "P100"]).with_conditions({"gpu_speeds": 0})
    assert allocations(run(workload, cluster, f"fcfs@{placement}"))[2] == {0: 1}
