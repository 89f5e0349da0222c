"""Groups: jobs by user, by pool, by size and by priority, with metrics of every group."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, unknown_name
from berthline.evaluate.metrics.deadlines import missed_deadlines
from berthline.evaluate.metrics.distribution import Distribution, distribution
from berthline.evaluate.metrics.energy import job_energy_kwh
from berthline.evaluate.metrics.fairness import finish_time_fairness
from berthline.evaluate.metrics.job_table import (
    COMPLETED,
    JobTable,
    completion_times,
    job_table,
    waits,
)
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.model.schedule import PREEMPT
from berthline.model.workload import WHOLE_GPU, FloatColumn, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule

MAX_PRIORITIES = 16
"""With more distinct priorities than this, they are grouped."""

PRIORITY_GROUPS = 8
"""The most ranges to group them into, of about equally many jobs each."""

ANY_POOL = "any pool"
"""The group of jobs that may use every pool."""


SIZES = (
    "no GPU",
    "part of a GPU",
    "1 GPU",
    "2 GPUs",
    *(f"{2 ** (k - 1) + 1} to {2**k} GPUs" for k in range(2, 32)),
)
"""The groups of jobs by size."""


class GroupMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The counted jobs of one group.

    Attributes:
        group: the user, pool, size or priority.
        jobs: number of jobs submitted and not rejected.
        completed: number of them that have finished.
        jct: finish - submit, in seconds.
        wait: first start - submit, in seconds; its `max` shows starvation.
        bounded_slowdown: max(1, JCT / max(run, 10 s)).
        rho: finish-time fairness; above 1, the job would have been better off on its own share.
        gpu_seconds: GPUs x seconds that the group held.
        energy_kwh: energy of the GPUs while the group held them.
        preemptions: how often its jobs were preempted.
        deadline_miss_rate: share of the jobs with a deadline that missed it; None without any.
    """

    group: str
    jobs: int
    completed: int
    jct: Distribution
    wait: Distribution
    bounded_slowdown: Distribution
    rho: Distribution
    gpu_seconds: float
    energy_kwh: float
    preemptions: int
    deadline_miss_rate: float | None


class Groups(NamedTuple):
    """The counted jobs split into groups, none of them empty."""

    labels: list[str]
    """Names of the groups; a range of priorities is `LOW to HIGH`."""
    member: npt.NDArray[np.integer]  # (num_counted,)
    """Index into `labels` for each counted job."""


def group_table(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    *,
    by: str,
    window: MeasurementWindow | None = None,
) -> list[GroupMetrics]:
    """Return the metrics of every group of jobs.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        by: `user`, `pool`, `size` (GPUs, in powers of two) or `priority`.
        window: only jobs submitted in it count, with everything they held; None = all.

    Raises:
        ConfigError: the grouping is unknown.
    """
    check_grouping(by)
    table = job_table(log, workload, window)
    groups = GROUPINGS[by](table, workload)
    held, energy = _of_jobs(log, workload, cluster, table)
    preempted = np.bincount(log.job[log.kind == PREEMPT], minlength=len(workload))
    has_deadline = np.isfinite(table.of_counted(workload.deadline))
    missed = missed_deadlines(table, workload) & has_deadline

    def total(values: npt.NDArray[np.generic]) -> FloatColumn:
        sums = np.bincount(groups.member, values, minlength=len(groups.labels))
        return sums.astype(np.float64)

    jobs = np.bincount(groups.member, minlength=len(groups.labels))
    order = np.argsort(groups.member, kind="stable")
    cuts = np.cumsum(jobs)[:-1]

    def spread(values: FloatColumn) -> list[Distribution]:
        return [distribution(part) for part in np.split(values[order], cuts)]

    columns = {
        "jct": spread(completion_times(table, workload)),
        "wait": spread(waits(table, workload)),
        "bounded_slowdown": spread(bounded_slowdowns(table, workload)),
        "rho": spread(finish_time_fairness(log, table, workload, cluster)),
        "gpu_seconds": total(table.of_counted(held)).tolist(),
        "energy_kwh": total(table.of_counted(energy)).tolist(),
        "preemptions": total(table.of_counted(preempted)).astype(int).tolist(),
        "completed": total(table.of_counted(table.status) == COMPLETED).astype(int).tolist(),
        "deadline_miss_rate": [
            part / whole if whole else None
            for part, whole in zip(
                total(missed).tolist(), total(has_deadline).tolist(), strict=True
            )
        ],
    }
    return [
        GroupMetrics(
            group=label,
            jobs=int(jobs[number]),
            **{name: values[number] for name, values in columns.items()},
        )
        for number, label in enumerate(groups.labels)
    ]


def check_grouping(by: str) -> None:
    """Raise a ConfigError if there is no grouping of this name."""
    if by not in GROUPINGS:
        what, expected, hint = unknown_name("grouping", by, GROUPINGS)
        raise ConfigError(what, expected=expected, hint=hint)


def averaged(tables: Sequence[Sequence[GroupMetrics]]) -> list[GroupMetrics]:
    """Return one table for several windows.

    Counts, GPU-seconds and energy are sums over windows; distributions and the deadline miss rate
    are means over the windows in which the group has such jobs.
    """
    members: dict[str, list[GroupMetrics]] = {}
    for row in itertools.chain.from_iterable(tables):
        members.setdefault(row.group, []).append(row)
    found = []
    for label, rows in sorted(members.items(), key=lambda member: _rank(member[0])):
        rates = [row.deadline_miss_rate for row in rows if row.deadline_miss_rate is not None]
        found.append(
            GroupMetrics(
                group=label,
                jobs=sum(row.jobs for row in rows),
                completed=sum(row.completed for row in rows),
                jct=_mean_of([row.jct for row in rows]),
                wait=_mean_of([row.wait for row in rows]),
                bounded_slowdown=_mean_of([row.bounded_slowdown for row in rows]),
                rho=_mean_of([row.rho for row in rows]),
                gpu_seconds=sum(row.gpu_seconds for row in rows),
                energy_kwh=sum(row.energy_kwh for row in rows),
                preemptions=sum(row.preemptions for row in rows),
                deadline_miss_rate=sum(rates) / len(rates) if rates else None,
            )
        )
    return found


def _rank(label: str) -> float:
    """Return the sort key of a group: sizes and numbers by their value."""
    if label in SIZES:
        return SIZES.index(label)
    try:
        return float(label.partition(" to ")[0])
    except ValueError:
        return 0.0


def _mean_of(values: Sequence[Distribution]) -> Distribution:
    return Distribution(
        **{
            field: sum(getattr(value, field) for value in values) / len(values)
            for field in Distribution.__struct_fields__
        }
    )


def user_groups(table: JobTable, workload: Workload) -> Groups:
    """Return the counted jobs grouped by user."""
    return _present(workload.user_names, table.of_counted(workload.user))


def pool_groups(table: JobTable, workload: Workload) -> Groups:
    """Return the counted jobs grouped by the pool they are bound to, if any."""
    return _present((ANY_POOL, *workload.pool_names), table.of_counted(workload.pool) + 1)


def size_groups(table: JobTable, workload: Workload) -> Groups:
    """Return the counted jobs grouped by GPUs: none, part of one, 1, 2, 3 to 4, 5 to 8, ..."""
    member = size_classes(table.of_counted(workload.gpus), table.of_counted(workload.gpu_milli))
    return _present(SIZES, member)


def size_classes(
    gpus: npt.NDArray[np.int32], gpu_milli: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return for each job its place in `SIZES`."""
    member = np.where(gpus == 0, 0, 2 + np.ceil(np.log2(np.maximum(gpus, 1))).astype(np.int64))
    member[gpu_milli < WHOLE_GPU] = 1
    return member


def priority_groups(table: JobTable, workload: Workload) -> Groups:
    """Return the counted jobs grouped by priority, lowest first.

    Formula: `jobs`, `jct`, `wait` and `bounded_slowdown` over the jobs of each group. Up to 16
    distinct priorities (`MAX_PRIORITIES`) form one group each. More are cut at their quantiles into
    at most 8 ranges (`PRIORITY_GROUPS`) of about equally many jobs; labels are then ranges.
    """
    return group_priorities(table.of_counted(workload.priority))


def group_priorities(priority: FloatColumn) -> Groups:
    """Return jobs grouped by their priorities, as `priority_groups` does."""
    if priority.size and priority.min() == priority.max():
        return Groups([_number(priority[0])], np.zeros(priority.size, dtype=np.int8))
    levels = np.unique(priority)
    if len(levels) <= MAX_PRIORITIES:
        member = np.searchsorted(levels, priority).astype(np.int8)
        return Groups([_number(level) for level in levels], member)
    portions = np.arange(1, PRIORITY_GROUPS) / PRIORITY_GROUPS
    cuts = np.unique(np.quantile(priority, portions, method="higher"))
    cuts = cuts[cuts > levels[0]]
    labels = []
    for part in np.split(levels, np.searchsorted(levels, cuts)):
        low, high = _number(part[0]), _number(part[-1])
        labels.append(low if low == high else f"{low} to {high}")
    return Groups(labels, np.searchsorted(cuts, priority, side="right").astype(np.int8))


GROUPINGS: dict[str, Callable[[JobTable, Workload], Groups]] = {
    "user": user_groups,
    "pool": pool_groups,
    "size": size_groups,
    "priority": priority_groups,
}
"""Maps the name of a grouping to the function that splits the jobs."""


def distributions(values: FloatColumn, groups: Groups) -> tuple[Distribution, list[Distribution]]:
    """Return the distribution of all values and that of each group. Reorders `values`."""
    if len(groups.labels) == 1:
        whole = distribution(values)
        return whole, [whole]
    parts = [
        distribution(values[np.flatnonzero(groups.member == k)]) for k in range(len(groups.labels))
    ]
    return distribution(values), parts


def _of_jobs(
    log: Schedule, workload: Workload, cluster: Cluster, table: JobTable
) -> tuple[FloatColumn, FloatColumn]:
    """Return the GPU-seconds each job held, and its energy in kWh."""
    ran = stretches(log, table)
    held = np.zeros(len(workload))
    for part in shares(log, workload, ran):
        np.add.at(held, part.job, part.gpu_seconds())
    return held, job_energy_kwh(log, workload, cluster, ran)


def _present(labels: tuple[str, ...] | list[str], member: npt.NDArray[np.integer]) -> Groups:
    """Return the groups that have a job."""
    jobs = np.bincount(member, minlength=len(labels))
    present = np.flatnonzero(jobs)
    number = np.cumsum(jobs > 0) - 1
    return Groups([labels[k] for k in present], number[member])


def _number(value: float) -> str:
    """Return the shortest text that reads back as `value`, without a trailing `.0`."""
    text = repr(float(value))
    return text.removesuffix(".0")
