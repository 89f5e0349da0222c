"""A run and its own prefix agree: nothing depends on jobs that are not submitted yet.

The log of the first k jobs alone is the log of all jobs up to the submission of job k + 1. Random
draws belong to the job: they do not change when a job that never ran is left out.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run

import berthline as bl
from berthline.errors import PolicyError
from berthline.model.schedule import NODE_DOWN, NODE_UP, REJECT, SUBMIT, Schedule
from berthline.model.workload import Workload
from berthline.model.workload_rows import workload_of_rows
from berthline.policies.rules import PLACEMENTS

RUNS_PER_BLOCK = 60
FACTS = (
    # What was taken over the whole workload, each where it decides.
    "slurm-multifactor+skip",
    "[abs(priority / max_priority - 0.5)]+skip",
    "sjf+easy",
    "fcfs+conservative",
    "fcfs+skip@fgd",
    "random+skip@random",
)


def log_of(run: Run, workload: Workload, simulator: str = "native") -> Schedule | None:
    """Return the log; None = the scheduler needs estimates and no job has one."""
    try:
        return bl.simulate(
            workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
            simulator=simulator,
        ).log
    except PolicyError:
        return None


def rows_before(log: Schedule, time: float) -> list[tuple[object, ...]]:
    """Return what happened before an instant, with allocations."""
    rows: list[tuple[object, ...]] = []
    for row in range(int(np.searchsorted(log.time, time, side="left"))):
        place = ()
        if log.is_start[row]:
            place = tuple(
                (share, int(log.alloc_slot[int(log.detail[row]) + number]))
                for number, share in enumerate(log.allocation(row).items())
            )
        detail = -1 if place else int(log.detail[row])
        rows.append((float(log.time[row]), int(log.kind[row]), int(log.job[row]), detail, place))
    return rows


def assert_prefix_agrees(run: Run, simulator: str = "native") -> int:
    """Compare a run with runs of its first jobs; return how many prefixes were compared."""
    # One horizon for all, so that nodes fail alike.
    run = dataclasses.replace(run, horizon=run.horizon or 1e5 + float(run.workload.submit[-1]))
    whole = log_of(run, run.workload, simulator)
    submit = run.workload.submit
    cuts = np.flatnonzero(np.diff(submit)) + 1
    if whole is None or not cuts.size:
        return 0
    compared = 0
    for first in {int(cuts[len(cuts) // 3]), int(cuts[len(cuts) // 2]), int(cuts[-1])}:
        prefix = log_of(run, workload_of_rows(run.workload, slice(0, first)), simulator)
        if prefix is None:
            continue
        found, expected = (rows_before(log, float(submit[first])) for log in (prefix, whole))
        # A run ends with its last job; the whole run goes on to watch idle nodes fail.
        while len(expected) > len(found) and expected[-1][1] in (NODE_DOWN, NODE_UP):
            expected.pop()
        assert found == expected, (run.scheduler, run.knowledge, first)
        compared += 1
    return compared


@pytest.mark.parametrize("block", range(4))
def test_prefix__pinned_numbers(block: int) -> None:
    compared = 0
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        compared += assert_prefix_agrees(random_run(number))
        compared += assert_prefix_agrees(random_model_run(number))
    assert compared > RUNS_PER_BLOCK


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize("scheduler", FACTS)
def test_prefix__facts_that_were_taken_over_the_whole_workload(
    scheduler: str, simulator: str
) -> None:
    compared = 0
    for number in range(40 if simulator == "native" else 8):
        run = (random_model_run if number % 2 else random_run)(1000 + number)
        rng = np.random.default_rng(number)
        estimate = run.workload.estimate.copy()
        estimate[1:][rng.random(len(estimate) - 1) < 0.5] = np.nan
        jobs = workload_of_rows(
            run.workload,
            slice(None),
            estimate=estimate,
            priority=np.floor(rng.exponential(2.0, len(estimate))),
        )
        run = dataclasses.replace(run, workload=jobs, scheduler=scheduler, knowledge="estimate")
        compared += assert_prefix_agrees(run, simulator)
    assert compared > 10


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=1_000_000, max_value=2**40), st.booleans())
def test_prefix__drawn_numbers(number: int, has_full_model: bool) -> None:
    assert_prefix_agrees((random_model_run if has_full_model else random_run)(number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_prefix__many_numbers(block: int) -> None:
    for number in range(10_000 + block * RUNS_PER_BLOCK, 10_000 + (block + 1) * RUNS_PER_BLOCK):
        assert_prefix_agrees(random_run(number))
        assert_prefix_agrees(random_model_run(number))


def test_prefix__every_placement_is_drawn() -> None:
    drawn = {
        random_model_run(number).scheduler.split("@")[1].split("!")[0].split("?")[0]
        for number in range(4 * RUNS_PER_BLOCK)
    }
    assert set(PLACEMENTS) - {"milp"} <= drawn


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize("scheduler", ["random+skip", "fcfs+skip@random", "fcfs+skip"])
def test_draws__belong_to_the_job_and_not_to_its_row(scheduler: str, simulator: str) -> None:
    rng = np.random.default_rng(5)
    count = 60
    gpus = rng.integers(1, 5, count)
    gpus[[0, 7, 20]] = 1000  # rejected
    columns = {
        "submit": np.cumsum(rng.exponential(5.0, count)),
        "run": rng.integers(1, 120, count).astype(float),
        "gpus": gpus,
        "names": np.array([f"job-{number}" for number in range(count)]),
    }
    cluster = bl.Cluster.uniform(nodes=6, gpus_per_node=4)
    if scheduler == "fcfs+skip":
        cluster = cluster.with_conditions({"refusal_rate": 0.5, "retry_delay": 3.0})

    def history(rows: np.ndarray) -> list[tuple[object, ...]]:
        jobs = Workload.from_columns(
            **{name: column[rows] for name, column in columns.items()}, rebase=False
        )
        log = bl.simulate(
            jobs, cluster, scheduler, knowledge="none", seed=3, simulator=simulator
        ).log
        assert jobs.names is not None
        return [
            (time, kind, str(jobs.names[job]), place)
            for time, kind, job, _, place in rows_before(log, np.inf)
            if kind not in (SUBMIT, REJECT)
        ]

    assert history(np.arange(count)) == history(np.flatnonzero(gpus < 1000))
