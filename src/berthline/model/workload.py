"""Workload: the jobs of one run, as columns.

Jobs are rows sorted by submission; a job's *id* is its row number. That number breaks every tie
in the simulators, so it is part of the semantics; the name a trace gave the job is kept beside it.
Columns are read-only numpy arrays of equal length. Times are seconds on the workload's clock, whose
zero is the first submission, or for generated workloads the start of the generator.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, TraceError
from berthline.model.gpu_types import REFERENCE_TYPE, gpu_type
from berthline.model.history import History
from berthline.model.origin import provenance_of_cut

FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int32]
LongColumn = npt.NDArray[np.int64]

WHOLE_GPU = 1000
"""Thousandths of a GPU: a job on whole GPUs."""

MAX_MEMORY_MIB = 2**38
"""Memory of a job or a node: 256 PiB."""

_DTYPES: dict[str, type[np.generic]] = {
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
}


@dataclasses.dataclass(frozen=True, eq=False)
class Workload:
    """The jobs of one run. Build it with `Workload.from_columns`, which checks and sorts.

    Attributes:
        submit: seconds on the workload's clock, 0 or more, ascending.
        run: true run time in seconds, > 0. Schedulers see it only under `exact` knowledge.
        gpus: GPUs that start together (the gang); 0 = a job that needs CPUs or memory only.
        gpu_milli: thousandths of each GPU: 1000, or less for a job on part of one GPU.
        estimate: the run time the user (or the trace) stated, > 0; NaN where none was given.
        cpus: CPU cores of the whole gang, spread over nodes in proportion to GPUs; 0 = no limit.
        memory_mib: memory of the whole gang, spread likewise; 0 = no limit.
        priority: larger is more important.
        deadline: absolute time by which the job should be finished; infinity = none.
        user: index into `user_names`.
        pool: index into `pool_names`; -1 = may use every pool.
        gpu_types: index into `gpu_type_sets`; -1 = may use every GPU type.
        reference_type: the GPU type the run times are on, for jobs that do not ask for one type.
        names: the ids of the trace the jobs came from; None = the row numbers.
        provenance: where the rows came from and what was left out, as plain data.
        history: what was recorded of the jobs when they really ran; None = nothing was kept.
    """

    submit: FloatColumn  # (num_jobs,)
    run: FloatColumn  # (num_jobs,)
    gpus: IntColumn  # (num_jobs,)
    gpu_milli: IntColumn  # (num_jobs,)
    estimate: FloatColumn  # (num_jobs,)
    cpus: IntColumn  # (num_jobs,)
    memory_mib: LongColumn  # (num_jobs,)
    priority: FloatColumn  # (num_jobs,)
    deadline: FloatColumn  # (num_jobs,)
    user: IntColumn  # (num_jobs,)
    pool: IntColumn  # (num_jobs,)
    gpu_types: IntColumn  # (num_jobs,)
    user_names: tuple[str, ...] = ("all",)
    pool_names: tuple[str, ...] = ()
    gpu_type_sets: tuple[str, ...] = ()
    reference_type: str = REFERENCE_TYPE
    names: npt.NDArray[np.str_] | None = None
    name: str = "workload"
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    history: History | None = None

    def __len__(self) -> int:
        return len(self.submit)

    @property
    def num_jobs(self) -> int:
        """How many jobs there are."""
        return len(self.submit)

    @property
    def work(self) -> float:
        """GPU-seconds of all jobs together, by their true run times."""
        return float(np.dot(self.run, self.gpu_amount))

    @property
    def gpu_amount(self) -> FloatColumn:
        """GPUs of each job, parts of a GPU included: 0.25 for a quarter of one."""
        if (self.gpu_milli == WHOLE_GPU).all():
            return self.gpus.astype(np.float64)
        return self.gpus * self.gpu_milli / 1000.0

    @classmethod
    def from_columns(
        cls,
        *,
        submit: npt.ArrayLike,
        run: npt.ArrayLike,
        gpus: npt.ArrayLike,
        gpu_milli: npt.ArrayLike | int = WHOLE_GPU,
        estimate: npt.ArrayLike | None = None,
        cpus: npt.ArrayLike | int = 0,
        memory_mib: npt.ArrayLike | int = 0,
        priority: npt.ArrayLike | float = 0.0,
        deadline: npt.ArrayLike | float = np.inf,
        user: npt.ArrayLike | int = 0,
        pool: npt.ArrayLike | int = -1,
        gpu_types: npt.ArrayLike | int = -1,
        user_names: tuple[str, ...] | None = None,
        pool_names: tuple[str, ...] = (),
        gpu_type_sets: tuple[str, ...] = (),
        reference_type: str = REFERENCE_TYPE,
        names: npt.ArrayLike | None = None,
        name: str = "workload",
        provenance: Mapping[str, Any] | None = None,
        history: History | None = None,
        rebase: bool = True,
    ) -> Workload:
        """Check the columns, sort the jobs by submission (stable) and rebase time to the first.

        Args:
            submit: submission times in seconds, in any order.
            run: true run times in seconds.
            gpus: GPUs per job.
            gpu_milli: see the class; scalars apply to all jobs, as for every column below.
            estimate: stated run times; None = no job has one.
            cpus: see the class.
            memory_mib: see the class.
            priority: see the class.
            deadline: absolute, on the same clock as `submit`.
            user: see the class.
            pool: see the class.
            gpu_types: see the class.
            user_names: None = the numbers themselves.
            pool_names: names that `pool` points to.
            gpu_type_sets: GPU type sets that `gpu_types` points to, such as `"A100|V100"`.
            reference_type: see the class; any spelling of a known GPU type.
            names: the jobs' ids in the trace.
            name: what reports call this workload.
            provenance: plain data about origin and dropped rows.
            history: what was recorded of the jobs, on the same clock as `submit`.
            rebase: shift times so that the first job is submitted at 0.

        Raises:
            TraceError: a column has the wrong length, or a value outside its range.
        """
        submit_times = np.asarray(submit)
        if submit_times.ndim != 1 or submit_times.size == 0:
            raise TraceError(
                "a workload needs at least one job",
                where=name,
                expected="one-dimensional columns with one row per job",
            )
        given: dict[str, npt.ArrayLike] = {
            "submit": submit_times,
            "run": run,
            "gpus": gpus,
            "gpu_milli": gpu_milli,
            "estimate": np.nan if estimate is None else estimate,
            "cpus": cpus,
            "memory_mib": memory_mib,
            "priority": priority,
            "deadline": deadline,
            "user": user,
            "pool": pool,
            "gpu_types": gpu_types,
        }
        columns = {
            key: _column(key, value, submit_times.size, name) for key, value in given.items()
        }
        try:
            reference = gpu_type(reference_type)
        except ConfigError as error:
            raise TraceError(
                error.what, where=name, expected=error.expected, hint=error.hint
            ) from None
        num_users = None if user_names is None else len(user_names)
        _check_ranges(columns, name, num_users, len(pool_names), len(gpu_type_sets))
        submitted = columns["submit"]
        in_order = bool((submitted[1:] >= submitted[:-1]).all())
        if not in_order:
            order = np.argsort(submitted, kind="stable")
            columns = {key: value[order] for key, value in columns.items()}
            history = history and history.take(order)
        if rebase and columns["submit"][0] != 0:
            origin = columns["submit"][0]
            history = history and history.take(slice(None), zero=float(origin))
            columns["submit"] = columns["submit"] - origin
            columns["deadline"] = columns["deadline"] - origin
        if columns["submit"][0] < 0:
            raise TraceError(
                f"column 'submit' holds {columns['submit'][0]}",
                where=f"{name}, row {submitted.argmin()}",
                expected="seconds of 0 or more on a clock that is kept (rebase=False)",
            )
        labels = None if names is None else np.asarray(names, dtype=np.str_)
        if labels is not None and labels.shape != submit_times.shape:
            raise TraceError(
                f"there are names of shape {labels.shape} for {len(submit_times)} jobs",
                where=name,
                expected="one name per job",
            )
        if labels is not None and not in_order:
            labels = labels[order]
        if user_names is None:
            highest = int(columns["user"].max())
            user_names = tuple(f"user{i}" for i in range(highest + 1))
        for value in columns.values():
            value.setflags(write=False)
        return cls(
            **columns,
            user_names=user_names,
            pool_names=pool_names,
            gpu_type_sets=gpu_type_sets,
            reference_type=reference.name,
            names=labels,
            name=name,
            provenance=dict(provenance or {}),
            history=history,
        )

    def window(self, first: int, last: int) -> Workload:
        """Return jobs `first` to `last - 1` as a workload of their own, rebased to time 0.

        Counts of the file they come from are under `origin` in its provenance.
        """
        columns = {key: getattr(self, key)[first:last].copy() for key in _DTYPES}
        provenance = provenance_of_cut(
            self.provenance, first=first, jobs=len(columns["submit"]), of=len(self)
        )
        if provenance.get("origin_unix_time") is not None and last > first:
            provenance["origin_unix_time"] += float(self.submit[first])
        return Workload.from_columns(
            **columns,
            user_names=self.user_names,
            pool_names=self.pool_names,
            gpu_type_sets=self.gpu_type_sets,
            reference_type=self.reference_type,
            names=None if self.names is None else self.names[first:last],
            name=f"{self.name}[{first}:{last}]",
            provenance=provenance,
            history=self.history and self.history.take(slice(first, last)),
        )


def check_workload(given: object) -> Workload:
    """Return what was given as a workload.

    Raises:
        ConfigError: it is something else, such as the path of a trace.
    """
    if not isinstance(given, Workload):
        raise ConfigError(
            f"workload is {given!r}",
            expected="a Workload",
            hint="berthline.load_trace reads one from a file, berthline.generate makes one",
        )
    return given


def _column(key: str, value: npt.ArrayLike, size: int, name: str) -> npt.NDArray[Any]:
    """Return `value` as a fresh, writable column of `size` rows and the right type."""
    dtype = _DTYPES[key]
    array = np.asarray(value)
    if array.ndim > 0 and array.shape != (size,):
        raise TraceError(
            f"column {key!r} has shape {array.shape}",
            where=name,
            expected=f"({size},): one value per job, as in 'submit'",
        )
    if not (np.issubdtype(array.dtype, np.number) or np.issubdtype(array.dtype, np.bool_)):
        raise TraceError(
            f"column {key!r} holds {array.dtype} values", where=name, expected="numbers"
        )
    with np.errstate(invalid="ignore"):  # what does not fit becomes another number
        column = array.astype(dtype)
    if np.issubdtype(dtype, np.integer) and array.dtype != dtype:
        limits = np.iinfo(dtype)  # type: ignore[type-var]  # it is an integer type
        bad = np.flatnonzero((column != array) | (array < limits.min) | (array > limits.max))
        if bad.size:
            raise TraceError(
                f"column {key!r} holds {np.atleast_1d(array)[bad[0]]}",
                where=f"{name}, row {bad[0]}",
                expected="whole numbers",
            )
    return np.full(size, column) if array.ndim == 0 else column


def _check_ranges(
    columns: Mapping[str, npt.NDArray[Any]],
    name: str,
    num_users: int | None,
    num_pools: int,
    num_type_sets: int,
) -> None:
    estimate = columns["estimate"]
    rules = [
        ("submit", np.isfinite(columns["submit"]), "a finite number of seconds"),
        ("run", np.isfinite(columns["run"]) & (columns["run"] > 0), "seconds, more than 0"),
        ("gpus", columns["gpus"] >= 0, "0 GPUs (CPUs or memory only) or more"),
        (
            "gpus",
            (columns["gpus"] > 0) | (columns["cpus"] > 0) | (columns["memory_mib"] > 0),
            "a GPU, or CPUs or memory: a job that needs nothing is none",
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
    ]
    for key, good, expected in rules:
        bad = np.flatnonzero(~good)
        if bad.size:
            more = f" and {bad.size - 1} more rows" if bad.size > 1 else ""
            raise TraceError(
                f"column {key!r} holds {columns[key][bad[0]]}",
                where=f"{name}, row {bad[0]}{more}",
                expected=expected,
            )
