"""Successive jobs of one user: which they are, and how similar their run times are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def successive(
    user: npt.NDArray[np.integer[Any]],
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return the pairs of successive jobs of one user: the earlier jobs, and the later jobs."""
    order = np.argsort(user, kind="stable")
    in_order = user[order]
    same = np.flatnonzero(in_order[1:] == in_order[:-1])
    return order[same], order[same + 1]


def user_run_correlation(user: npt.NDArray[np.integer[Any]], run: npt.NDArray[np.float64]) -> float:
    """Return the correlation of the logarithms of run times of a user's successive jobs."""
    before, after = successive(user)
    return correlation(np.log(run[before]), np.log(run[after]))


def correlation(first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]) -> float:
    """Return Pearson's correlation; 0 if one of the two does not vary."""
    if first.size < 2 or first.std() == 0 or second.std() == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
