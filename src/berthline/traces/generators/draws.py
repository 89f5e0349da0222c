"""Draws: tables of random numbers for many episodes at once: a row per episode, a column per job.

A number depends only on (seed, column, episode, job), not on how many episodes or jobs are drawn
with it, or on other columns. It is `berthline.random_streams.uniform` of the stream
`generate/COLUMN`. Every other distribution is an increasing function of that one number, so equal
seeds give workloads that can be compared job by job.

The loops over a table's numbers are in native/src/draws/draws.cpp, where they take one or two
nanoseconds per number; with arrays they took most of the time of making an episode.

`Lattice` has the same interface, but its numbers are evenly spaced: averages over it are
expectations, the same for every seed.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.random_streams import stream_key

if TYPE_CHECKING:
    from collections.abc import Sequence

Table = npt.NDArray[np.float64]
"""(episodes, jobs)"""

Gap = float | Table
"""A mean gap between submissions: one for all episodes, or a column with one for each."""

Numbers = npt.NDArray[np.int64]
"""The numbers of episodes: (episodes,)"""


class RandomSource(Protocol):
    """The source of a generator's random numbers.

    Attributes:
        jobs: number of jobs in an episode.
    """

    jobs: int

    def uniform(self, column: str) -> Table:
        """Return numbers in [0, 1). The caller may change this table and those of the others."""

    def normal(self, column: str) -> Table:
        """Return standard normal numbers, increasing with `uniform(column)`."""

    def lognormal(self, column: str, *, median: float, sigma: float) -> Table:
        """Return `median * exp(sigma * normal(column))`."""

    def exponential(self, column: str) -> Table:
        """Return exponential numbers of mean 1, increasing with `uniform(column)`."""


class _FromUniform:
    """Other distributions, computed in place from uniform numbers, while these are in the cache."""

    def uniform(self, column: str) -> Table:
        raise NotImplementedError

    def normal(self, column: str) -> Table:
        table = self.uniform(column)
        _native.normal_quantiles(table, table)
        return table

    def lognormal(self, column: str, *, median: float, sigma: float) -> Table:
        table = self.uniform(column)
        _native.lognormal_quantiles(table, median, sigma, table)
        return table

    def exponential(self, column: str) -> Table:
        table = self.uniform(column)
        _native.exponential_quantiles(table, table)
        return table


class Draws(_FromUniform):
    """The random numbers of some episodes of a seed.

    Args:
        seed: selects the random numbers.
        episodes: the numbers of the episodes, in any order.
        jobs: number of jobs in each episode.
    """

    def __init__(self, seed: int, episodes: Numbers | Sequence[int] = (0,), *, jobs: int) -> None:
        self.jobs = jobs
        self._seed = seed
        self._episodes = np.ascontiguousarray(episodes, dtype=np.int64)

    def uniform(self, column: str) -> Table:
        """Return numbers in [0, 1)."""
        return self.uniform_of_episodes(column, self.jobs)

    def uniform_of_episodes(self, column: str, width: int) -> Table:
        """Return `width` numbers in [0, 1) for each episode, shared by its jobs."""
        table = np.empty((len(self._episodes), width))
        _native.fill_uniform(_key(self._seed, column), self._episodes, table)
        return table


@functools.lru_cache(maxsize=256)
def _key(seed: int, column: str) -> int:
    return stream_key(seed, f"generate/{column}")


class Lattice(_FromUniform):
    """Evenly spaced numbers in one row of `jobs`: columns are a rank-1 lattice (Korobov)."""

    _PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)

    def __init__(self, jobs: int = 1 << 16) -> None:
        self.jobs = jobs
        self._columns: list[str] = []

    def uniform(self, column: str) -> Table:
        """Return numbers in (0, 1); the first column used has exactly equal spacing."""
        if column not in self._columns:
            self._columns.append(column)
        number = self._columns.index(column)
        points = np.arange(self.jobs) + 0.5
        slope = math.sqrt(self._PRIMES[number - 1]) if number else 1 / self.jobs
        return np.asarray(np.mod(points * slope, 1.0)[None, :])


def normal_quantile(probability: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the quantiles of the standard normal distribution at these probabilities.

    0 counts as 2**-54, so that quantiles of uniform numbers are always finite. Relative errors are
    below 1.2e-9 (Acklam's rational approximation).
    """
    given = np.ascontiguousarray(probability)
    points = np.empty(given.shape)
    _native.normal_quantiles(given, points)
    return points


def exp(table: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return e**x for each number x, cut off at +-700, with the same bits on every machine.

    A contiguous table is overwritten.
    """
    given = np.ascontiguousarray(table)
    _native.exponentials(given, given)
    return given


def number_of_limits(
    values: npt.NDArray[np.float64], limits: npt.NDArray[np.float64]
) -> npt.NDArray[np.intp]:
    """Return how many of the ascending limits each value has reached."""
    given = np.ascontiguousarray(values)
    number = np.empty(given.shape, np.intp)
    _native.count_limits(given, limits, number)
    return number


def choose(
    values: npt.NDArray[np.float64],
    limits: npt.NDArray[np.float64],
    choices: npt.NDArray[np.int32],
) -> npt.NDArray[np.int32]:
    """Return `choices[number_of_limits(values, limits)]`; there is one more choice than limits."""
    given = np.ascontiguousarray(values)
    chosen = np.empty(given.shape, np.int32)
    _native.choose(given, limits, choices, chosen)
    return chosen


def round_within(table: Table, low: float, high: float) -> Table:
    """Return the nearest whole numbers from `low` to `high`, computed in place.

    Args:
        table: the numbers; they are overwritten.
        low: the lowest, a whole number.
        high: the highest; both are far below 2**51.
    """
    _native.round_within(table, low, high)
    return table


def running_sums(table: Table, factor: Gap) -> Table:
    """Return the cumulative sums of a table's rows, times a factor, computed in place.

    Args:
        table: the numbers; they are overwritten.
        factor: one for all rows, or a column with one for each.
    """
    is_one = isinstance(factor, float)
    _native.running_sums(table, np.full(len(table), factor) if is_one else np.ravel(factor))
    return table


class Lists:
    """Several ascending lists of points, in which values are looked up, each in one list.

    Args:
        lists: the points of each list.
        heights: a height for each point, for linear interpolation.
    """

    def __init__(
        self,
        lists: Sequence[npt.ArrayLike],
        heights: Sequence[npt.ArrayLike] | None = None,
    ) -> None:
        sizes = [np.size(points) for points in lists]
        begin = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        of_points = None if heights is None else _joined(heights)
        self._has_heights = heights is not None
        self._lists = _native.PointLists(_joined(lists), begin, of_points)

    def reached(
        self, values: npt.NDArray[np.float64], which: npt.NDArray[np.intp] | None = None
    ) -> npt.NDArray[np.intp]:
        """Return how many points each value has reached, in the list that `which` selects."""
        number = np.empty(values.shape, np.intp)
        self._lists.reached(values, which, number)
        return number

    def at(
        self, x: npt.NDArray[np.float64], which: npt.NDArray[np.intp] | None = None
    ) -> npt.NDArray[np.float64]:
        """Return the heights at `x`, interpolated between points and constant beyond the ends."""
        if not self._has_heights:
            raise ValueError("lists without heights")
        found = np.empty(x.shape)
        self._lists.at(x, which, found)
        return found


def _joined(lists: Sequence[npt.ArrayLike]) -> npt.NDArray[np.float64]:
    return np.concatenate([np.asarray(points, dtype=np.float64) for points in lists])
