"""The GPU types that a workload's jobs may use: from a trace's column, and where there are none."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import canonical_name, type_names
from berthline.traces.text_columns import categorize

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

ANY_TYPE = -1
"""What `Workload.gpu_types` holds for a job that may use every GPU type."""


def gpu_type_sets(
    models: pl.Series,
    *,
    names: Mapping[str, str] | None = None,
    gpus: npt.NDArray[np.float64] | None = None,
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the `gpu_types` and `gpu_type_sets` of a workload.

    GPU types get the names they have in clusters, and the order within a set does not matter, so
    that jobs with the same choice share a set. A model nobody knows keeps the trace's name.

    Args:
        models: for each job the models it may use, separated by `|`; null = any.
        names: what the trace means by a model, where that is not what everybody does.
        gpus: of each job, where some have none: these may run anywhere, whatever the trace says.
    """
    names = names or {}
    sets: dict[str, int] = {}
    written, choices = categorize(models, missing="")
    code_of = np.full(len(choices), ANY_TYPE, np.int32)
    on_gpus = np.ones(len(written), np.bool_) if gpus is None else gpus > 0
    is_asked = np.bincount(written[on_gpus], minlength=len(choices)) > 0
    for at, text in enumerate(choices):
        if not is_asked[at]:
            continue
        parts = [part.strip() for part in text.split("|") if part.strip()]
        types = sorted({names.get(part) or canonical_name(part) for part in parts})
        if types:
            code_of[at] = sets.setdefault("|".join(types), len(sets))
    return np.where(on_gpus, code_of[written], ANY_TYPE).astype(np.int32), tuple(sets)


def without_missing_types(workload: Workload, cluster: Cluster) -> Workload:
    """Return the same jobs, but those that name only GPU types the cluster has not may use any.

    How many there are of each set of types is in the provenance under `any_gpu_type`.
    """
    present = {kind.name for kind in cluster.types}
    missing = [not present & type_names(types) for types in workload.gpu_type_sets]
    jobs = np.bincount(workload.gpu_types + 1, minlength=len(missing) + 1)[1:]
    opened = {
        types: int(count)
        for types, count, is_missing in zip(workload.gpu_type_sets, jobs, missing, strict=True)
        if is_missing and count
    }
    if not opened:
        return workload
    is_open = np.array([False, *missing])[workload.gpu_types + 1]
    gpu_types = np.where(is_open, ANY_TYPE, workload.gpu_types).astype(np.int32)
    gpu_types.setflags(write=False)
    return dataclasses.replace(
        workload,
        gpu_types=gpu_types,
        provenance={**workload.provenance, "any_gpu_type": opened},
    )
