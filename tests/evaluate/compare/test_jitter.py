"""Jitter: replicates within the stated noise, the same for the same seed, used in intervals."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.evaluate.compare.compare import compare
from berthline.evaluate.compare.jitter import SECONDS, SHARE, jittered
from berthline.evaluate.statistics.blocks import replicated_block_ratio
from berthline.model.workload import Workload
from berthline.sim.simulate import simulate

CLUSTER = "uniform:2x8"
PAIR = ["fcfs+easy", "sjf+easy"]


def jobs_with_names() -> Workload:
    jobs = bl.generate(
        "synthetic", cluster=CLUSTER, jobs=500, load=1.0, seed=3, estimate_error=1, users=4
    )
    columns = {
        name: getattr(jobs, name)
        for name in ("submit", "run", "gpus", "estimate", "user", "priority")
    }
    names = [f"job-{row}" for row in range(500)]
    return Workload.from_columns(
        **columns, deadline=jobs.submit + 1000, names=names, rebase=False, name="given"
    )


@pytest.mark.parametrize("knowledge", ["estimate", "exact"])
def test_a_replicate__is_within_the_noise(knowledge: str) -> None:
    jobs = jobs_with_names()
    found = jittered(jobs, seed=1, replicate=2, knowledge=knowledge)
    row = np.array([int(str(name).removeprefix("job-")) for name in found.names])
    assert sorted(row) == list(range(500))
    moved = found.submit - jobs.submit[row]
    assert 0.9 * SECONDS < np.abs(moved).max() <= SECONDS
    assert np.allclose(found.deadline - found.submit, 1000)
    ratio = found.estimate / jobs.estimate[row]
    assert 0.9 * SHARE < np.abs(ratio - 1).max() <= SHARE + 1e-12
    assert (found.estimate >= found.run)[(jobs.estimate >= jobs.run)[row]].all()
    kept = np.array_equal(found.run, jobs.run[row])
    assert kept == (knowledge == "estimate")
    assert (found.gpus == jobs.gpus[row]).all()
    assert (found.user == jobs.user[row]).all()


def test_replicates__depend_on_seed_and_number_only() -> None:
    jobs = jobs_with_names()

    def submit(seed: int, replicate: int) -> list[float]:
        return jittered(jobs, seed=seed, replicate=replicate, knowledge="none").submit.tolist()

    assert jittered(jobs, seed=0, replicate=0, knowledge="none") is jobs
    assert submit(0, 1) == submit(0, 1)
    assert submit(0, 1) != submit(0, 2)
    assert submit(0, 1) != submit(1, 1)


def test_intervals__are_over_blocks_averaged_over_replicates() -> None:
    jobs = jobs_with_names()
    found = compare(jobs, CLUSTER, PAIR, jitter=3, blocks=5, seed=9)
    assert (found.continuous, found.jitter, found.windows) == (True, 3, 4)
    columns = []
    for replicate in range(4):
        each = jittered(jobs, seed=9, replicate=replicate, knowledge="estimate")
        runs = [simulate(each, CLUSTER, name, seed=9) for name in reversed(PAIR)]
        columns.append(tuple(_jct(run, each) for run in runs))
    expected = replicated_block_ratio(columns, blocks=5, seed=9)
    judged = found.schedulers[1].against_baseline.jct_mean
    assert (judged.ratio, judged.low, judged.high) == pytest.approx(
        (expected.ratio, expected.low, expected.high), rel=1e-5
    )
    totals = [ours.mean() / theirs.mean() for ours, theirs in columns]
    assert judged.total == pytest.approx(np.exp(np.log(totals).mean()), rel=1e-6)
    assert judged.total_low < judged.total < judged.total_high
    means = found.schedulers[1].metrics.jct.mean
    assert means == pytest.approx(np.mean([ours.mean() for ours, _ in columns]), rel=1e-6)
    # Counts are those of the worst replicate: the jobs are the same.
    assert found.schedulers[1].starvation.starved <= len(jobs)


def test_any_number_of_workers__gives_the_same_bits() -> None:
    jobs = jobs_with_names()
    one, two = (compare(jobs, CLUSTER, PAIR, jitter=2, blocks=4, workers=n) for n in (1, 2))
    for ours, theirs in zip(one.schedulers, two.schedulers, strict=True):
        assert ours.log_sha256 == theirs.log_sha256
        assert ours.against_baseline == theirs.against_baseline


def _jct(result: object, jobs: Workload) -> np.ndarray:
    from berthline.evaluate.metrics.job_table import completion_times, job_table

    return completion_times(job_table(result.log, jobs), jobs)
