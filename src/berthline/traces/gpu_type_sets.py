"""A trace's column of GPU models as the GPU types that a workload's jobs may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import canonical_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

ANY_TYPE = -1
"""What `Workload.gpu_types` holds for a job that may use every GPU type."""


def gpu_type_sets(
    models: pl.Series, *, names: Mapping[str, str] | None = None
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the `gpu_types` and `gpu_type_sets` of a workload.

    GPU types get the names they have in clusters, and the order within a set does not matter, so
    that jobs with the same choice share a set. A model nobody knows keeps the trace's name.

    Args:
        models: for each job the models it may use, separated by `|`; null = any.
        names: what the trace means by a model, where that is not what everybody does.
    """
    names = names or {}
    codes: dict[str, int] = {}
    column = np.full(len(models), ANY_TYPE, np.int32)
    for written in models.drop_nulls().unique(maintain_order=True).to_list():
        choices = [choice.strip() for choice in written.split("|") if choice.strip()]
        types = sorted({names.get(choice) or canonical_name(choice) for choice in choices})
        if types:
            code = codes.setdefault("|".join(types), len(codes))
            column[(models == written).fill_null(value=False).to_numpy()] = code
    return column, tuple(codes)
