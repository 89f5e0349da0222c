"""How often 95 % intervals contain the truth, over 500 repetitions (for docs/guides/evaluate.md).

Printed with `pytest -m slow -s`.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.evaluate.statistics.test_blocks import job_values

from berthline.evaluate.statistics.blocks import block_ratio
from berthline.evaluate.statistics.paired import paired_ratio

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
