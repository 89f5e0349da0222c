"""Distribution: a mean and its tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from berthline.model.workload import FloatColumn


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and its tail; percentiles interpolate linearly. NaN (JSON null) when no job counts."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


def distribution(values: FloatColumn) -> Distribution:
    """Return mean, percentiles and maximum of per-job values. Reorders `values`."""
    if not values.size:
        return Distribution(mean=np.nan, p50=np.nan, p95=np.nan, p99=np.nan, max=np.nan)
    mean = float(values.mean())
    last = values.size - 1
    places = [share * last for share in (0.5, 0.95, 0.99)]
    below = [int(place) for place in places]
    values.partition(sorted({*below, *(min(k + 1, last) for k in below), last}))
    p50, p95, p99 = (
        _between(float(values[k]), float(values[min(k + 1, last)]), place - k)
        for k, place in zip(below, places, strict=True)
    )
    return Distribution(mean=mean, p50=p50, p95=p95, p99=p99, max=float(values[last]))


def _between(low: float, high: float, part: float) -> float:
    """Return the value at that part of the way from low to high, as numpy rounds it.

    `np.percentile` gives the same bits, but takes longer than the partition itself.
    """
    if part >= 0.5:
        return high - (high - low) * (1 - part)
    return low + (high - low) * part
