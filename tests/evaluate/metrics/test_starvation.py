"""Starvation: by hand at its limits; long queues for all jobs are not starvation; words."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.evaluate.schedules import schedule

from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.starvation import (
    DAY,
    Starvation,
    of_waits,
    over_runs,
    starvation,
    starvation_words,
    starves_words,
)
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

ONE_GPU = Cluster.uniform(nodes=1, gpus_per_node=1)


def found_of(waits: list[float], runs: float | list[float] = 1.0) -> Starvation:
    """One job a minute with these waits."""
    waited = np.array(waits, dtype=float)
    run = np.broadcast_to(np.array(runs, dtype=float), waited.shape)
    return of_waits(waited, 60.0 * np.arange(len(waited)), run, job=0, name="x")


def test_names_the_job_that_waited_longest() -> None:
    jobs = Workload.from_columns(submit=[0, 0, 3], run=1, gpus=1, names=["a", "b", "c"])
    rows = [(0, "submit", 0), (0, "submit", 1), (0, "start", 0, {0: 1}), (1, "finish", 0)]
    rows += [(3, "submit", 2), (3, "start", 2, {0: 1}), (4, "finish", 2)]
    rows += [(4, "start", 1, {0: 1}), (5, "finish", 1)]
    found = measure(schedule(rows), jobs, ONE_GPU).starvation
    assert found is not None
    assert (found.wait, found.job, found.name) == (4, 1, "b")
    assert starvation_words(found) == (
        "longest wait 4 s (job b); 0 jobs waited more than 10 x run time and a day"
    )


def test_job_not_started__has_waited_until_the_end_and_rejects_do_not_count() -> None:
    jobs = Workload.from_columns(submit=[0, 0, 3], run=1, gpus=[9, 1, 1])
    rows = [
        (0, "submit", 0),
        (0, "reject", 0, 2),
        (0, "submit", 1),
        (0, "start", 1, {0: 1}),
        (1, "finish", 1),
        (3, "submit", 2),
    ]
    found = starvation(job_table(schedule(rows, horizon=15 * DAY), jobs), jobs)
    assert found is not None
    # No job came after it: it is starved, but no later job was served instead.
    assert (found.wait, found.job, found.starved, found.starves) == (15 * DAY - 3, 2, 1, False)
    nobody = job_table(schedule(rows[:2]), jobs.window(0, 1))
    assert starvation(nobody, jobs.window(0, 1)) is None


@pytest.mark.parametrize(
    ("wait", "run", "starved"),
    [
        (DAY, 1, 0),
        (DAY + 1, 1, 1),
        (5 * DAY, 0.5 * DAY, 0),
        (5 * DAY, 0.49 * DAY, 1),
    ],
)
def test_a_starved_job__waits_more_than_ten_run_times_and_a_day(
    wait: float, run: float, starved: int
) -> None:
    found = found_of([wait] + [0.0] * 99, [run] + [1.0] * 99)
    assert (found.starved, found.starves) == (starved, False)


def test_a_scheduler_starves__if_it_leaves_one_job_behind() -> None:
    found = found_of([15 * DAY] + [60.0] * 99)
    assert (found.starved, found.left_behind, found.starves) == (1, 1, True)
    assert not found_of([14 * DAY] + [60.0] * 99).starves


def test_only_jobs_submitted_meanwhile__say_who_is_left_behind() -> None:
    """Calm before a long queue does not make its jobs left behind."""
    waits = [0.0] * 500 + [15 * DAY] + [2 * DAY] * 50
    assert not found_of(waits).starves
    waits[501:] = [0.5 * DAY] * 50
    assert found_of(waits).left_behind == 1


def test_a_long_queue_for_all_jobs__is_not_starvation() -> None:
    found = found_of(np.linspace(5 * DAY, 22 * DAY, 100).tolist())
    assert (found.starved, found.left_behind, found.starves) == (100, 0, False)


def test_a_long_job_that_waits_in_proportion__is_not_starved() -> None:
    assert found_of([20 * DAY] + [0.0] * 99, [3 * DAY] + [1.0] * 99).starved == 0


def test_several_runs__have_the_longest_wait_and_all_jobs() -> None:
    calm, starving = found_of([2 * DAY, 0.0]), found_of([30 * DAY] + [60.0] * 99)
    together = over_runs([calm, None, msgspec.structs.replace(starving, name="y")])
    assert together is not None
    assert (together.wait, together.name, together.starved) == (30 * DAY, "y", 2)
    assert (together.left_behind, together.starves) == (1, True)
    assert over_runs([None]) is None
    words = starves_words({"fcfs": calm, "sjf": starving, "none": None})
    assert words == "sjf (1 job left behind, longest wait 30.0 days) starves"
    assert starves_words({"fcfs": calm}) == ""
