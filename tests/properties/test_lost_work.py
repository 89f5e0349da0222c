"""Lost GPU-seconds of random runs: what was held is what was useful and what was lost."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import random_model_run
from tests.properties.progress import CLOSE, Progress
from tests.properties.test_model_invariants import log_of

from berthline.evaluate.metrics.job_table import COMPLETED, job_table
from berthline.evaluate.metrics.lost_work import lost_gpu_seconds
from berthline.evaluate.metrics.stretches import stretches

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run

    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn

RATE_ONE = {"gpu_speeds": 0, "across_nodes": 1, "across_racks": 1, "interference": 0}


def held_and_lost(run: Run, log: Schedule) -> tuple[FloatColumn, FloatColumn]:
    """Return the GPU-seconds that each job held, and those it lost."""
    workload = run.workload
    ran = stretches(log, job_table(log, workload))
    gpus = workload.gpus * workload.gpu_milli / 1000
    seconds = np.bincount(ran.job, ran.stop - ran.begin, minlength=len(workload))
    return gpus * seconds, lost_gpu_seconds(log, workload, run.cluster, ran)


def check_rate_one(run: Run) -> float:
    """At rate 1, a finished job held its GPUs for its run time, and for what it lost."""
    run = dataclasses.replace(run, cluster=run.cluster.with_conditions(RATE_ONE))
    log = log_of(run)
    if log is None:
        return 0.0
    held, lost = held_and_lost(run, log)
    assert (lost >= 0).all()
    assert (lost <= held + CLOSE).all()
    finished = job_table(log, run.workload).status == COMPLETED
    useful = run.workload.gpus * run.workload.gpu_milli / 1000 * run.workload.run
    np.testing.assert_allclose((held - lost)[finished], useful[finished], rtol=1e-9, atol=CLOSE)
    return float(lost.sum())


def check_any_rate(run: Run) -> float:
    """The account of tests/properties/progress.py, kept instant by instant, says the same."""
    log = log_of(run)
    if log is None or not len(log):
        return 0.0
    held, lost = held_and_lost(run, log)
    assert (lost >= 0).all()
    assert (lost <= held + CLOSE).all()
    progress = Progress(log, run.workload, run.cluster)
    for job in progress.finished:
        done = progress.done[job]
        if done.is_clear:
            gpus = run.workload.gpus[job] * run.workload.gpu_milli[job] / 1000
            expected = gpus * (done.held - done.useful)
            assert lost[job] == pytest.approx(expected, rel=1e-6, abs=1e-5), (job, run)
    return float(lost.sum())


@pytest.mark.parametrize("block", range(4))
def test_lost__at_rate_one(block: int) -> None:
    lost = [check_rate_one(random_model_run(8_000_000 + 60 * block + n)) for n in range(60)]
    assert sum(value > 0 for value in lost) > 20


@pytest.mark.parametrize("block", range(4))
def test_lost__at_any_rate(block: int) -> None:
    lost = [check_any_rate(random_model_run(8_100_000 + 60 * block + n)) for n in range(60)]
    assert sum(value > 0 for value in lost) > 20


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=10_000_000, max_value=2**40))
def test_lost__drawn_runs(number: int) -> None:
    check_rate_one(random_model_run(number))
    check_any_rate(random_model_run(number))
