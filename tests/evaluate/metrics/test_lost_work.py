"""Lost GPU-seconds, computed by hand: delays, restarts, and work that preemptions discarded."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import jobs, nodes, run, story

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.lost_work import lost_gpu_seconds
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.stretches import stretches
from berthline.model.limits import Outage

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


def lost(log: Schedule, workload: Workload, cluster: Cluster) -> list[float]:
    """Return the lost GPU-seconds of each job, and check that the metric is their sum."""
    ran = stretches(log, job_table(log, workload))
    found = lost_gpu_seconds(log, workload, cluster, ran)
    hours = measure(log, workload, cluster).lost_gpu_hours
    assert hours == pytest.approx(found.sum() / 3600, abs=1e-12)
    return [round(value, 9) for value in found.tolist()]


def with_outages(cluster: Cluster, *outages: Outage) -> Cluster:
    return dataclasses.replace(cluster, outages=outages)


def test_nothing_is_lost_without_preemptions_and_delays() -> None:
    workload, cluster = jobs((0, 10, 2), (0, 5, 4), (3, 7, 1)), nodes(4, 4)
    assert lost(run(workload, cluster, "fcfs+easy"), workload, cluster) == [0, 0, 0]


@pytest.mark.parametrize(
    ("checkpoint", "seconds"), [(0, 0), (50, 0), (49, 1), (30, 20), (60, 50), (math.inf, 50)]
)
def test_preemption__restart_and_what_was_not_saved(checkpoint: float, seconds: float) -> None:
    """Job 0 on 2 GPUs is stopped after 50 s of progress, and its restart takes 10 s."""
    workload = jobs((0, 100, 2), (50, 20, 2))
    cluster = nodes(2).with_conditions({"checkpoint": checkpoint, "restart": 10})
    log = run(workload, cluster, "srpt!srpt:min_run=0")
    assert lost(log, workload, cluster) == [2 * (seconds + 10), 0]


def test_preemption__before_any_progress_of_the_stretch() -> None:
    """Stopped at 50 (40 s are saved, 10 lost), resumed at 60, stopped at 70 during its restart.

    The second stretch was all restart: 10 s. The third has 20 s of it.
    """
    workload = jobs((0, 100, 1), (50, 10, 1), (70, 10, 1))
    cluster = nodes(1).with_conditions({"checkpoint": 20, "restart": 20})
    log = run(workload, cluster, "srpt!srpt:min_run=0")
    assert "70 preempt 0 (for another job)" in story(log)
    assert lost(log, workload, cluster) == [10 + 10 + 20, 0, 0]


def test_failure__at_half_the_speed_seconds_count_not_progress() -> None:
    """A slow GPU has done 25 s of work by 50; 20 are saved; the other 5 took 10 s."""
    workload = jobs((0, 100, 1))
    cluster = nodes(1, gpu_type=["SLOW"]).with_conditions({"checkpoint": 20, "restart": 7})
    cluster = with_outages(cluster, Outage(down=50, up=60, nodes=(0,)))
    log = run(workload, cluster, "fcfs")
    assert "50 preempt 0 (its node went down)" in story(log)
    assert lost(log, workload, cluster) == [10 + 7]


def test_start_delay_and_wake_delay_are_lost_on_every_gpu() -> None:
    """The node sleeps from 5 on; job 0 wakes it, and job 1 at the same instant need not."""
    workload, cluster = jobs((5, 10, 2), (5, 10, 1), (100, 10, 1)), nodes(4)
    conditions = {"sleep_after": 5, "wake_delay": 3, "start_delay": 2}
    cluster = cluster.with_conditions(conditions)
    log = run(workload, cluster, "fcfs")
    assert lost(log, workload, cluster) == [2 * 5, 2, 5]


def test_rounds__cost_the_restart_and_no_work() -> None:
    """Two jobs take turns on one GPU; at the end of a round everything is saved."""
    workload = jobs((0, 40, 1), (0, 40, 1))
    cluster = nodes(1).with_conditions({"checkpoint": math.inf, "restart": 5})
    log = run(workload, cluster, "[attained]+rounds:T=20")
    resumes = [line.split()[2] for line in story(log) if "resume" in line]
    assert resumes
    expected = [5.0 * resumes.count(str(job)) for job in (0, 1)]
    assert lost(log, workload, cluster) == expected


def test_rounds__a_failure_takes_nothing_that_an_earlier_round_saved() -> None:
    """Job 0 saves 20 s at the end of its round; when the node fails, it has 23 s and loses 3.

    T = 20, restart 5: it runs 0 to 20 (20 s done), job 1 20 to 40, job 0 from 40, first progress at
    45. At 48 it has 23 s. The next checkpoint would have come at 30 s. It pays for its restarts.
    """
    workload = jobs((0, 40, 1), (0, 40, 1))
    cluster = nodes(1).with_conditions({"checkpoint": 30, "restart": 5})
    cluster = with_outages(cluster, Outage(down=48, up=60, nodes=(0,)))
    log = run(workload, cluster, "[attained]+rounds:T=20")
    told = story(log)
    assert "48 preempt 0 (its node went down)" in told
    resumes = sum(line.split()[1:3] == ["resume", "0"] for line in told)
    assert lost(log, workload, cluster)[0] == 3 + 5 * resumes


def test_shared_gpu__a_neighbour_makes_lost_work_cost_more_seconds() -> None:
    """Alone until 20 (20 s of work), with a neighbour at half the rate until 60 (20 more): 40.

    36 are saved by 12; the 4 that are lost took 8 s, on half a GPU.
    """
    workload = jobs((0, 100, 1), (20, 200, 1), gpu_milli=500)
    cluster = nodes(1).with_conditions({"checkpoint": 12, "restart": 10, "interference": 1})
    cluster = with_outages(cluster, Outage(down=60, up=70, nodes=(0,)))
    log = run(workload, cluster, "fcfs")
    restarts = 0.5 * 10
    # The neighbour has done 20 s at half the rate; 12 are saved, 8 took 16 s.
    assert lost(log, workload, cluster) == [0.5 * 8 + restarts, 0.5 * 16 + restarts]


def test_shared_gpu__work_lost_from_before_and_after_the_neighbour_came() -> None:
    """20 s of work alone, then 10 in 20 s: with nothing saved, all 40 s are lost on half a GPU."""
    workload = jobs((0, 100, 1), (20, 200, 1), gpu_milli=500)
    cluster = nodes(1).with_conditions({"checkpoint": 1000, "restart": 0, "interference": 1})
    cluster = with_outages(cluster, Outage(down=40, up=70, nodes=(0,)))
    assert lost(run(workload, cluster, "fcfs"), workload, cluster) == [20, 10]


def test_jobs_without_gpus_lose_none() -> None:
    workload = jobs((0, 100, 0), cpus=1)
    cluster = nodes(1, cpus=[4]).with_conditions({"checkpoint": 1000, "restart": 5})
    cluster = with_outages(cluster, Outage(down=40, up=70, nodes=(0,)))
    assert lost(run(workload, cluster, "fcfs"), workload, cluster) == [0]


def test_horizon__what_a_running_job_has_not_saved_is_not_lost_yet() -> None:
    workload = jobs((0, 100, 1))
    cluster = nodes(1).with_conditions({"start_delay": 4, "checkpoint": 30})
    assert lost(run(workload, cluster, "fcfs", horizon=50), workload, cluster) == [4]
