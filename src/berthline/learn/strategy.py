"""Strategy: what a search asks of an evolution strategy and of random search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Strategy(Protocol):
    """Asks for the losses of points, which are given as shares of the parameters' ranges."""

    def ask(self) -> npt.NDArray[np.float64]:
        """Return the points of the next generation, one in each row."""

    def tell(self, points: npt.NDArray[np.float64], losses: npt.NDArray[np.float64]) -> None:
        """Learn from the losses of the points that were asked for."""

    def centre(self) -> npt.NDArray[np.float64] | None:
        """Return a point that is believed in without having been tried; None = there is none."""
