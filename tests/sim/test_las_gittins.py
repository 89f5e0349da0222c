"""Preemption by attained service: las with its queues, gittins, and fair-share over users."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

from berthline.model.schedule import PREEMPT, Schedule

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster


def gpus(count: int) -> Cluster:
    return nodes(count).with_conditions({"checkpoint": 0, "restart": 0})


def preemptions(log: Schedule) -> list[tuple[float, int]]:
    rows = log.kind == PREEMPT
    return list(zip(log.time[rows].tolist(), log.job[rows].tolist(), strict=True))


def test_las__a_job_that_has_had_its_share_goes_to_the_next_queue() -> None:
    """Both are in the first queue, where no job yields, until job 0 has had 100 GPU-seconds."""
    workload = jobs((0, 300, 1), (20, 50, 1))
    log = run(workload, gpus(1), "fcfs!las:q1=100:q2=1000:promote=0:every=10")
    assert story(log)[3:] == [
        "100 preempt 0 (for another job)",
        "100 start 1 on 0:1",
        "150 finish 1",
        "150 resume 0 on 0:1",
        "350 finish 0",
    ]


def test_las__service_is_gpus_times_seconds() -> None:
    """On four GPUs 100 GPU-seconds are over in 25 s; that is seen at 30."""
    workload = jobs((0, 300, 4), (20, 50, 1))
    log = run(workload, gpus(4), "fcfs!las:q1=100:q2=1000:promote=0:every=10")
    assert preemptions(log) == [(30, 0)]


def test_las__has_three_queues() -> None:
    """After 200 GPU-seconds job 0 yields to job 1, which is in the second queue by then.

    100 job 0 is in queue 1: job 1 runs. 200 both are in queue 1: job 1 keeps its GPU. 300 job 1 is
    in queue 2: job 0 runs, with 100 GPU-seconds so far. 400 both are in queue 2.
    """
    workload = jobs((0, 900, 1), (1, 900, 1))
    log = run(workload, gpus(1), "fcfs!las:q1=100:q2=200:promote=0:every=10")
    assert preemptions(log) == [(100, 0), (300, 1)]
    assert finishes(log) == {0: 300 + 800, 1: 1100 + 700}


def test_las__promotion_of_a_job_that_has_waited_longer_than_it_ran() -> None:
    """At 100 job 0 yields. It is promoted when it has waited more than the 100 s it ran: at 210.

    Job 1 has waited 80 s before. While it runs, it stays in the first queue for these and for q1,
    so it yields at 280. Job 0 has then waited 180 s, and keeps its GPU for 180 s beyond q1.
    """
    workload = jobs((0, 300, 1), (20, 500, 1))
    log = run(workload, gpus(1), "fcfs!las:q1=100:q2=1000:promote=1:every=10")
    assert preemptions(log)[:3] == [(100, 0), (280, 1), (460, 0)]


def test_las__a_promoted_job_has_a_turn_of_q1_not_of_one_decision() -> None:
    """Promotion needs a wait of 4 times the run, so a wait adds only a quarter of itself.

    Job 0 runs 100 s, job 1 then runs on. At 510 job 0 has waited 410 s > 4 * 100 and takes the GPU:
    job 1 has run 410 s by then. It keeps it for q1 and 410 / 4 - 100 s, and ends its 200 s.
    """
    workload = jobs((0, 200, 1), (20, 900, 1))
    log = run(workload, gpus(1), "fcfs!las:q1=100:q2=1000:promote=4:every=10")
    assert preemptions(log) == [(100, 0), (510, 1)]
    assert finishes(log)[0] == 610


def test_las__order_and_rule_agree_by_default() -> None:
    """At 3300 job 0 has had 3250 GPU-seconds and a bit: it yields to job 1, of the first queue."""
    log = run(jobs((0, 9000, 1), (3000, 100, 1)), gpus(1), "las!las")
    assert preemptions(log) == [(3300, 0)]
    assert starts(log)[1] == 3300


def finished_jobs(*runs: float) -> list[tuple[float, float, int]]:
    """Return jobs of one GPU that follow each other; gittins knows them when they have ended."""
    return [(0, run, 1) for run in runs]


def test_gittins__a_job_that_outlives_all_others_yields() -> None:
    """Three jobs of 10 s are over by 30. Job 3 has had 70 s at 100: no job has had more."""
    workload = jobs(*finished_jobs(10, 10, 10), (30, 500, 1), (100, 10, 1))
    log = run(workload, gpus(1), "fcfs!gittins")
    assert preemptions(log) == [(100, 3)]
    assert finishes(log)[4] == 110
    assert finishes(log)[3] == 540


def test_gittins__a_job_that_is_nearly_over_does_not() -> None:
    """One of four jobs had 10 GPU-seconds, three had 100.

    A new job ends within 12 (the edge of its bucket) with chance 1/4, for 10 + 3 * 12 = 46 GPU-s of
    four jobs: index 1/46. Job 4 has had 80 and is in the bucket from 64 on: three jobs ended there,
    with 3 * 36 GPU-s to go: index 1/36, larger. With 20 (bucket from 16 on) it is 1/84, smaller.
    """
    known = finished_jobs(10, 100, 100, 100)
    near = run(jobs(*known, (310, 100, 1), (390, 10, 1)), gpus(1), "fcfs!gittins:every=0")
    assert preemptions(near) == []
    assert starts(near)[5] == 410
    far = run(jobs(*known, (310, 100, 1), (330, 10, 1)), gpus(1), "fcfs!gittins:every=0")
    assert preemptions(far) == [(330, 4)]


def test_gittins__orders_the_queue_too() -> None:
    """Job 4 was stopped after 20 GPU-s (index 1/84); new ones, with 1/46, all come before it."""
    known = finished_jobs(10, 100, 100, 100)
    workload = jobs(*known, (310, 100, 1), (330, 10, 1), (331, 10, 1))
    log = run(workload, gpus(1), "gittins!gittins:every=0")
    assert log.job[log.is_start].tolist()[4:] == [4, 5, 6, 4]


def test_fair_share__takes_from_the_user_who_would_still_hold_more() -> None:
    """user0 holds eight GPUs when user1 asks for eight.

    Each takes one: 7 to 1, 6 to 2, 5 to 3. Another would make it 4 to 4, where user0 holds no more
    than user1: it stays. No user takes GPUs back.
    """
    workload = jobs(*[(0, 100, 1)] * 8, *[(10, 100, 1)] * 8, user=[0] * 8 + [1] * 8)
    log = run(workload, gpus(8), "fcfs!fair-share", horizon=60)
    assert preemptions(log) == [(10, 7), (10, 6), (10, 5)]
    assert starts(log) == dict.fromkeys(range(8), 0) | dict.fromkeys((8, 9, 10), 10)


def test_fair_share__nobody_yields_to_oneself() -> None:
    workload = jobs(*[(0, 100, 1)] * 4, (10, 1, 1), user=0)
    log = run(workload, gpus(4), "fcfs!fair-share")
    assert preemptions(log) == []


def test_las__a_job_first_saves_something() -> None:
    """Without min_run it runs 10 s for the restart and 30 s for a checkpoint, whichever job waits.

    At 10 job 0 has left the first queue; it yields at 40, with 30 s saved, and resumes at 90.
    """
    cluster = nodes(1).with_conditions({"checkpoint": 30, "restart": 10})
    workload = jobs((0, 300, 1), (5, 50, 1))
    log = run(workload, cluster, "fcfs!las:q1=10:q2=1000:promote=0:every=10", horizon=120)
    assert preemptions(log)[0] == (40, 0)
    log = run(workload, cluster, "fcfs!las:q1=10:q2=1000:promote=0:every=10:min_run=0", horizon=20)
    assert preemptions(log)[0] == (10, 0)


def test_las__every_zero_means_at_events_only() -> None:
    """No event from 20 to the end of job 0, so no decision sees it leave the first queue."""
    workload = jobs((0, 300, 1), (20, 50, 1))
    log = run(workload, gpus(1), "fcfs!las:q1=100:q2=1000:every=0")
    assert np.flatnonzero(log.kind == PREEMPT).size == 0
    assert starts(log)[1] == 300
