"""Limits of live systems: ticks, start latency, requeue delay, refused starts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

from berthline.model.limits import Outage
from berthline.model.schedule import REFUSE
from berthline.random_streams import stream_key, uniform


def test_tick__decisions_are_made_at_its_multiples_only() -> None:
    """Job 0 comes at 3 and starts at 10; it ends at 15, and job 1 starts at 20."""
    cluster = nodes(1).with_conditions({"tick": 10})
    log = run(jobs((3, 5, 1), (4, 5, 1), (30, 5, 1)), cluster, "fcfs")
    assert starts(log) == {0: 10, 1: 20, 2: 30}
    assert finishes(log) == {0: 15, 1: 25, 2: 35}


def test_tick__one_decision_for_all_that_happened_since() -> None:
    """The job submitted at 7 came after the one at 3, but is shorter."""
    cluster = nodes(1).with_conditions({"tick": 10})
    assert starts(run(jobs((3, 5, 1), (7, 2, 1)), cluster, "sjf")) == {0: 20, 1: 10}


def test_tick__nobody_yields_between_ticks() -> None:
    cluster = nodes(1).with_conditions({"tick": 10, "checkpoint": 0, "restart": 0})
    log = run(jobs((0, 100, 1), (42, 5, 1)), cluster, "srpt!srpt")
    assert starts(log) == {0: 0, 1: 50}
    assert finishes(log) == {0: 110, 1: 55}, "55 to 60 no job runs"


def test_start_delay__comes_before_every_first_progress() -> None:
    """A restart costs both delays."""
    cluster = nodes(1).with_conditions({"start_delay": 4, "checkpoint": 0, "restart": 10})
    log = run(jobs((0, 100, 1), (24, 6, 1)), cluster, "srpt!srpt")
    # Job 0 has done 20 s when it yields; job 1 is over at 34; 34 + 14 + 80 = 128.
    assert finishes(log) == {1: 34, 0: 128}


def test_start_delay__is_known_to_reservations() -> None:
    """Job 0 ends at 24 (4 + 20), when job 1 has both GPUs; job 2 is over by then or waits."""
    cluster = nodes(2).with_conditions({"start_delay": 4})
    for run_time, start in ((18, 2), (18.5, 38)):
        log = run(jobs((0, 20, 1), (1, 10, 2), (2, run_time, 1)), cluster, "fcfs+easy")
        assert starts(log) == {0: 0, 1: 24, 2: start}


def test_requeue_delay__a_stopped_job_stays_out_of_the_queue() -> None:
    """Node 0 is back at 31, but job 0 only at 50; job 1, which came later, goes first."""
    cluster = nodes(1).with_conditions({"requeue_delay": 20, "checkpoint": 0, "restart": 0})
    cluster = dataclasses.replace(cluster, outages=(Outage(down=30, up=31, nodes=(0,)),))
    assert story(run(jobs((0, 100, 1), (40, 15, 1)), cluster, "fcfs")) == [
        "0 submit 0",
        "0 start 0 on 0:1",
        "30 node down 0",
        "30 preempt 0 (its node went down)",
        "31 node up 0",
        "40 submit 1",
        "40 start 1 on 0:1",
        "55 finish 1",
        "55 resume 0 on 0:1",
        "125 finish 0",
    ]


def test_requeue_delay__not_for_a_job_that_is_moved() -> None:
    """A move is one step: the job resumes at once in its new place."""
    cluster = nodes(2, 2).with_conditions({"requeue_delay": 20, "checkpoint": 0, "restart": 60})
    workload = jobs((0, 1000, 1), (0, 10, 1), (0, 1000, 1), (20, 50, 2))
    assert "20 resume 0 on 1:1" in story(run(workload, cluster, "fcfs!defrag"))


def first_accepted(seed: int, job: int, rate: float) -> int:
    """Return how many starts of a job are refused before one is accepted."""
    attempt = 0
    while uniform(stream_key(seed, "refusal"), job, attempt) < rate:
        attempt += 1
    return attempt


@pytest.mark.parametrize("seed", range(5))
def test_refusal__the_job_comes_back_and_the_seed_decides_how_often(seed: int) -> None:
    cluster = nodes(1).with_conditions({"refusal_rate": 0.6, "retry_delay": 8})
    log = run(jobs((0, 10, 1)), cluster, "fcfs", seed=seed)
    refused = first_accepted(seed, 0, 0.6)
    assert log.time[log.kind == REFUSE].tolist() == [8.0 * i for i in range(refused)]
    assert starts(log) == {0: 8 * refused}


def test_refusal__others_go_first_meanwhile() -> None:
    """A seed with which job 0 is refused once and job 1 is not."""
    seed = next(
        seed
        for seed in range(100)
        if (first_accepted(seed, 0, 0.5), first_accepted(seed, 1, 0.5)) == (1, 0)
    )
    cluster = nodes(1).with_conditions({"refusal_rate": 0.5, "retry_delay": 8})
    log = run(jobs((0, 10, 1), (0, 20, 1)), cluster, "fcfs", seed=seed)
    assert story(log)[2:] == [
        "0 refuse 0",
        "0 start 1 on 0:1",
        "20 finish 1",
        "20 start 0 on 0:1",
        "30 finish 0",
    ]


def test_refusal__its_share_is_the_rate() -> None:
    """1,000 jobs with room for all; about one refusal in four tries."""
    cluster = nodes(1000).with_conditions({"refusal_rate": 0.25, "retry_delay": 1})
    log = run(jobs(*[(0, 10, 1)] * 1000), cluster, "fcfs")
    refused = int((log.kind == REFUSE).sum())
    assert refused / (refused + 1000) == pytest.approx(0.25, abs=0.03)


def test_refusal__one_who_yielded_for_nothing_waits_as_well() -> None:
    """Job 0 yields to job 1, whose start is refused: job 0 takes its GPU back at once."""
    seed = next(
        seed
        for seed in range(1000)
        if [uniform(stream_key(seed, "refusal"), *at) < 0.5 for at in ((0, 0), (0, 1), (1, 0))]
        == [False, False, True]
        and uniform(stream_key(seed, "refusal"), 1, 1) >= 0.5
    )
    conditions = {"refusal_rate": 0.5, "retry_delay": 1000, "checkpoint": 0, "restart": 5}
    cluster = nodes(1).with_conditions(conditions)
    log = run(jobs((0, 100, 1), (50, 20, 1)), cluster, "srpt!srpt", seed=seed)
    assert story(log)[2:7] == [
        "50 submit 1",
        "50 preempt 0 (for another job)",
        "50 refuse 1",
        "50 resume 0 on 0:1",
        "105 finish 0",
    ]
    assert np.isclose(starts(log)[1], 1050)
