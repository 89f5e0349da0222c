"""Preemption: which job yields to which, what is lost, and what limits it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

from berthline.model.schedule import PREEMPT

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

SAVES_ALL = {"checkpoint": 0, "restart": 0}


def one_gpu(**conditions: float) -> Cluster:
    return nodes(1).with_conditions({**SAVES_ALL, **conditions})


def test_srpt__loss_and_restart_by_hand() -> None:
    """Job 0 has done 50 of 100 s when job 1 (20 s) comes; 30 s are saved, a restart costs 10 s.

    It resumes at 70, makes progress from 80, and has 70 s left.
    """
    log = run(jobs((0, 100, 1), (50, 20, 1)), one_gpu(checkpoint=30, restart=10), "srpt!srpt")
    assert story(log) == [
        "0 submit 0",
        "0 start 0 on 0:1",
        "50 submit 1",
        "50 preempt 0 (for another job)",
        "50 start 1 on 0:1",
        "70 finish 1",
        "70 resume 0 on 0:1",
        "150 finish 0",
    ]


@pytest.mark.parametrize(
    ("checkpoint", "end"), [(0, 130), (50, 130), (49, 131), (60, 180), (math.inf, 180)]
)
def test_checkpoint__decides_how_much_is_lost(checkpoint: float, end: float) -> None:
    """50 of 100 s are done at 50; the job continues at 70 + 10. A checkpoint at 50 still counts."""
    cluster = one_gpu(checkpoint=checkpoint, restart=10)
    assert finishes(run(jobs((0, 100, 1), (50, 20, 1)), cluster, "srpt!srpt"))[0] == end


def test_checkpoint__counts_progress_not_time() -> None:
    """On a GPU at half the speed 25 s are done at 50: one checkpoint of 20 s, 80 s to do, 160 s."""
    cluster = nodes(1, gpu_type=["SLOW"]).with_conditions({"checkpoint": 20, "restart": 10})
    log = run(jobs((0, 100, 1), (50, 20, 1)), cluster, "srpt!srpt")
    assert finishes(log) == {0: 50 + 40 + 10 + 160, 1: 90}


def test_restart__a_job_stopped_before_it_made_progress_keeps_what_it_had() -> None:
    """Job 0 is stopped at 50 and, during its restart from 60 to 80, at 70 again."""
    log = run(
        jobs((0, 100, 1), (50, 10, 1), (70, 10, 1)), one_gpu(checkpoint=20, restart=20), "srpt!srpt"
    )
    assert finishes(log) == {1: 60, 2: 80, 0: 80 + 20 + 60}


def test_srpt__gangs_of_one_size_may_need_different_numbers_of_nodes() -> None:
    """Jobs 1 and 3 could yield two GPUs of each node.

    Job 4 needs four on one node; job 5, of the same size, has CPU cores for two nodes, and starts.
    """
    workload = jobs(
        *((0, 500, 2), (1, 1000, 2), (2, 500, 2), (3, 1000, 2), (10, 600, 4), (10, 700, 4)),
        cpus=[1, 1, 1, 1, 1, 12],
    )
    cluster = nodes(4, 4, cpus=[8, 8]).with_conditions(SAVES_ALL)
    log = run(workload, cluster, "srpt+skip!srpt")
    assert starts(log)[5] == 10
    assert starts(log)[4] > 10


def test_srpt__equal_remaining_times_do_not_preempt() -> None:
    workload = jobs((0, 100, 1), (50, 50, 1), (50, 49.5, 1))
    assert starts(run(workload, one_gpu(), "srpt!srpt")) == {0: 0, 1: 99.5 + 50, 2: 50}


def test_srpt__what_was_lost_is_still_to_be_done() -> None:
    """Nothing is saved: after its preemption job 0 has 100 s left again, more than job 2's 70."""
    workload = jobs((0, 100, 1), (60, 20, 1), (65, 70, 1))
    log = run(workload, one_gpu(checkpoint=math.inf), "srpt!srpt")
    assert finishes(log) == {1: 80, 2: 150, 0: 250}


@pytest.mark.parametrize(("options", "start"), [("", 100), (":every=20", 60), (":every=7", 63)])
def test_min_run__a_job_runs_so_long_before_it_yields(options: str, start: float) -> None:
    """Job 1 comes at 50; job 0 may yield from 60 on, at the next decision."""
    workload = jobs((0, 100, 1), (50, 20, 1))
    assert starts(run(workload, one_gpu(), f"srpt!srpt:min_run=60{options}"))[1] == start


def test_max_restarts__afterwards_a_job_keeps_its_gpus() -> None:
    """Job 0 yields to job 1 at 50, but not to job 2 at 90."""
    workload = jobs((0, 100, 1), (50, 20, 1), (90, 5, 1))
    cluster = one_gpu(checkpoint=30, restart=10)
    assert starts(run(workload, cluster, "srpt!srpt:max_restarts=1")) == {0: 0, 1: 50, 2: 150}
    assert starts(run(workload, cluster, "srpt!srpt")) == {0: 0, 1: 50, 2: 90}
    assert starts(run(workload, cluster, "srpt!srpt:max_restarts=0")) == {0: 0, 1: 105, 2: 100}


@pytest.mark.parametrize(("margin", "start"), [(29, 50), (30, 100)])
def test_margin__the_index_must_be_larger_by_more(margin: float, start: float) -> None:
    """50 s remain against 20 s."""
    workload = jobs((0, 100, 1), (50, 20, 1))
    assert starts(run(workload, one_gpu(), f"srpt!srpt:margin={margin}"))[1] == start


def test_victims__largest_index_first_and_nobody_in_vain() -> None:
    """Four GPUs: job 0 holds one (99 s left), job 1 three (89 s left). Job 2 needs three.

    Job 0 would yield first, but its GPU does not help: it is spared.
    """
    cluster = nodes(4).with_conditions(SAVES_ALL)
    log = run(jobs((0, 100, 1), (0, 90, 3), (1, 10, 3)), cluster, "srpt!srpt")
    assert log.job[log.kind == PREEMPT].tolist() == [1]
    assert finishes(log) == {0: 100, 1: 100, 2: 11}


def test_victims__several_yield_when_one_is_not_enough() -> None:
    """Jobs 0 to 3 hold a GPU each; the two with the most work left yield, by id."""
    cluster = nodes(4).with_conditions(SAVES_ALL)
    workload = jobs((0, 70, 1), (0, 90, 1), (0, 60, 1), (0, 80, 1), (1, 10, 2))
    log = run(workload, cluster, "srpt!srpt")
    assert log.job[log.kind == PREEMPT].tolist() == [1, 3]


def test_victims__must_be_on_nodes_the_job_may_use() -> None:
    """Job 1 of blue has the most work left, but job 2 of red cannot use blue's node."""
    cluster = nodes(1, 1, pool=["red", "blue"]).with_conditions(SAVES_ALL)
    workload = jobs(
        *((0, 100, 1), (0, 900, 1), (1, 10, 1)), pool=[0, 1, 0], pool_names=("red", "blue")
    )
    log = run(workload, cluster, "srpt!srpt")
    assert log.job[log.kind == PREEMPT].tolist() == [0]


def test_victims__not_who_started_at_this_instant() -> None:
    """By the formula each running job should yield to each waiting one; the clock must move."""
    log = run(jobs((0, 10, 1), (0, 10, 1)), one_gpu(), "fcfs![running]", horizon=1000)
    assert finishes(log) == {0: 10, 1: 20}


def test_victims__the_next_waiting_job_is_tried_when_the_first_gets_too_little() -> None:
    """Jobs 0 and 1 have 99 s and 5 s left. With a margin of 10 only job 0 yields to job 2 (1 s).

    Job 2 needs both GPUs, so no job yields to it; but job 3 (20 s) gets job 0's. At 6 job 1 is over
    and job 0 goes on; at 21 it yields to job 2, as job 3 is over.
    """
    cluster = nodes(2).with_conditions(SAVES_ALL)
    workload = jobs((0, 100, 1), (0, 6, 1), (1, 1, 2), (1, 20, 1))
    log = run(workload, cluster, "srpt+skip!srpt:min_run=1")
    assert starts(log)[2] == 1, "both yield to it"
    log = run(workload, cluster, "srpt+skip!srpt:margin=10")
    assert starts(log) == {0: 0, 1: 0, 2: 21, 3: 1}


def test_priority__the_higher_takes_from_the_lower() -> None:
    workload = jobs((0, 100, 1), (10, 20, 1), (15, 20, 1), priority=[0, 2, 1])
    log = run(workload, one_gpu(), "static-priority!priority")
    assert finishes(log) == {1: 30, 2: 50, 0: 140}


def test_formula__its_own_index_and_options() -> None:
    """A job that has held over 40 GPU-seconds more yields; this is checked every 10 s."""
    workload = jobs((0, 100, 1), (5, 50, 1))
    log = run(workload, one_gpu(), "fcfs![attained]:margin=40:every=10")
    assert story(log)[3:7] == [
        "50 preempt 0 (for another job)",
        "50 start 1 on 0:1",
        "100 finish 1",
        "100 resume 0 on 0:1",
    ]


@pytest.mark.parametrize(("options", "start"), [("", 190), (":c=128", 390)])
def test_index__who_has_attained_three_times_c_yields_at_a_margin_of_2(
    options: str, start: float
) -> None:
    """log2(attained + c) is then larger than log2(c) by 2; this is checked every 10 s."""
    workload = jobs((0, 1000, 1), (100, 50, 1))
    log = run(workload, one_gpu(), f"fcfs!index:w=0:margin=2:every=10:min_run=0{options}")
    assert starts(log)[1] == start


def test_index__a_job_that_fits_behind_a_blocked_head_starts_and_nobody_yields() -> None:
    """Job 0 could yield, but its one GPU would not be enough; fifteen nodes are free.

    There are so many nodes that the native core keeps bitmaps of them.
    """
    cluster = nodes(*[2] * 16).with_conditions(SAVES_ALL)
    workload = jobs((0, 100, 1), (1, 100, 1), (2, 10, 32), (3, 10, 2))
    log = run(
        workload,
        cluster,
        "largest-first+strict![where(submit < 1, 9, where(gpus > 2, 20, 0))]",
    )
    assert starts(log)[3] == 3
    assert not (log.kind == PREEMPT).any()


def test_index__jobs_of_one_size_need_unequal_numbers_of_nodes_in_unequal_pools() -> None:
    """In pool blue no job can yield to job 3. In pool red job 4 takes both nodes of one GPU."""
    cluster = nodes(2, 1, 1, pool=["blue", "red", "red"]).with_conditions(SAVES_ALL)
    workload = jobs(
        (0, 100, 1),
        (1, 100, 1),
        (1, 100, 1),
        (2, 10, 2),
        (3, 10, 2),
        pool=[0, 1, 1, 0, 1],
        pool_names=("blue", "red"),
    )
    log = run(workload, cluster, "fcfs+skip![where(submit == 1, 9, submit / 10)]")
    assert starts(log)[4] == 3
    assert starts(log)[3] == 100


def two_pools() -> Cluster:
    """Return eight nodes of two GPUs in each of two pools: enough for the native core's bitmaps."""
    return nodes(*[2] * 16, pool=["blue"] * 8 + ["red"] * 8).with_conditions(SAVES_ALL)


def test_index__room_in_another_pool_is_none() -> None:
    """Job 16, of pool red, is the first that could yield; jobs 0 and 1 share a node of blue."""
    workload = jobs(
        *[(0, 100, 1)] * 16,
        (0, 100, 2),
        (5, 10, 2),
        pool=[0] * 16 + [1, 0],
        pool_names=("blue", "red"),
        priority=[1, 2, *[9] * 14, 0, 5],
    )
    log = run(workload, two_pools(), "fcfs+skip!priority")
    assert starts(log)[17] == 5
    assert log.job[log.kind == PREEMPT].tolist() == [0, 1]


def test_index__who_could_yield_in_another_pool_helps_nobody() -> None:
    """Job 3 fits behind the blocked job 2, but no job of its own pool could yield to it."""
    workload = jobs(
        (0, 100, 1),
        (0, 100, 2),
        (1, 10, 16),
        (2, 10, 2),
        pool=[0, 1, 0, 0],
        pool_names=("blue", "red"),
        priority=[9, 0, 0, 5],
    )
    log = run(workload, two_pools(), "largest-first+strict!priority")
    assert starts(log)[2] == 100
    assert starts(log)[3] == 110
