"""What would have let a job start sooner: each change is a separate run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from tests.agreement.random_model_runs import random_model_run
from tests.evaluate.explain.explained_runs import run_of, simulated

from berthline.evaluate.explain.explain import explain
from berthline.evaluate.explain.unblock import unblock, variants_of
from berthline.evaluate.metrics.job_table import job_table
from berthline.sim.simulate import Result, simulate

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster


def test_each_change_is_a_run() -> None:
    result = run_of([5, 8, 1, 1], "fcfs", priority=[0, 0, 0, 1])
    found = explain(result, 2)
    changes = {change.change: change for change in unblock(result, found)}
    assert changes["discipline skip"].start == 2
    assert changes["discipline skip"].sooner == found.wait
    assert changes["discipline easy"].start == simulate_start(result, 2, "fcfs+easy")
    assert changes["without job 1"].start == 2
    assert changes["one more node, with 4 GPUs"].start == simulate_start(
        result, 2, "fcfs", cluster="uniform:3x4"
    )


def test_best_first_and_honest_about_what_is_not_possible() -> None:
    result = run_of([5, 8, 1], "fcfs", estimate=None)
    changes = unblock(result, explain(result, 2))
    sooner = [change.sooner for change in changes if change.sooner is not None]
    assert sooner == sorted(sooner, reverse=True)
    [easy] = [change for change in changes if change.change == "discipline easy"]
    assert "no job has an estimate" in easy.error
    assert easy.start is None


def test_others_are_as_they_were() -> None:
    variants = 0
    for number in range(0, 40, 4):
        result = simulated(random_model_run(number))
        if result is None:
            continue
        for variant in variants_of(result, explain(result, len(result.workload) // 2)):
            assert len(variant.workload) == len(result.workload)
            assert np.array_equal(variant.workload.submit, result.workload.submit)
            variants += 1
    assert variants > 10


def simulate_start(
    result: Result, job: int, scheduler: str, cluster: str | Cluster | None = None
) -> float:
    again = simulate(result.workload, cluster or result.cluster, scheduler)
    return float(job_table(again.log, again.workload).start[job])
