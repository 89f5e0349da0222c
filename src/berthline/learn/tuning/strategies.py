"""Strategies of a search: they ask for the losses of points, and may learn from them.

`cma` is CMA-ES, the covariance matrix adaptation of the package `cmaes`. It restarts at a random
point when it has converged. A resumed search tells a fresh strategy all losses again: this gives
the same bits and needs no trusted file. `random` draws points uniformly and learns nothing: it is
the baseline of strategies that learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from berthline.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    Point = npt.NDArray[np.float64]  # (parameters,), as shares of their ranges
    Points = npt.NDArray[np.float64]  # (population, parameters)

FIRST_STEP = 0.2
"""Standard deviation of the first generation, as a share of each range."""


class Strategy(Protocol):
    """Asks for the losses of points."""

    def ask(self) -> Points:
        """Return the points of the next generation."""

    def tell(self, points: Points, losses: npt.NDArray[np.float64]) -> None:
        """Learn from the losses of the points that were asked for."""

    def centre(self) -> Point | None:
        """Return the expected best point, which may be untried; None = there is none."""


class EvolutionStrategy:
    """CMA-ES.

    Args:
        start: the first mean.
        population: points of a generation.
        seed: of all random draws.

    Raises:
        MissingExtraError: the package cmaes is not installed.
    """

    def __init__(self, start: Point, *, population: int, seed: int) -> None:
        try:
            import cmaes
        except ImportError:
            raise MissingExtraError("cmaes", "tune", "an evolution strategy") from None
        self._kind = cmaes.CMA
        self._population = population
        self._random = np.random.Generator(np.random.Philox(key=[seed, 1]))
        self._begin(np.asarray(start, np.float64))

    def _begin(self, mean: Point) -> None:
        self._cma = self._kind(
            mean=mean,
            sigma=FIRST_STEP,
            bounds=np.tile([0.0, 1.0], (len(mean), 1)),
            population_size=self._population,
            seed=int(self._random.integers(2**31)),
        )

    def ask(self) -> Points:
        """Return the points of the next generation."""
        return np.array([self._cma.ask() for _ in range(self._population)])

    def tell(self, points: Points, losses: npt.NDArray[np.float64]) -> None:
        """Learn from the losses of the points that were asked for."""
        self._cma.tell([(point, float(loss)) for point, loss in zip(points, losses, strict=True)])
        if self._cma.should_stop():
            self._begin(self._random.random((points.shape[1],)))

    def centre(self) -> Point | None:
        """Return the mean of the search distribution."""
        mean: Point = np.clip(self._cma.mean, 0.0, 1.0)
        return mean


class RandomSearch:
    """Points drawn uniformly.

    Args:
        start: the first point, as in CMA-ES.
        population: points of a generation.
        seed: of all random draws.
    """

    def __init__(self, start: Point, *, population: int, seed: int) -> None:
        self._first: Point | None = np.asarray(start, np.float64)
        self._shape = (population, len(start))
        self._random = np.random.Generator(np.random.Philox(key=[seed, 2]))

    def ask(self) -> Points:
        """Return the points of the next generation."""
        points = self._random.random(self._shape)
        if self._first is not None:
            points[0], self._first = self._first, None
        return points

    def tell(self, points: Points, losses: npt.NDArray[np.float64]) -> None:
        """Learn nothing."""

    def centre(self) -> None:
        """Return None: there is no expected best point."""


STRATEGIES: dict[str, Callable[..., Strategy]] = {
    "cma": EvolutionStrategy,
    "random": RandomSearch,
}
