"""Workloads made of the rows of another one, or with some of its columns changed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.gpu_types import RECORDED, gpu_type, type_names
from berthline.model.workload import Workload
from berthline.model.workload_columns import ANY_GPU_TYPE, COLUMN_TYPES, NO_OWN_TYPE

if TYPE_CHECKING:
    import numpy.typing as npt

    from berthline.model.cluster import Cluster


def workload_of_rows(
    workload: Workload, rows: npt.NDArray[np.intp] | slice, **changes: npt.NDArray[Any]
) -> Workload:
    """Return the jobs in some rows; a row may be given several times.

    Args:
        workload: where they come from.
        rows: their numbers, in the order of submission that `changes` gives them.
        changes: replacement columns, with one value for each of the rows.
    """
    columns = {name: getattr(workload, name)[rows] for name in COLUMN_TYPES} | changes
    return Workload.from_columns(
        **columns,
        user_names=workload.user_names,
        pool_names=workload.pool_names,
        gpu_type_sets=workload.gpu_type_sets,
        ran_on_types=workload.ran_on_types,
        reference_type=workload.reference_type,
        names=None if workload.names is None else workload.names[rows],
        name=workload.name,
        rebase=False,
    )


def with_values(workload: Workload, job: int, **values: float) -> Workload:
    """Return the workload with other values in the row of one job."""
    changes = {}
    for name, value in values.items():
        column = getattr(workload, name).copy()
        column[job] = value
        changes[name] = column
    return workload_of_rows(workload, slice(None), **changes)


def without_missing_types(workload: Workload, cluster: Cluster) -> Workload:
    """Return the same jobs; those that name only GPU types absent from the cluster may use any.

    The provenance counts them under `any_gpu_type`, by set of types.
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
    gpu_types = np.where(is_open, ANY_GPU_TYPE, workload.gpu_types).astype(np.int32)
    # A job that asked for one type has run on it: its run time still refers to that type.
    single = [types for types in opened if "|" not in types and types not in workload.ran_on_types]
    names = (*workload.ran_on_types, *single)
    of_set = [names.index(types) if types in names else -1 for types in workload.gpu_type_sets]
    was_asked = np.array([-1, *of_set])[workload.gpu_types + 1]
    ran_on = np.where(is_open & (workload.ran_on < 0), was_asked, workload.ran_on).astype(np.int32)
    for column in (gpu_types, ran_on):
        column.setflags(write=False)
    return dataclasses.replace(
        workload,
        gpu_types=gpu_types,
        ran_on=ran_on,
        ran_on_types=names,
        provenance={**workload.provenance, "any_gpu_type": opened},
    )


def with_reference_type(workload: Workload, name: str) -> Workload:
    """Return the same jobs, whose run times were all recorded on one GPU type.

    Args:
        workload: the jobs.
        name: the type, or `"recorded"`: it is not known.

    Raises:
        ConfigError: there is no such GPU type.
    """
    reference = RECORDED if name == RECORDED else gpu_type(name).name
    ran_on = np.full(len(workload), NO_OWN_TYPE, np.int32)
    ran_on.setflags(write=False)
    return dataclasses.replace(workload, reference_type=reference, ran_on=ran_on, ran_on_types=())


def job_name(workload: Workload, job: int) -> str:
    """Return a job's name in the trace; its id if there are no names."""
    return str(job) if workload.names is None else str(workload.names[job])
