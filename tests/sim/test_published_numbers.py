"""The common workload's mean wait and makespan, on which three independent programs agree.

Drawn with numpy's default_rng(42) in this order: GPUs, run times, arrivals; load 0.9. "pool" is one
node with all GPUs, "node" is nodes of 8 with consolidated first-fit.
"""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl

PUBLISHED = {  # (jobs, GPUs): {(scheduler, cluster): mean wait in seconds}
    (1_000, 64): {
        ("fcfs", "pool"): "163.482",
        ("sjf", "pool"): "69.055",
        ("fcfs+easy", "pool"): "106.449",
        ("fcfs+skip", "pool"): "59.886",
        ("fcfs", "node"): "702.517",
        ("sjf", "node"): "352.768",
    },
    (10_000, 512): {
        ("fcfs", "pool"): "97.041",
        ("sjf", "pool"): "36.138",
        ("fcfs+easy", "pool"): "84.372",
        ("fcfs+skip", "pool"): "43.607",
        ("fcfs", "node"): "1144.408",
        ("sjf", "node"): "173.855",
    },
}
MAKESPANS = {(1_000, 64): 206_590, (10_000, 512): 641_969}  # of fcfs on the pool

SLOW_REFERENCE = {("fcfs", "node")}  # of 10,000 jobs


def common_workload(jobs: int, gpus: int) -> bl.Workload:
    rng = np.random.default_rng(42)
    wanted = rng.choice([1, 2, 4, 8], jobs, p=[0.6, 0.15, 0.1, 0.15])
    run = np.clip(np.rint(rng.lognormal(np.log(1200), 1.5, jobs)), 10, 604800)
    gap = 2.5 * 1200 * np.exp(1.125) / (0.9 * gpus)
    submit = np.rint(np.cumsum(rng.exponential(gap, jobs)))
    return bl.Workload.from_columns(
        submit=submit, run=run, gpus=wanted, estimate=run, name="common", rebase=False
    )


def cases(simulator: str) -> list[object]:
    found = []
    for size, table in PUBLISHED.items():
        for (scheduler, cluster), mean in table.items():
            is_slow = (
                simulator == "reference"
                and size[0] > 1_000
                and (scheduler, cluster) in SLOW_REFERENCE
            )
            found.append(
                pytest.param(
                    *size,
                    scheduler,
                    cluster,
                    mean,
                    id=f"{size[0]}x{size[1]}-{scheduler}-{cluster}",
                    marks=[pytest.mark.slow] if is_slow else [],
                )
            )
    return found


def check(simulator: str, jobs: int, gpus: int, scheduler: str, kind: str, mean: str) -> None:
    cluster = f"uniform:1x{gpus}" if kind == "pool" else f"uniform:{gpus // 8}x8"
    metrics = bl.simulate(
        common_workload(jobs, gpus), cluster, scheduler, simulator=simulator
    ).metrics()
    assert metrics.jobs.completed == jobs
    assert f"{metrics.wait.mean:.3f}" == mean
    if (scheduler, kind) == ("fcfs", "pool"):
        assert metrics.makespan == MAKESPANS[jobs, gpus]


@pytest.mark.parametrize(("jobs", "gpus", "scheduler", "kind", "mean"), cases("native"))
def test_native__gives_the_published_numbers(
    jobs: int, gpus: int, scheduler: str, kind: str, mean: str
) -> None:
    check("native", jobs, gpus, scheduler, kind, mean)


@pytest.mark.parametrize(("jobs", "gpus", "scheduler", "kind", "mean"), cases("reference"))
def test_reference__gives_the_published_numbers(
    jobs: int, gpus: int, scheduler: str, kind: str, mean: str
) -> None:
    check("reference", jobs, gpus, scheduler, kind, mean)


@pytest.mark.parametrize("estimates", ["exact knowledge", "estimates that equal run times"])
def test_easy__exact_knowledge_is_an_estimate_equal_to_the_run_time(estimates: str) -> None:
    workload = common_workload(1_000, 64)
    knowledge = "exact" if estimates == "exact knowledge" else "estimate"
    result = bl.simulate(workload, "uniform:1x64", "fcfs+easy", knowledge=knowledge)
    assert f"{result.metrics().wait.mean:.3f}" == "106.449"
