"""Blocks: one continuous run per scheduler, evaluated in consecutive blocks of jobs.

Windows that each start on an empty cluster flatter schedulers that keep GPUs idle: there is always
room at first, and the queue that is left at the end costs nothing. One run over the whole period
avoids both, but its parts are not independent: a queue built up in one block is worked off in the
next. Therefore blocks are few and long (batch means), and the remaining correlation between
neighbours widens the interval.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.evaluate.statistics.paired import Ratio, log_ratios, ratio_of_logs
from berthline.evaluate.statistics.t_distribution import t_quantile, t_tail

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.evaluate.statistics.interval import Floats

BLOCKS = 16
"""Few enough that a block outlasts most queues, many enough for an interval. More and shorter
blocks, or a search for the shortest that look independent, cover the truth less often: correlated
neighbours do not always look correlated."""

_MOST_CORRELATED = 0.95


class BlockRatio(Ratio, frozen=True, kw_only=True):
    """A ratio to the baseline over the blocks of one continuous run; `windows` counts blocks.

    Attributes:
        block_jobs: jobs per block (to within one).
        autocorrelation: between the log-ratios of neighbouring blocks, 0 or more; None if blocks
            are too few or all equal.
        widened: factor by which it widens the interval, on log-ratios; 1 = not at all.
    """

    block_jobs: int
    autocorrelation: float | None
    widened: float


def block_ratio(
    values: npt.ArrayLike,
    baseline: npt.ArrayLike,
    *,
    statistic: Callable[[Floats], float] = np.mean,
    blocks: int = BLOCKS,
    seed: int = 0,
    resamples: int = 10_000,
) -> BlockRatio:
    """Return the ratio of one continuous run to another, in blocks of jobs.

    Formula: jobs in the order of submission are cut into blocks of equal size; `paired_ratio`
    compares the statistic of each block like the value of a window. Then the interval is widened by
    sqrt((1 + r) / (1 - r)) on log-ratios, as for a first-order autoregression, with r the
    correlation of neighbouring log-ratios. The estimate r1 from n blocks is on average too low by
    (1 + 3 r1) / n, so r = min(max(r1 + (1 + 3 max(r1, 0)) / n, 0), 0.95). The ratio is that of a
    typical block; the ratio of the whole run can differ, for percentiles by far.

    Args:
        values: one value of every counted job, in the order of submission, such as its JCT.
        baseline: the baseline's values of the same jobs.
        statistic: the statistic of a block; the mean by default, or a percentile for the tail.
        blocks: number of blocks; no more than there are jobs.
        seed: seed of the resampling.
        resamples: number of resamples.

    Raises:
        ConfigError: the two differ in length, or there are fewer jobs than blocks.
    """
    return replicated_block_ratio(
        [(values, baseline)], statistic=statistic, blocks=blocks, seed=seed, resamples=resamples
    )


def replicated_block_ratio(
    replicates: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    statistic: Callable[[Floats], float] = np.mean,
    blocks: int = BLOCKS,
    seed: int = 0,
    resamples: int = 10_000,
) -> BlockRatio:
    """Return the ratio over several replicates of a continuous run, as `block_ratio` does for one.

    Formula: `block_ratio` with the log-ratio of each block averaged over the replicates. This
    removes most of what a slightly different timing would have changed.

    Args:
        replicates: for each, the values and the baseline's values of its jobs.
        statistic: the statistic of a block.
        blocks: number of blocks.
        seed: seed of the resampling.
        resamples: number of resamples.

    Raises:
        ConfigError: there is no replicate, two sides differ in length, or there are fewer jobs
            than blocks.
    """
    if not replicates:
        raise ConfigError("no replicate to compare", expected="one or more")
    logs, jobs = [], 0
    for values, baseline in replicates:
        ours, theirs = np.asarray(values, np.float64), np.asarray(baseline, np.float64)
        if ours.ndim != 1 or ours.shape != theirs.shape or not 1 <= blocks <= ours.size:
            raise ConfigError(
                f"{ours.size} jobs against {theirs.size} of the baseline, in {blocks} blocks",
                expected="the same jobs on both sides, and one or more for each block",
            )
        jobs = ours.size
        mine, other = (block_values(column, blocks, statistic) for column in (ours, theirs))
        logs.append(log_ratios(mine, other))
    known = [each for each in logs if each is not None]
    if len(known) < len(logs):
        return BlockRatio(
            ratio=None,
            low=None,
            high=None,
            windows=blocks,
            block_jobs=jobs // blocks,
            autocorrelation=None,
            widened=1.0,
        )
    mean = known[0] if len(known) == 1 else np.mean(known, axis=0)
    ratio = ratio_of_logs(mean, seed=seed, resamples=resamples)
    r = _autocorrelation(mean)
    widened = 1.0 if r is None else math.sqrt((1 + r) / (1 - r))
    low, high, p_value = ratio.low, ratio.high, ratio.p_value
    if ratio.ratio is not None and low is not None and high is not None and p_value:
        low = ratio.ratio * (low / ratio.ratio) ** widened
        high = ratio.ratio * (high / ratio.ratio) ** widened
        p_value = 2 * t_tail(t_quantile(1 - p_value / 2, blocks - 1) / widened, blocks - 1)
    return BlockRatio(
        ratio=ratio.ratio,
        low=low,
        high=high,
        windows=blocks,
        p_value=p_value,
        block_jobs=jobs // blocks,
        autocorrelation=r,
        widened=widened,
    )


def block_values(values: Floats, blocks: int, statistic: Callable[[Floats], float]) -> list[float]:
    """Return the statistic of each block of consecutive values."""
    edges = [len(values) * block // blocks for block in range(blocks + 1)]
    return [float(statistic(values[first:last])) for first, last in itertools.pairwise(edges)]


def _autocorrelation(logs: Floats | None) -> float | None:
    """Return the correlation of neighbouring values, 0 or more; None if it is undefined."""
    if logs is None or logs.size < 3 or not logs.std() > 0:
        return None
    centred = logs - logs.mean()
    seen = float(centred[1:] @ centred[:-1] / (centred @ centred))
    return min(max(seen + (1 + 3 * max(seen, 0.0)) / logs.size, 0.0), _MOST_CORRELATED)
