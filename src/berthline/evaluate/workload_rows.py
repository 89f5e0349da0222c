"""Workloads made of the rows of another one, or with some of its columns changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.model.workload import Workload

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

COLUMNS = (
    "submit",
    "run",
    "gpus",
    "gpu_milli",
    "estimate",
    "cpus",
    "memory_mib",
    "priority",
    "deadline",
    "user",
    "pool",
    "gpu_types",
)


def workload_of_rows(
    workload: Workload, rows: npt.NDArray[np.intp] | slice, **changes: npt.NDArray[Any]
) -> Workload:
    """Return the jobs in some rows; a row may be given several times.

    Args:
        workload: where they come from.
        rows: their numbers, in the order of submission that `changes` gives them.
        changes: columns, one value for each of the rows, in place of theirs.
    """
    columns = {name: getattr(workload, name)[rows] for name in COLUMNS} | changes
    return Workload.from_columns(
        **columns,
        user_names=workload.user_names,
        pool_names=workload.pool_names,
        gpu_type_sets=workload.gpu_type_sets,
        reference_type=workload.reference_type,
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


def job_name(workload: Workload, job: int) -> str:
    """Return what the trace calls a job; its id if there are no names."""
    return str(job) if workload.names is None else str(workload.names[job])
