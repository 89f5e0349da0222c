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

from berthline.counted import counted
from berthline.errors import ConfigError, TraceError
from berthline.model.gpu_types import RECORDED, REFERENCE_TYPE, gpu_type
from berthline.model.history import History
from berthline.model.provenance import provenance_of_cut
from berthline.model.workload_columns import COLUMN_TYPES, as_columns, check_ranges
from berthline.model.workload_columns import WHOLE_GPU as WHOLE_GPU

FloatColumn = npt.NDArray[np.float64]
IntColumn = npt.NDArray[np.int32]
LongColumn = npt.NDArray[np.int64]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Workload:
    """The jobs of one run. Build it with `Workload.from_columns`, which checks and sorts.

    Attributes:
        submit: seconds on the workload's clock, 0 or more, ascending.
        run: true run time in seconds, > 0. Schedulers see it only under `exact` knowledge.
        gpus: GPUs that start together (the gang); 0 = a job that needs CPUs or memory only.
        gpu_milli: thousandths of each GPU: 1000, or less for a job on part of one GPU.
        estimate: the run time the user (or the trace) stated, > 0; NaN where none was given.
        cpus: CPU cores of the whole gang, spread over nodes in proportion to GPUs; 0 = no limit.
        memory_mib: memory of the whole gang, spread in the same way; 0 = no limit.
        priority: larger is more important.
        deadline: absolute time by which the job should be finished; infinity = none.
        user: index into `user_names`.
        pool: index into `pool_names`; -1 = may use every pool.
        gpu_types: index into `gpu_type_sets`; -1 = may use every GPU type.
        ran_on: index into `ran_on_types`: the GPU type that the job's run time was recorded on;
            -1 = the one type that it asks for, else `reference_type`.
        ran_on_types: names of GPU types, as the trace spells them; an unknown one counts as
            `"recorded"`.
        reference_type: the GPU type that run times refer to, for jobs that do not ask for one type;
            `"recorded"` = not known: run times hold on whatever GPUs the cluster has.
        names: the jobs' ids in the trace; None = the row numbers.
        provenance: where the rows came from and what was left out, as plain data.
        history: what was recorded when the jobs actually ran; None = nothing was kept.
        in_order: the rows were given in order of submission.
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
    ran_on: IntColumn  # (num_jobs,)
    user_names: tuple[str, ...] = ("all",)
    pool_names: tuple[str, ...] = ()
    gpu_type_sets: tuple[str, ...] = ()
    ran_on_types: tuple[str, ...] = ()
    reference_type: str = REFERENCE_TYPE
    names: npt.NDArray[np.str_] | None = None
    name: str = "workload"
    provenance: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    history: History | None = None
    in_order: bool = True

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {counted(len(self), 'job')}>"

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
        ran_on: npt.ArrayLike | int = -1,
        user_names: tuple[str, ...] | None = None,
        pool_names: tuple[str, ...] = (),
        gpu_type_sets: tuple[str, ...] = (),
        ran_on_types: tuple[str, ...] = (),
        reference_type: str = REFERENCE_TYPE,
        names: npt.ArrayLike | None = None,
        name: str = "workload",
        provenance: Mapping[str, Any] | None = None,
        history: History | None = None,
        rebase: bool = True,
        of_snapshot: bool = False,
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
            ran_on: see the class.
            user_names: None = the numbers themselves.
            pool_names: names that `pool` points to.
            gpu_type_sets: GPU type sets that `gpu_types` points to, such as `"A100|V100"`.
            ran_on_types: GPU types that `ran_on` points to.
            reference_type: see the class; any spelling of a known GPU type, or `"recorded"`.
            names: the jobs' ids in the trace.
            name: the workload's name in reports.
            provenance: see the class.
            history: what was recorded about the jobs, on the same clock as `submit`.
            rebase: shift times so that the first job is submitted at 0.
            of_snapshot: these are the jobs of a snapshot: there may be none, and NaN stands for a
                run time that is not known yet.

        Raises:
            TraceError: a column has the wrong length, or a value outside its range.
        """
        columns = as_columns(
            {
                "submit": submit,
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
                "ran_on": ran_on,
            },
            name,
            may_be_empty=of_snapshot,
        )
        reference = _reference_type(reference_type, name)
        check_ranges(
            columns,
            name,
            num_users=None if user_names is None else len(user_names),
            num_pools=len(pool_names),
            num_type_sets=len(gpu_type_sets),
            num_ran_on=len(ran_on_types),
            may_lack_run_times=of_snapshot,
        )
        order = _submission_order(columns["submit"])
        columns, history = _on_the_clock(columns, history, order, name, rebase=rebase)
        labels = None if names is None else _labels(names, order, len(columns["submit"]), name)
        for value in columns.values():
            value.setflags(write=False)
        return cls(
            **columns,
            user_names=_numbered_users(columns["user"]) if user_names is None else user_names,
            pool_names=pool_names,
            gpu_type_sets=gpu_type_sets,
            ran_on_types=ran_on_types,
            reference_type=reference,
            names=labels,
            name=name,
            provenance=dict(provenance or {}),
            history=history,
            in_order=order is None,
        )

    def window(self, first: int, last: int) -> Workload:
        """Return jobs `first` to `last - 1` as a workload of their own, rebased to time 0.

        Counts of the file they come from are under `origin` in its provenance.
        """
        columns = {key: getattr(self, key)[first:last].copy() for key in COLUMN_TYPES}
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
            ran_on_types=self.ran_on_types,
            reference_type=self.reference_type,
            names=None if self.names is None else self.names[first:last],
            name=f"{self.name}[{first}:{last}]",
            provenance=provenance,
            history=self.history and self.history.take(slice(first, last)),
        )


def _reference_type(name: str, workload_name: str) -> str:
    """Return the GPU type that run times refer to, as clusters spell it."""
    if name == RECORDED:
        return name
    try:
        return gpu_type(name).name
    except ConfigError as error:
        raise TraceError(
            error.what, where=workload_name, expected=error.expected, hint=error.hint
        ) from None


def _submission_order(submit: FloatColumn) -> npt.NDArray[np.intp] | None:
    """Return the rows by submission, equal times in the order given; None = already sorted."""
    if (submit[1:] >= submit[:-1]).all():
        return None
    return np.argsort(submit, kind="stable")


def _on_the_clock(
    columns: dict[str, npt.NDArray[Any]],
    history: History | None,
    order: npt.NDArray[np.intp] | None,
    workload_name: str,
    *,
    rebase: bool,
) -> tuple[dict[str, npt.NDArray[Any]], History | None]:
    """Return the columns by submission, with times from the first submission if `rebase`."""
    if order is not None:
        columns = {key: value[order] for key, value in columns.items()}
        history = history and history.take(order)
    zero = float(columns["submit"][0]) if len(columns["submit"]) else 0.0
    if rebase and zero != 0:
        columns["submit"] = columns["submit"] - zero
        columns["deadline"] = columns["deadline"] - zero
        history = history and history.take(slice(None), zero=zero)
    elif zero < 0:
        raise TraceError(
            f"column 'submit' holds {zero}",
            where=f"{workload_name}, row {0 if order is None else order[0]}",
            expected="0 seconds or more if the clock is kept (rebase=False)",
        )
    return columns, history


def _labels(
    names: npt.ArrayLike, order: npt.NDArray[np.intp] | None, num_jobs: int, workload_name: str
) -> npt.NDArray[np.str_]:
    """Return the jobs' names, by submission."""
    labels = np.asarray(names, dtype=np.str_)
    if labels.shape != (num_jobs,):
        raise TraceError(
            f"names have shape {labels.shape} for {num_jobs} jobs",
            where=workload_name,
            expected="one name per job",
        )
    return labels if order is None else labels[order]


def _numbered_users(user: IntColumn) -> tuple[str, ...]:
    return tuple(f"user{number}" for number in range(int(user.max(initial=0)) + 1))
