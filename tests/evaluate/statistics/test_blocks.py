"""Blocks of one continuous run: the cut, and intervals that account for similar neighbours."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.errors import ConfigError
from berthline.evaluate.statistics.blocks import BLOCKS, block_ratio, block_values
from berthline.evaluate.statistics.paired import paired_ratio, verdict
from berthline.evaluate.statistics.t_distribution import t_tail


def job_values(rng: np.random.Generator, jobs: int, memory: float) -> np.ndarray:
    """JCTs of jobs whose log-ratio to a baseline of 1 wanders with a memory of N jobs."""
    noise = rng.normal(0, 1, jobs)
    if not memory:
        return np.exp(0.3 * noise)
    keep = math.exp(-1 / memory)
    level = np.empty(jobs)
    now = rng.normal(0, 1)
    for job in range(jobs):
        now = keep * now + math.sqrt(1 - keep * keep) * noise[job]
        level[job] = now
    return np.exp(0.3 * level)


@given(st.integers(1, 40), st.integers(1, 40))
def test_block_values__are_over_all_jobs_once(blocks: int, more: int) -> None:
    values = np.arange(blocks + more, dtype=float)
    sums = block_values(values, blocks, np.sum)
    sizes = block_values(np.ones(blocks + more), blocks, np.sum)
    assert len(sums) == blocks
    assert sum(sums) == values.sum()
    assert max(sizes) - min(sizes) <= 1


def test_block_ratio__alternating_blocks__is_the_paired_ratio_of_their_means() -> None:
    """Neighbours that differ are not correlated: nothing is widened."""
    values = np.repeat(np.tile([1.0, 1.3], 8), 100) * job_values(np.random.default_rng(0), 1600, 0)
    found = block_ratio(values, np.ones(1600), seed=5)
    assert found.windows == BLOCKS
    assert (found.block_jobs, found.widened, found.autocorrelation) == (100, 1.0, 0.0)
    plain = paired_ratio(values.reshape(BLOCKS, 100).mean(axis=1), np.ones(BLOCKS), seed=5)
    assert (found.ratio, found.low, found.high) == (plain.ratio, plain.low, plain.high)
    assert found.p_value == pytest.approx(plain.p_value)
    assert verdict(found) == verdict(plain)


def test_block_ratio__blocks_alike__widen_the_interval_as_an_autoregression_does() -> None:
    values = job_values(np.random.default_rng(1), 3200, 400)
    found = block_ratio(values, np.full(3200, 1.4), seed=2)
    logs = np.log(values.reshape(BLOCKS, 200).mean(axis=1) / 1.4)
    plain = paired_ratio(np.exp(logs), np.ones(BLOCKS), seed=2)
    centred = logs - logs.mean()
    seen = (centred[1:] * centred[:-1]).sum() / (centred**2).sum()
    assert seen > 0.3
    r = seen + (1 + 3 * seen) / BLOCKS
    assert found.autocorrelation == pytest.approx(r)
    assert found.widened == pytest.approx(math.sqrt((1 + r) / (1 - r)))
    for end in ("low", "high"):
        wide = math.log(getattr(found, end) / found.ratio)
        narrow = math.log(getattr(plain, end) / plain.ratio)
        assert wide == pytest.approx(found.widened * narrow)
    t = abs(logs.mean()) / logs.std(ddof=1) * math.sqrt(BLOCKS) / found.widened
    assert found.p_value == pytest.approx(2 * t_tail(t, BLOCKS - 1))


def test_block_ratio__a_trend__is_taken_for_correlation() -> None:
    values = np.exp(np.linspace(-1, 1, 4000))
    found = block_ratio(values, np.ones(4000))
    assert found.autocorrelation == 0.95
    assert found.low < 0.5 < 2 < found.high


def test_block_ratio__other_statistic__is_the_blocks_own() -> None:
    values = job_values(np.random.default_rng(2), 1600, 0)
    found = block_ratio(
        values, np.ones(1600), statistic=lambda part: float(np.percentile(part, 99)), blocks=16
    )
    tails = [np.percentile(part, 99) for part in values.reshape(16, 100)]
    assert found.ratio == pytest.approx(math.exp(np.mean(np.log(tails))))


def test_block_ratio__constant_ratio__needs_no_widening() -> None:
    found = block_ratio(np.full(40, 2.0), np.full(40, 4.0), blocks=4)
    assert (found.ratio, found.low, found.high) == pytest.approx((0.5, 0.5, 0.5))
    assert (found.p_value, found.autocorrelation, found.widened) == (0.0, None, 1.0)


@pytest.mark.parametrize(("ours", "theirs", "blocks"), [(25, 24, 16), (0, 0, 16), (3, 3, 4)])
def test_block_ratio__not_the_same_jobs_or_too_few__is_refused(
    ours: int, theirs: int, blocks: int
) -> None:
    with pytest.raises(ConfigError, match="jobs against"):
        block_ratio(np.ones(ours), np.ones(theirs), blocks=blocks)
