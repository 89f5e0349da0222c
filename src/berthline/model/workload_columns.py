"""The columns of a workload: their types, the values they may hold, and the check of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Mapping

WHOLE_GPU = 1000
"""Thousandths of a GPU: a job on whole GPUs."""

ANY_POOL = -1
"""In the column `pool`: the job may use every pool."""

NO_OWN_TYPE = -1
"""In the column `ran_on`: the GPU type of the job's run time is not stated for this job."""

ANY_GPU_TYPE = -1
"""In the column `gpu_types`: the job may use every GPU type."""

MAX_MEMORY_MIB = 2**38
"""Memory of a job or a node: 256 PiB."""

COLUMN_TYPES: dict[str, type[np.generic]] = {
    "submit": np.float64,
    "run": np.float64,
    "gpus": np.int32,
    "gpu_milli": np.int32,
    "estimate": np.float64,
    "cpus": np.int32,
    "memory_mib": np.int64,
    "priority": np.float64,
    "deadline": np.float64,
    "user": np.int32,
    "pool": np.int32,
    "gpu_types": np.int32,
    "ran_on": np.int32,
}
"""The type of each column, in the order of `Workload`'s fields."""


def as_columns(
    given: Mapping[str, npt.ArrayLike], workload_name: str, *, may_be_empty: bool = False
) -> dict[str, npt.NDArray[Any]]:
    """Return columns of the right types: one value per job, scalars repeated.

    Args:
        given: every column of `COLUMN_TYPES`; `submit` sets the number of jobs.
        workload_name: for errors.
        may_be_empty: a workload without jobs is allowed.

    Raises:
        TraceError: there are no jobs, or a column has the wrong length or type.
    """
    submit = np.asarray(given["submit"])
    if submit.ndim != 1 or (submit.size == 0 and not may_be_empty):
        raise TraceError(
            "a workload needs at least one job",
            where=workload_name,
            expected="one-dimensional columns with one row per job",
        )
    return {key: _column(key, value, submit.size, workload_name) for key, value in given.items()}


def check_ranges(
    columns: Mapping[str, npt.NDArray[Any]],
    workload_name: str,
    *,
    num_users: int | None,
    num_pools: int,
    num_type_sets: int,
    num_ran_on: int = 0,
    may_lack_run_times: bool = False,
) -> None:
    """Check that every value is in its range.

    Args:
        columns: as `as_columns` returns them.
        workload_name: for errors.
        num_users: how many users have a name; None = users are numbers.
        num_pools: how many pools there are.
        num_type_sets: how many sets of GPU types there are.
        num_ran_on: how many GPU types run times were recorded on.
        may_lack_run_times: a run time may be NaN: not known.

    Raises:
        TraceError: a value is outside its range.
    """
    estimate, run = columns["estimate"], columns["run"]
    good_run = np.isfinite(run) & (run > 0)
    if may_lack_run_times:
        good_run |= np.isnan(run)
    rules = [
        ("submit", np.isfinite(columns["submit"]), "a finite number of seconds"),
        ("run", good_run, "seconds, more than 0"),
        ("gpus", columns["gpus"] >= 0, "0 GPUs (CPUs or memory only) or more"),
        (
            "gpus",
            (columns["gpus"] > 0) | (columns["cpus"] > 0) | (columns["memory_mib"] > 0),
            "at least one of GPUs, CPUs and memory",
        ),
        (
            "gpu_milli",
            (columns["gpu_milli"] >= 1) & (columns["gpu_milli"] <= WHOLE_GPU),
            f"1 to {WHOLE_GPU}",
        ),
        (
            "gpu_milli",
            (columns["gpu_milli"] == WHOLE_GPU) | (columns["gpus"] == 1),
            f"{WHOLE_GPU}, except for a job on part of one GPU (gpus = 1)",
        ),
        ("estimate", np.isnan(estimate) | ((estimate > 0) & np.isfinite(estimate)), "seconds > 0"),
        ("cpus", columns["cpus"] >= 0, "0 (no limit) or more"),
        ("memory_mib", columns["memory_mib"] >= 0, "0 (no limit) or more"),
        ("memory_mib", columns["memory_mib"] <= MAX_MEMORY_MIB, f"at most {MAX_MEMORY_MIB}"),
        ("priority", np.isfinite(columns["priority"]), "a finite number"),
        ("deadline", ~np.isnan(columns["deadline"]), "seconds, or infinity for none"),
        (
            "user",
            (columns["user"] >= 0) & (columns["user"] < (num_users or 2**31)),
            "an index into user_names" if num_users else "a user index of 0 or more",
        ),
        ("pool", (columns["pool"] >= -1) & (columns["pool"] < num_pools), "-1 or a pool index"),
        (
            "gpu_types",
            (columns["gpu_types"] >= -1) & (columns["gpu_types"] < num_type_sets),
            "-1 or an index into gpu_type_sets",
        ),
        (
            "ran_on",
            (columns["ran_on"] >= -1) & (columns["ran_on"] < num_ran_on),
            "-1 or an index into ran_on_types",
        ),
    ]
    all_good = rules[0][1].copy()
    for _, good, _ in rules[1:]:
        all_good &= good
    if all_good.all():
        return
    for key, good, expected in rules:
        if not good.all():
            bad = np.flatnonzero(~good)
            more = f" and {bad.size - 1} more rows" if bad.size > 1 else ""
            raise TraceError(
                f"column {key!r} holds {columns[key][bad[0]]}",
                where=f"{workload_name}, row {bad[0]}{more}",
                expected=expected,
            )


def _column(key: str, value: Any, size: int, workload_name: str) -> npt.NDArray[Any]:
    """Return `value` as a fresh, writable column of `size` rows and the right type."""
    dtype = COLUMN_TYPES[key]
    # Most columns are one number for all jobs.
    if isinstance(value, float) and dtype == np.float64:
        return np.full(size, value)
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return np.full(size, value, dtype)
    array = np.asarray(value)
    if array.ndim > 0 and array.shape != (size,):
        raise TraceError(
            f"column {key!r} has shape {array.shape}",
            where=workload_name,
            expected=f"({size},): one value per job, as in 'submit'",
        )
    if array.dtype.kind not in "biufc":
        raise TraceError(
            f"column {key!r} holds {array.dtype} values", where=workload_name, expected="numbers"
        )
    if array.dtype == dtype:
        return np.full(size, array) if array.ndim == 0 else array.copy()
    if array.dtype.kind == dtype(0).dtype.kind == "i":
        column = array.astype(dtype)  # values that do not fit change
        if (column == array).all():
            return np.full(size, column) if array.ndim == 0 else column
    with np.errstate(invalid="ignore"):  # as above
        column = array.astype(dtype)
    if column.dtype.kind == "i":
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # it is an integer type
        fits = (column == array) & (array >= limits.min) & (array <= limits.max)
        if not fits.all():
            row = int(np.argmin(fits))
            raise TraceError(
                f"column {key!r} holds {np.atleast_1d(array)[row]}",
                where=f"{workload_name}, row {row}",
                expected=f"whole numbers from {limits.min} to {limits.max}",
            )
    return np.full(size, column) if array.ndim == 0 else column
