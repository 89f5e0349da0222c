"""How often 95 % intervals contain the truth (for docs/guides/evaluate.md).

Printed with `pytest -m slow -s`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.evaluate.statistics.test_blocks import job_values

import berthline as bl
from berthline.evaluate.compare.jitter import jittered
from berthline.evaluate.metrics.job_table import completion_times, job_table
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.evaluate.statistics.blocks import (
    _autocorrelation,
    block_ratio,
    replicated_block_ratio,
)
from berthline.evaluate.statistics.paired import paired_ratio
from berthline.evaluate.statistics.t_distribution import t_quantile

REPETITIONS = 500
SPREAD = 0.2


def log_ratios(shape: str, windows: int, rng: np.random.Generator) -> np.ndarray:
    """Log-ratios around 0, as skewed as the shape says."""
    if shape == "normal":
        return rng.normal(0, SPREAD, windows)
    if shape == "gamma":  # skewness 1
        return SPREAD * (rng.gamma(4, 1, windows) - 4) / 2
    return SPREAD * (rng.exponential(1, windows) - 1)  # skewness 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "windows"),
    [
        *(("normal", windows) for windows in (8, 15, 30, 120)),
        *(("gamma", windows) for windows in (15, 30, 120)),
        ("exponential", 120),
    ],
)
def test_paired_interval__covers_the_truth(shape: str, windows: int) -> None:
    covered = 0
    rng = np.random.default_rng([windows, 0xC0])
    for seed in range(REPETITIONS):
        logs = log_ratios(shape, windows, rng)
        found = paired_ratio(np.exp(logs), np.ones(windows), seed=seed, resamples=2_000)
        covered += found.low <= 1 <= found.high
    print(f"{shape}, {windows} windows: {covered / REPETITIONS:.1%}")
    assert 0.93 <= covered / REPETITIONS <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("windows", [15, 30, 60])
def test_paired_interval__strong_skew_and_few_windows__covers_less(windows: int) -> None:
    """A known limit: few windows do not show the mean itself."""
    covered = 0
    rng = np.random.default_rng([windows, 0xC1])
    for seed in range(REPETITIONS):
        logs = log_ratios("exponential", windows, rng)
        found = paired_ratio(np.exp(logs), np.ones(windows), seed=seed, resamples=2_000)
        covered += found.low <= 1 <= found.high
    print(f"exponential, {windows} windows: {covered / REPETITIONS:.1%}")
    assert 0.9 <= covered / REPETITIONS <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "least"),
    [(0, 0.93), (20, 0.93), (100, 0.93), (400, 0.88)],  # 400 jobs are a whole block: a known limit
)
def test_block_interval__covers_the_truth(memory: int, least: float) -> None:
    """Runs of 6,400 jobs; the truth is what very long runs give."""
    truth = math.exp(0.3**2 / 2)  # the mean of a lognormal
    covered = 0
    rng = np.random.default_rng([memory, 0xB1])
    for seed in range(REPETITIONS):
        found = block_ratio(
            job_values(rng, 6400, memory), np.full(6400, truth), seed=seed, resamples=1_000
        )
        covered += found.low <= 1 <= found.high
    print(f"blocks, memory of {memory} jobs: {covered / REPETITIONS:.1%}")
    assert least <= covered / REPETITIONS <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize("replicates", [0, 4])
@pytest.mark.parametrize("jobs", [4_000, 16_000])
def test_block_interval__simulated_runs__cover_a_typical_block_but_not_the_whole_run(
    jobs: int, replicates: int
) -> None:
    """Known limits: block intervals are narrow, and those of p99 are not about the run's p99.

    Jittered replicates do not change that: a small noise shows what one period could have given,
    not how periods differ.
    """
    runs = [_simulated(jobs, seed, replicates) for seed in range(100)]
    for name, column, statistic in (
        ("mean JCT", 0, np.mean),
        ("slowdown", 1, np.mean),
        ("p99 JCT", 0, lambda values: float(np.percentile(values, 99))),
    ):
        pairs = [[(ours[column], theirs[column]) for ours, theirs in run] for run in runs]
        found = [
            replicated_block_ratio(pair, statistic=statistic, seed=seed, resamples=1_000)
            for seed, pair in enumerate(pairs)
        ]
        typical = math.exp(np.mean([math.log(each.ratio) for each in found]))
        ours, theirs = (
            np.concatenate(side) for side in zip(*(pair[0] for pair in pairs), strict=True)
        )
        whole = statistic(ours) / statistic(theirs)
        covered, of_whole = (
            np.mean([each.low <= truth <= each.high for each in found])
            for truth in (typical, whole)
        )
        print(
            f"16 blocks of {jobs // 16} jobs, {replicates} replicates, {name}: a typical block"
            f" {covered:.0%}, the whole run {of_whole:.0%}"
        )
        assert (0.7 if replicates else 0.75) <= covered <= 0.98
        assert of_whole < covered


def _simulated(jobs: int, seed: int, replicates: int) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Return JCTs and slowdowns of sjf+easy and of fcfs+easy on the same generated jobs.

    The first pair is of the jobs as they are, the others of jittered replicates.
    """
    cluster = bl.Cluster.parse("uniform:8x8:V100")
    original = bl.generate("synthetic", cluster=cluster, jobs=jobs, load=0.9, seed=1000 + seed)
    pairs = []
    for replicate in range(replicates + 1):
        workload = jittered(original, seed=seed, replicate=replicate, knowledge="estimate")
        found = []
        for scheduler in ("sjf+easy", "fcfs+easy"):
            table = job_table(bl.simulate(workload, cluster, scheduler).log, workload)
            found.append((completion_times(table, workload), bounded_slowdowns(table, workload)))
        pairs.append(found)
    return pairs


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [4_000, 16_000])
def test_other_intervals__do_not_cover_the_whole_run_either(jobs: int) -> None:
    """Known limit (decision 29): a run without a crowd does not know what a crowd costs.

    The jackknife of the ratio of totals over fewer and longer blocks, with Student's t and widened
    by the correlation of neighbours, is what is usual for such data.
    """
    runs = [_simulated(jobs, seed, 0)[0] for seed in range(80)]
    shares = {}
    for name, column in (("mean JCT", 0), ("slowdown", 1)):
        ours, theirs = (
            np.stack([run[side][column] for run in runs]) for side in (0, 1)
        )  # (num_runs, num_jobs)
        truth = math.log(ours.mean() / theirs.mean())
        for blocks in (16, 8, 5):
            covered = 0
            for one, other in zip(ours, theirs, strict=True):
                low, high = _jackknife(one, other, blocks)
                covered += low <= truth <= high
            shares[name, blocks] = covered / len(runs)
            print(
                f"{blocks} blocks of {jobs // blocks} jobs, jackknife of the totals, {name}: the "
                f"whole run {shares[name, blocks]:.0%}"
            )
    assert all(0.55 <= share <= 0.9 for share in shares.values())
    assert min(shares[name, 5] - shares[name, 16] for name in ("mean JCT", "slowdown")) > 0


def _jackknife(ours: np.ndarray, theirs: np.ndarray, blocks: int) -> tuple[float, float]:
    """Return an interval of the log of the ratio of two totals."""
    mine, other = (
        np.array([part.sum() for part in np.array_split(side, blocks)]) for side in (ours, theirs)
    )
    without = np.log((mine.sum() - mine) / (other.sum() - other))
    error = math.sqrt((blocks - 1) / blocks * ((without - without.mean()) ** 2).sum())
    r = _autocorrelation(without) or 0.0
    half = t_quantile(0.975, blocks - 1) * error * math.sqrt((1 + r) / (1 - r))
    centre = math.log(mine.sum() / other.sum())
    return centre - half, centre + half
