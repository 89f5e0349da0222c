"""Interval: a figure with its 95 % interval, and the stratified resampling that intervals use.

Runs come as a table of training seeds x windows. Resampling is stratified: every window draws its
own runs, with replacement, from the runs on that window, so that easy and hard windows stay in
proportion (as defined by Agarwal and others, NeurIPS 2021, and their library rliable). Everything
is deterministic in (values, seed).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Floats = npt.NDArray[np.float64]

DRAWS_PER_CHUNK = 1_000_000
"""Resamples are drawn in chunks of about this many values, to bound memory."""

TAIL = 0.025
"""The share outside a 95 % interval on each side."""


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A figure and its 95 % percentile interval.

    Attributes:
        value: the figure.
        low: lower end; None if there is nothing to resample.
        high: upper end; None in the same case.
        runs: number of runs (training seeds) per window.
        windows: number of windows.
    """

    value: float
    low: float | None
    high: float | None
    runs: int
    windows: int


def score_table(scores: npt.ArrayLike) -> Floats:
    """Return runs x windows as an array; one row of values is one run.

    Raises:
        ConfigError: it is empty, has more than two dimensions, or a value is not a number.
    """
    table = np.atleast_2d(np.array(scores, dtype=np.float64))
    if table.ndim != 2 or not table.size:
        raise ConfigError(
            f"scores have the shape {table.shape}",
            expected="runs x windows: one row per training seed, one column per window",
        )
    if np.isnan(table).any():
        raise ConfigError(
            f"{np.count_nonzero(np.isnan(table))} of {table.size} scores are not a number",
            expected="a score of every run on every window",
        )
    return table


def stratified(
    tables: list[Floats], *, seed: int, resamples: int, windows_too: bool = False
) -> Iterator[list[Floats]]:
    """Yield resamples of tables that have the same windows, as (resamples, runs, windows) each.

    Args:
        tables: runs x windows; the tables are resampled independently of each other.
        seed: seed of the resampling.
        resamples: total number of resamples.
        windows_too: also draw whole windows, the same for all tables.
    """
    generator = np.random.Generator(np.random.Philox(seed))
    windows = tables[0].shape[1]
    chunk = max(1, DRAWS_PER_CHUNK // sum(table.size for table in tables))
    for begin in range(0, resamples, chunk):
        count = min(chunk, resamples - begin)
        column = np.broadcast_to(np.arange(windows), (count, 1, windows))
        if windows_too:
            column = generator.integers(0, windows, (count, 1, windows))
        yield [
            table[generator.integers(0, len(table), (count, *table.shape)), column]
            for table in tables
        ]


def interval_of(
    figure: Callable[[list[Floats]], Floats],
    tables: list[Floats],
    *,
    seed: int,
    resamples: int,
    windows_too: bool | None = None,
) -> Interval:
    """Return a figure of some tables of runs with its interval.

    Args:
        figure: maps tables of (resamples, runs, windows) to one figure per resample.
        tables: runs x windows.
        seed: seed of the resampling.
        resamples: number of resamples.
        windows_too: also resample windows; None = only if no table has a second run, because then
            there is nothing else to resample.
    """
    value = float(figure([table[np.newaxis] for table in tables])[0])
    runs, windows = max(map(len, tables)), tables[0].shape[1]
    if windows_too is None:
        windows_too = runs == 1
    if runs == 1 and not (windows_too and windows > 1):
        return Interval(value=value, low=None, high=None, runs=runs, windows=windows)
    drawn = stratified(tables, seed=seed, resamples=resamples, windows_too=windows_too)
    figures = np.concatenate([figure(part) for part in drawn])
    low, high = np.quantile(figures, (TAIL, 1 - TAIL))
    return Interval(value=value, low=float(low), high=float(high), runs=runs, windows=windows)
