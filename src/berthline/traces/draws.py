"""Draws: tables of random numbers for many episodes at once, one row each, one column per job.

A number depends on (seed, column, episode, job) and on nothing else: not on how many episodes or
jobs are drawn with it, nor on other columns. It is `berthline.sim.random.uniform` of the stream
`generate/COLUMN`, for all episodes and jobs in a few array operations. Every other distribution is
an increasing function of that one number, so equal seeds give workloads that can be compared job
by job.

`Lattice` looks the same to whoever draws, but spreads its numbers evenly: averages over it are
expectations, the same for every seed.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from berthline.sim.random import stream_key

Table = npt.NDArray[np.float64]
"""(episodes, jobs)"""


class Source(Protocol):
    """Where a generator takes its random numbers from.

    Attributes:
        jobs: how many jobs there are in an episode.
    """

    jobs: int

    def uniform(self, column: str) -> Table:
        """Return numbers in [0, 1). The table is shared: do not write to it."""

    def normal(self, column: str) -> Table:
        """Return standard normal numbers, rising with `uniform(column)`, in a new table."""

    def exponential(self, column: str) -> Table:
        """Return exponential numbers of mean 1, rising with them too, in a new table."""


class _FromUniform:
    """What follows from uniform numbers."""

    def uniform(self, column: str) -> Table:
        raise NotImplementedError

    def normal(self, column: str) -> Table:
        return normal_quantile(self.uniform(column))

    def exponential(self, column: str) -> Table:
        table = np.subtract(1.0, self.uniform(column))  # in (0, 1]: its logarithm is finite
        np.log(table, out=table)
        return np.negative(table, out=table)


_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


class Draws(_FromUniform):
    """The random numbers of episodes `first` to `first + count - 1` of a seed."""

    def __init__(self, seed: int, *, first: int = 0, count: int = 1, jobs: int) -> None:
        self.jobs = jobs
        self._seed = seed
        self._episodes = _STEP * np.arange(first + 1, first + count + 1, dtype=np.uint64)
        self._counters = _counters(jobs)
        self._drawn: dict[str, Table] = {}
        self._old: dict[str, Table] = {}
        self._bits = np.empty((2, count, jobs), np.uint64)

    def move_to(self, first: int) -> None:
        """Go on with as many episodes from `first`, in the same memory.

        Tables that were drawn before are overwritten.
        """
        self._episodes = _STEP * np.arange(
            first + 1, first + len(self._episodes) + 1, dtype=np.uint64
        )
        self._old.update(self._drawn)
        self._drawn.clear()

    def uniform(self, column: str) -> Table:
        """Return numbers in [0, 1)."""
        if column not in self._drawn:
            self._drawn[column] = self._draw(column, self._bits, self._old.get(column))
        return self._drawn[column]

    def normal(self, column: str) -> Table:
        """Return standard normal numbers, rising with `uniform(column)`, in a new table."""
        return normal_quantile(self.uniform(column), self._bits.view(np.float64))

    def uniform_of_episodes(self, column: str, width: int) -> Table:
        """Return `width` numbers in [0, 1) for each episode, of what its jobs share."""
        return self._draw(column, np.empty((2, len(self._episodes), width), np.uint64))

    def _draw(self, column: str, space: npt.NDArray[np.uint64], out: Table | None = None) -> Table:
        bits, spare = space
        rows = self._episodes + np.uint64(stream_key(self._seed, f"generate/{column}"))
        _mix(rows, np.empty_like(rows))
        width = bits.shape[1]
        counters = self._counters if width == self.jobs else _counters(width)
        np.add(rows[:, None], counters, out=bits)
        _mix(bits, spare)
        np.right_shift(bits, np.uint64(11), out=bits)
        # Signed numbers become floats faster, and with 53 bits they are the same.
        table: Table = np.empty(bits.shape) if out is None else out
        np.copyto(table, bits.view(np.int64))
        table *= 2.0**-53
        return table


def _counters(count: int) -> npt.NDArray[np.uint64]:
    return _STEP * np.arange(1, count + 1, dtype=np.uint64)


class Lattice(_FromUniform):
    """Evenly spread numbers in one row of `jobs`: columns are a rank-1 lattice (Korobov)."""

    _PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)

    def __init__(self, jobs: int = 1 << 16) -> None:
        self.jobs = jobs
        self._drawn: dict[str, Table] = {}

    def uniform(self, column: str) -> Table:
        """Return numbers in (0, 1); the first column asked for is exactly even."""
        if column not in self._drawn:
            number = len(self._drawn)
            points = np.arange(self.jobs) + 0.5
            slope = math.sqrt(self._PRIMES[number - 1]) if number else 1 / self.jobs
            self._drawn[column] = np.mod(points * slope, 1.0)[None, :].astype(np.float64)
        return self._drawn[column]


def _mix(bits: npt.NDArray[np.uint64], spare: npt.NDArray[np.uint64]) -> None:
    """Apply SplitMix64's finaliser in place (see sim/random.py)."""
    for shift, factor in ((30, _FIRST_FACTOR), (27, _SECOND_FACTOR)):
        np.right_shift(bits, np.uint64(shift), out=spare)
        np.bitwise_xor(bits, spare, out=bits)
        np.multiply(bits, factor, out=bits)
    np.right_shift(bits, np.uint64(31), out=spare)
    np.bitwise_xor(bits, spare, out=bits)


# Acklam's rational approximation of the normal quantile: relative error below 1.2e-9.
_CENTRE_OVER = (
    -39.69683028665376,
    220.9460984245205,
    -275.9285104469687,
    138.3577518672690,
    -30.66479806614716,
    2.506628277459239,
)
_CENTRE_UNDER = (
    -54.47609879822406,
    161.5858368580409,
    -155.6989798598866,
    66.80131188771972,
    -13.28068155288572,
    1.0,
)
_TAIL_OVER = (
    -0.007784894002430293,
    -0.3223964580411365,
    -2.400758277161838,
    -2.549732539343734,
    4.374664141464968,
    2.938163982698783,
)
_TAIL_UNDER = (
    0.007784695709041462,
    0.3224671290700398,
    2.445134137142996,
    3.754408661907416,
    1.0,
)
_TAIL_BEGINS = 0.02425
_SMALLEST = 2.0**-54  # half of the step between uniform numbers


def normal_quantile(probability: Table, spare: Table | None = None) -> Table:
    """Return the points below which a standard normal number stays with these probabilities.

    0 counts as 2**-54, so that what comes from uniform numbers is always finite.

    Args:
        probability: from 0 to 1.
        spare: two tables of that shape to work in; memory got anew each time costs more than the
            arithmetic.
    """
    offset, square = np.empty((2, *probability.shape)) if spare is None else spare
    np.subtract(probability, 0.5, out=offset)
    np.multiply(offset, offset, out=square)
    result = _polynomial(_CENTRE_OVER, square, np.empty_like(square))
    result *= offset
    result /= _polynomial(_CENTRE_UNDER, square, offset)
    far = np.flatnonzero(square > (0.5 - _TAIL_BEGINS) ** 2)
    if far.size:
        below = probability.ravel()[far]
        outside = np.maximum(np.minimum(below, 1.0 - below), _SMALLEST)
        root = np.sqrt(-2.0 * np.log(outside))
        value = _polynomial(_TAIL_OVER, root, np.empty_like(root))
        value /= _polynomial(_TAIL_UNDER, root, np.empty_like(root))
        result.ravel()[far] = np.copysign(value, below - 0.5)
    return result


def _polynomial(coefficients: tuple[float, ...], x: Table, out: Table) -> Table:
    """Return the polynomial with these coefficients, highest power first, at `x`."""
    np.multiply(x, coefficients[0], out=out)
    for coefficient in coefficients[1:-1]:
        out += coefficient
        out *= x
    out += coefficients[-1]
    return out
