"""When a job will start, from what is known while it waits."""

from __future__ import annotations

import numpy as np
from tests.agreement.random_model_runs import random_model_run
from tests.evaluate.explain.explained_runs import run_of, simulated

from berthline.evaluate.explain.explain import explain
from berthline.evaluate.explain.job_waits import waits_of
from berthline.evaluate.metrics.job_table import job_table
from berthline.model.workload import Workload
from berthline.sim.simulate import simulate


def test_certain_if_everything_is_known() -> None:
    result = run_of([8, 8, 8], "fcfs")
    found = explain(result, 2, draws=5)
    assert found.forecast is not None
    # All ratios of run time to estimate are possible: no job has finished yet.
    assert found.forecast.run_times == "even"
    assert 2 < found.forecast.low <= found.forecast.high <= 200
    exact = simulate(result.workload, result.cluster, "fcfs", knowledge="exact")
    known = explain(exact, 2, draws=5).forecast
    assert known is not None
    assert (known.low, known.median, known.high, known.run_times) == (200, 200, 200, "exact")


def test_the_past_is_kept() -> None:
    kept = 0
    for number in range(0, 120, 3):
        result = simulated(random_model_run(number))
        if result is None:
            continue
        waiting = [j for j in range(len(result.workload)) if waits_of(result, j)]
        for job in waiting[::9]:
            found = explain(result, job, draws=3)
            assert found.forecast is not None
            assert found.forecast.time < found.forecast.low
            kept += found.forecast.draws == 3
    assert kept > 20


def test_no_knowledge_of_what_comes() -> None:
    """Whatever happens later, the forecast is the same."""
    rng = np.random.default_rng(2)
    jobs = 80
    run = rng.integers(20, 200, jobs).astype(float)
    columns = {
        "submit": np.sort(rng.integers(0, 2000, jobs)).astype(float),
        "gpus": rng.integers(1, 5, jobs),
        "estimate": run * 2,
    }
    result = simulate(Workload.from_columns(run=run, **columns), "uniform:2x4", "sjf+easy")
    waiting = [j for j in range(40, jobs) if waits_of(result, j)]
    job = waiting[0]
    before = explain(result, job, draws=10).forecast
    assert before is not None
    table = job_table(result.log, result.workload)
    running = np.flatnonzero((table.start <= before.time) & (table.finish > before.time))
    later = run.copy()
    later[np.flatnonzero(result.workload.submit > before.time)] *= 3
    later[running] *= 1.5
    other = simulate(Workload.from_columns(run=later, **columns), "uniform:2x4", "sjf+easy")
    after = explain(other, job, draws=10).forecast
    assert after == before
