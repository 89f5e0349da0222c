"""Evolution strategy: CMA-ES over the numbers of a search space.

The covariance matrix adaptation is that of the package `cmaes`. What is ours: it begins anew at a
random point when it has converged, and it is gone on with by telling a fresh one all losses again,
which gives the same bits and needs no file that must be trusted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import MissingExtraError

if TYPE_CHECKING:
    import numpy.typing as npt

    Points = npt.NDArray[np.float64]  # (population, parameters), as shares of the ranges

FIRST_STEP = 0.2
"""Standard deviation of the first generation, as a share of each range."""


class EvolutionStrategy:
    """Asks for the losses of points and learns from them.

    Args:
        start: the first mean.
        population: points of a generation.
        seed: decides everything.

    Raises:
        MissingExtraError: the package cmaes is not installed.
    """

    def __init__(self, start: npt.NDArray[np.float64], *, population: int, seed: int) -> None:
        try:
            import cmaes
        except ImportError:
            raise MissingExtraError("cmaes", "tune", "an evolution strategy") from None
        self._kind = cmaes.CMA
        self._population = population
        self._random = np.random.Generator(np.random.Philox(key=[seed, 1]))
        self._begin(np.asarray(start, np.float64))

    def _begin(self, mean: npt.NDArray[np.float64]) -> None:
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

    def centre(self) -> npt.NDArray[np.float64] | None:
        """Return the mean: what the strategy believes in, beyond the points it has tried."""
        mean: npt.NDArray[np.float64] = np.clip(self._cma.mean, 0.0, 1.0)
        return mean
