"""Random search: points drawn evenly, the yardstick for anything that claims to learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt


class RandomSearch:
    """Asks for points at random, whatever their losses are.

    Args:
        start: is drawn first of all, as an evolution strategy begins there.
        population: points of a generation.
        seed: decides everything.
    """

    def __init__(self, start: npt.NDArray[np.float64], *, population: int, seed: int) -> None:
        self._first: npt.NDArray[np.float64] | None = np.asarray(start, np.float64)
        self._shape = (population, len(start))
        self._random = np.random.Generator(np.random.Philox(key=[seed, 2]))

    def ask(self) -> npt.NDArray[np.float64]:
        """Return the points of the next generation."""
        points = self._random.random(self._shape)
        if self._first is not None:
            points[0], self._first = self._first, None
        return points

    def tell(self, points: npt.NDArray[np.float64], losses: npt.NDArray[np.float64]) -> None:
        """Learn nothing."""

    def centre(self) -> None:
        """Return None: it believes in nothing but the points it has tried."""
