"""The committing scheduler: each rule on jobs small enough to follow, and Berthline at the end."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.commit_until_start import Job, Rules, start_times

import berthline as bl

SHORTEST = lambda job, _: job.run  # noqa: E731


def starts(rows, rules=None, key=SHORTEST, processors=4):
    return start_times([Job(*row) for row in rows], key, rules or Rules(), processors=processors)


def test_a_choice_stands_although_a_shorter_job_arrives():
    rows = [(0, 10, 4), (1, 100, 4), (2, 1, 1)]
    assert starts(rows) == [0, 10, 110]
    assert starts(rows, Rules(commits=False)) == [0, 11, 10]


def test_the_first_choice_sees_only_who_is_there():
    assert starts([(0, 10, 4), (0, 1, 4)]) == [0, 10]
    assert starts([(0, 10, 4), (0, 1, 4)], Rules(commits=False)) == [1, 0]


@pytest.mark.parametrize(("run", "passes", "passes_with_spares"), [(8, 1, 1), (9, 12, 1)])
def test_who_passes_must_end_before_the_reservation(run, passes, passes_with_spares):
    rows = [(0, 10, 3), (0, 2, 4), (1, run, 1)]  # the second is chosen, and starts at 10
    assert starts(rows, Rules(backfills=True)) == [0, 10, passes]
    assert starts(rows, Rules(backfills=True, spares=True)) == [0, 10, passes_with_spares]


def test_who_ends_later_may_use_what_the_chosen_job_leaves_free():
    rows = [(0, 10, 3), (0, 2, 3), (1, 50, 1)]
    assert starts(rows, Rules(backfills=True)) == [0, 10, 10]
    assert starts(rows, Rules(backfills=True, spares=True)) == [0, 10, 1]


def test_without_backfilling_nobody_passes():
    assert starts([(0, 10, 3), (0, 2, 4), (1, 3, 1)]) == [0, 10, 12]


def test_who_passes_is_tried_by_submission_or_by_the_same_key():
    rows = [(0, 20, 3), (0, 5, 1), (1, 2, 4), (2, 9, 1), (3, 4, 1)]  # one is free again at 5
    assert starts(rows, Rules(backfills=True)) == [0, 0, 20, 5, 14]
    assert starts(rows, Rules(backfills=True, own_order=True)) == [0, 0, 20, 9, 5]


ORDERS = {
    "fcfs": lambda job, now: job.submit,
    "sjf": lambda job, now: job.run,
    "largest-area": lambda job, now: -job.run * job.processors,
    "hrrn": lambda job, now: -(1 + (now - job.submit) / job.run),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("discipline", ["strict", "easy"])
def test_with_every_rule_switched_schedules_are_those_of_berthline(order, discipline):
    rng = np.random.default_rng([len(order), len(discipline)])
    rules = Rules(commits=False)
    if discipline == "easy":
        rules = Rules(commits=False, backfills=True, spares=True, own_order=True)
    for _ in range(40):
        size = 60
        submit = np.sort(rng.integers(0, 150, size))
        run, gpus = rng.integers(1, 30, size), rng.integers(1, 9, size)
        jobs = [Job(*row) for row in np.array([submit, run, gpus]).T.tolist()]
        ours = start_times(jobs, ORDERS[order], rules, processors=8)
        workload = bl.Workload.from_columns(submit=submit, run=run, gpus=gpus, rebase=False)
        result = bl.simulate(workload, "uniform:1x8", f"{order}+{discipline}", knowledge="exact")
        assert result.metrics().wait.mean == pytest.approx(np.mean(ours - submit), rel=1e-12)
        assert result.metrics().wait.max == np.max(ours - submit)
