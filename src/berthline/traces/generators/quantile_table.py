"""QuantileTable: quantiles of a distribution from a table, where computing each would be slow.

Values are interpolated linearly between nodes; near both ends, where quantiles are most curved, the
function itself is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.traces.generators.draws import Table

    Quantile = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]

_CELLS = 4096
_END = 41  # cells at each end that are computed exactly: one percent


class QuantileTable:
    """The quantiles of one distribution, or of several with one chosen for each job.

    Args:
        quantiles: functions that turn probabilities into quantiles.
    """

    def __init__(self, quantiles: Sequence[Quantile]) -> None:
        self._quantiles = quantiles
        nodes = np.arange(_END, _CELLS - _END + 1) / _CELLS
        self._values = np.zeros((len(quantiles), _CELLS))
        self._steps = np.zeros((len(quantiles), _CELLS))
        for number, quantile in enumerate(quantiles):
            values = quantile(nodes)
            self._values[number, _END : _CELLS - _END] = values[:-1]
            self._steps[number, _END : _CELLS - _END] = np.diff(values)

    def at(self, probability: Table, which: npt.NDArray[np.bool_] | None = None) -> Table:
        """Return quantiles at probabilities in [0, 1), in a new table.

        Args:
            probability: one for each job.
            which: whether a job has the second of two distributions; None = the first.
        """
        place = probability * _CELLS
        cell = place.astype(np.int32)
        place -= cell
        at_end = np.flatnonzero(
            (probability < _END / _CELLS) | (probability >= 1.0 - _END / _CELLS)
        )
        if which is not None:
            cell += which.view(np.int8).astype(np.int32) * _CELLS
        place *= self._steps.ravel().take(cell)
        place += self._values.ravel().take(cell)
        if at_end.size:
            flat, out = probability.ravel()[at_end], place.ravel()
            if which is None:
                out[at_end] = self._quantiles[0](flat)
            else:
                second = which.ravel()[at_end]
                out[at_end] = np.where(second, self._quantiles[1](flat), self._quantiles[0](flat))
        return place
