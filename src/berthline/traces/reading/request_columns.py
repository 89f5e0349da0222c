"""Requests of jobs, from the columns of a trace: GPUs and parts of a GPU, GPU types, pools.

A workload has whole GPUs, or a part of one GPU in thousandths. So 0.25 GPUs stay 0.25. 1.5 GPUs,
and several workers on a part of a GPU each, are rounded up to whole GPUs, and parts of a GPU are
rounded up to thousandths. The jobs changed by rounding are counted.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import canonical_name
from berthline.model.workload import WHOLE_GPU, FloatColumn, IntColumn
from berthline.model.workload_columns import ANY_GPU_TYPE, ANY_POOL
from berthline.traces.reading.text_columns import categorize

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

FRACTIONS_ROUNDED_UP = "fractional GPUs rounded up to whole ones"
"""The key of `provenance["rounded"]` for jobs that request, for example, 1.5 GPUs."""

PARTS_ROUNDED_UP = "parts of a GPU rounded up to thousandths"
"""The key of `provenance["rounded"]` for jobs that request, for example, a third of a GPU."""

_NOISE = 1e-6  # thousandths of a GPU: 0.29 * 1000 is not 290 in floats


@dataclasses.dataclass(frozen=True, eq=False)
class GpuRequests:
    """GPU requests of jobs.

    Attributes:
        gpus: whole GPUs, or 1 for a job on part of a GPU; 0 = none.
        gpu_milli: thousandths of each GPU.
        asked: GPUs before rounding.
    """

    gpus: FloatColumn  # (num_rows,)
    gpu_milli: npt.NDArray[np.int16]  # (num_rows,)
    asked: FloatColumn  # (num_rows,)

    @classmethod
    def of(cls, per_worker: FloatColumn, workers: FloatColumn | int = 1) -> GpuRequests:
        """Return the requests of jobs from their workers and the GPUs of each worker."""
        gpus = np.ceil(per_worker) * workers
        asked = per_worker * workers
        is_part = (asked > 0) & (asked < 1) & (gpus == 1)
        if not is_part.any():
            return cls(gpus, np.full(len(asked), WHOLE_GPU, np.int16), asked)
        milli = np.maximum(np.ceil(asked * WHOLE_GPU - _NOISE), 1)
        return cls(gpus, np.where(is_part, milli, WHOLE_GPU).astype(np.int16), asked)

    def rounded(self, used: npt.NDArray[np.bool_]) -> dict[str, int]:
        """Return how many of the jobs used got more than they requested, by kind of rounding."""
        more = self.gpus * self.gpu_milli - self.asked * WHOLE_GPU
        changed = used & (more > _NOISE)
        if not changed.any():
            return {}
        on_one = self.gpus == 1  # rounded only to thousandths
        counts = {FRACTIONS_ROUNDED_UP: changed & ~on_one, PARTS_ROUNDED_UP: changed & on_one}
        return {what: int(jobs.sum()) for what, jobs in counts.items() if jobs.any()}


def gpu_type_sets(
    models: pl.Series,
    *,
    names: Mapping[str, str] | None = None,
    gpus: npt.NDArray[np.float64] | None = None,
) -> tuple[IntColumn, tuple[str, ...]]:
    """Return the `gpu_types` and `gpu_type_sets` of a workload.

    GPU types get the names that clusters use, and the order within a set does not matter, so jobs
    with the same choice share a set. An unknown model keeps the trace's name.

    Args:
        models: for each job the models it may use, separated by `|`; null = any.
        names: the usual names of models for which the trace has unusual ones.
        gpus: of each job; jobs without GPUs may run anywhere, regardless of `models`; None = all
            jobs have GPUs.
    """
    names = names or {}
    sets: dict[str, int] = {}
    written, choices = categorize(models, missing="")
    code_of = np.full(len(choices), ANY_GPU_TYPE, np.int32)
    on_gpus = np.ones(len(written), np.bool_) if gpus is None else gpus > 0
    is_asked = np.bincount(written[on_gpus], minlength=len(choices)) > 0
    for at, text in enumerate(choices):
        if not is_asked[at]:
            continue
        parts = [part.strip() for part in text.split("|") if part.strip()]
        types = sorted({names.get(part) or canonical_name(part) for part in parts})
        if types:
            code_of[at] = sets.setdefault("|".join(types), len(sets))
    return np.where(on_gpus, code_of[written], ANY_GPU_TYPE).astype(np.int32), tuple(sets)


def number_pools(text: pl.Series) -> tuple[IntColumn, tuple[str, ...]]:
    """Return the jobs' pools (virtual clusters, partitions, queues) as codes, and their names.

    A job that names no pool may run anywhere.
    """
    if text.null_count() == 0:
        return categorize(text)
    named = text.is_not_null().to_numpy()
    codes = np.full(len(text), ANY_POOL, dtype=np.int32)
    codes[named], names = categorize(text.drop_nulls())
    return codes, names
