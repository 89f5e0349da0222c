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
    p50, p95, p99, highest = np.percentile(values, (50, 95, 99, 100), overwrite_input=True)
    return Distribution(
        mean=mean, p50=float(p50), p95=float(p95), p99=float(p99), max=float(highest)
    )
