"""Pools of a trace: virtual clusters, partitions, queues; a job without one may run anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.traces.text_columns import categorize

if TYPE_CHECKING:
    import polars as pl

ANY_POOL = -1


def number_pools(text: pl.Series) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the jobs' pools as codes (-1 = none named) and the names they stand for."""
    if text.null_count() == 0:
        return categorize(text)
    named = text.is_not_null().to_numpy()
    codes = np.full(len(text), ANY_POOL, dtype=np.int32)
    codes[named], names = categorize(text.drop_nulls())
    return codes, names
