"""Metrics: what a schedule log says about the jobs and the nodes of one run.

Every number is a pure function of the log, the workload and the cluster; nothing is measured on
the side. One rule holds throughout: a metric is over all submitted jobs but the rejected ones,
which are counted apart, and a job that is unfinished when the log ends is *censored* there. It is
counted with the time it has spent so far, never left out, so such a value is a lower bound.
Times are seconds unless a name says otherwise. Formulas in one table: `docs/reference/metrics.md`.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.schedule import FINISH, REJECT, START, SUBMIT
from berthline.model.workload import FloatColumn

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

BOUND_SECONDS = 10.0
"""Run times below this count as this in the bounded slowdown."""

MAX_PRIORITIES = 16
"""With more distinct priorities than this, `by_priority` groups them."""

PRIORITY_GROUPS = 8
"""Into at most this many ranges of about equally many jobs."""

JOULES_PER_KWH = 3.6e6

NOT_SUBMITTED, WAITING, RUNNING, COMPLETED, REJECTED = range(5)
STATUSES = ("not submitted", "waiting", "running", "completed", "rejected")

_STARTS_PER_CHUNK = 65_536
_Scalar = TypeVar("_Scalar", bound=np.generic)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the jobs: submitted = completed + rejected + unfinished."""

    submitted: int
    completed: int
    rejected: int
    unfinished: int


class Distribution(msgspec.Struct, frozen=True, kw_only=True):
    """A mean and its tail; percentiles interpolate linearly. NaN (JSON null) when no job counts."""

    mean: float
    p50: float
    p95: float
    p99: float
    max: float


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the cluster in use: of its GPUs, and of its TFLOPS."""

    gpu: float
    flops: float


class Fairness(msgspec.Struct, frozen=True, kw_only=True):
    """How evenly users are served."""

    jain: float


class QueueLength(msgspec.Struct, frozen=True, kw_only=True):
    """Waiting jobs, as a time average and at most."""

    mean: float
    max: float


class PriorityMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one priority (or of one range of priorities)."""

    jobs: int
    jct: Distribution
    wait: Distribution
    bounded_slowdown: Distribution


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics of one run, under the names that `berthline sim --json` prints."""

    jobs: JobCounts
    jct: Distribution
    wait: Distribution
    slowdown: Distribution
    bounded_slowdown: Distribution
    makespan: float
    utilization: Utilization
    energy_kwh: float
    fairness: Fairness
    queue: QueueLength
    preemptions: int
    deadline_miss_rate: float | None
    load_imbalance: float
    by_priority: dict[str, PriorityMetrics]
    events: int
    decisions: int
    log_sha256: str


@dataclasses.dataclass(frozen=True, eq=False)
class JobTable:
    """What the log says about each job, in the workload's order.

    Attributes:
        start: when the job first started; NaN = it has not.
        finish: when it finished; NaN = it has not.
        status: NOT_SUBMITTED, WAITING, RUNNING, COMPLETED or REJECTED when the log ends.
        end: when the log ends: the last finish; or the horizon, when it has cut something off
            (a horizon later than everything changes no metric); or the last event, should jobs
            be left over without a horizon.
    """

    start: FloatColumn  # (num_jobs,)
    finish: FloatColumn  # (num_jobs,)
    status: npt.NDArray[np.uint8]  # (num_jobs,)
    end: float

    @property
    def counted(self) -> npt.NDArray[np.bool_]:
        """True for the jobs that metrics are over: submitted and not rejected."""
        counted: npt.NDArray[np.bool_] = self.status != REJECTED
        counted &= self.status != NOT_SUBMITTED
        return counted

    def of_counted(self, column: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        """Return the counted jobs' rows of a column; no copy when that is all of them."""
        counted = self.counted
        return column if counted.all() else column[counted]


class PriorityGroups(NamedTuple):
    """The counted jobs split by priority, lowest first."""

    labels: list[str]
    """The priority, or `LOW to HIGH` where a range of priorities is one group."""
    member: npt.NDArray[np.int8]  # (num_counted,)
    """Index into `labels` for each counted job."""


def measure(log: Schedule, workload: Workload, cluster: Cluster) -> Metrics:
    """Return all metrics of one run.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
    """
    table = job_table(log, workload)
    busy = busy_gpu_seconds(log, table, cluster)
    groups = priority_groups(table, workload)
    # One per-job column at a time: at a million jobs each is 8 MB.
    jct, jct_by = _distributions(completion_times(table, workload), groups)
    wait, wait_by = _distributions(waits(table, workload), groups)
    bounded, bounded_by = _distributions(bounded_slowdowns(table, workload), groups)
    sizes = np.bincount(groups.member, minlength=len(groups.labels))
    return Metrics(
        jobs=job_counts(table),
        jct=jct,
        wait=wait,
        slowdown=distribution(slowdowns(table, workload)),
        bounded_slowdown=bounded,
        makespan=makespan(table),
        utilization=Utilization(
            gpu=gpu_utilization(busy, cluster, table.end),
            flops=flops_utilization(busy, cluster, table.end),
        ),
        energy_kwh=energy_kwh(busy, cluster, table.end),
        fairness=Fairness(jain=jain_index(user_slowdowns(table, workload))),
        queue=QueueLength(mean=mean_queue_length(table, workload), max=max_queue_length(log)),
        preemptions=0,
        deadline_miss_rate=deadline_miss_rate(table, workload),
        load_imbalance=load_imbalance(busy, cluster, table.end),
        by_priority={
            label: PriorityMetrics(
                jobs=int(sizes[k]), jct=jct_by[k], wait=wait_by[k], bounded_slowdown=bounded_by[k]
            )
            for k, label in enumerate(groups.labels)
        },
        events=len(log),
        decisions=log.decisions,
        log_sha256=log.sha256(),
    )


def job_table(log: Schedule, workload: Workload) -> JobTable:
    """Return when each job started and finished and what became of it, from the log alone."""
    num_jobs = len(workload)
    start, finish = np.full(num_jobs, np.nan), np.full(num_jobs, np.nan)
    status = np.full(num_jobs, NOT_SUBMITTED, dtype=np.uint8)
    for kind, reached, times in (
        (SUBMIT, WAITING, None),
        (START, RUNNING, start),
        (FINISH, COMPLETED, finish),
        (REJECT, REJECTED, None),
    ):
        rows = log.kind == kind
        jobs = log.job[rows]
        status[jobs] = reached
        if times is not None:
            times[jobs] = log.time[rows]
    unfinished = (status == WAITING) | (status == RUNNING)
    if np.isfinite(log.horizon) and (unfinished | (status == NOT_SUBMITTED)).any():
        end = log.horizon
    elif unfinished.any():
        end = float(log.time[-1])
    else:
        end = float(np.fmax.reduce(finish, initial=0.0))
    return JobTable(start, finish, status, end)


def job_counts(table: JobTable) -> JobCounts:
    """Return how many jobs were submitted, completed, rejected and left unfinished.

    Formula: numbers of jobs by their last event; submitted is the sum of the other three. Jobs
    with no event in the log (submitted after the horizon) are in none of them.
    """
    count = np.bincount(table.status, minlength=len(STATUSES))
    return JobCounts(
        submitted=int(count.sum() - count[NOT_SUBMITTED]),
        completed=int(count[COMPLETED]),
        rejected=int(count[REJECTED]),
        unfinished=int(count[WAITING] + count[RUNNING]),
    )


def completion_times(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the JCT of each counted job (Batsim: `turnaround_time`).

    Formula: finish - submit, in seconds. Unfinished jobs: end - submit. Rejected jobs: left out.
    """
    return _since_submit(table.finish, table, workload)


def waits(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the wait of each counted job (SWF: field 3; Batsim: `waiting_time`).

    Formula: first start - submit, in seconds. Jobs not started: end - submit. Rejected jobs:
    left out.
    """
    return _since_submit(table.start, table, workload)


def slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the slowdown of each counted job (Batsim: `stretch`).

    Formula: JCT / run; no unit. Unfinished jobs: with their JCT so far, so that a job cut off
    early can be below 1. Rejected jobs: left out.
    """
    values = completion_times(table, workload)
    values /= table.of_counted(workload.run)
    return values


def bounded_slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the bounded slowdown of each counted job.

    Formula: max(1, JCT / max(run, 10 s)); no unit. Unfinished jobs: with their JCT so far.
    Rejected jobs: left out.
    """
    values = completion_times(table, workload)
    values /= np.maximum(table.of_counted(workload.run), BOUND_SECONDS)
    return np.maximum(values, 1.0, out=values)


def distribution(values: FloatColumn) -> Distribution:
    """Return mean, percentiles and maximum of per-job values. Reorders `values`."""
    if not values.size:
        return Distribution(mean=np.nan, p50=np.nan, p95=np.nan, p99=np.nan, max=np.nan)
    mean = float(values.mean())
    p50, p95, p99, highest = np.percentile(values, (50, 95, 99, 100), overwrite_input=True)
    return Distribution(
        mean=mean, p50=float(p50), p95=float(p95), p99=float(p99), max=float(highest)
    )


def makespan(table: JobTable) -> float:
    """Return the last finish, in seconds from the zero of the workload's clock.

    That zero is the first submission of a trace, and the start of the generator for a generated
    workload; the first submission is not subtracted. With unfinished jobs: the end of the log,
    which is a lower bound. Rejected jobs: no effect. 0 when no job is counted.
    """
    unfinished = ((table.status == WAITING) | (table.status == RUNNING)).any()
    return table.end if unfinished else float(np.fmax.reduce(table.finish, initial=0.0))


def busy_gpu_seconds(log: Schedule, table: JobTable, cluster: Cluster) -> FloatColumn:
    """Return the GPU-seconds that jobs held on each node, (num_nodes,).

    Formula: sum over the allocations on the node of GPUs x (finish - start). Jobs running at the
    end: up to there. Waiting and rejected jobs hold nothing.
    """
    is_start = log.kind == START
    jobs, starts = log.job[is_start], log.time[is_start]
    first = np.append(log.detail[is_start], np.int32(len(log.alloc_node)))
    busy = np.zeros(cluster.num_nodes)
    for begin in range(0, len(jobs), _STARTS_PER_CHUNK):
        part = slice(begin, begin + _STARTS_PER_CHUNK)
        seconds = np.fmin(table.finish[jobs[part]], table.end) - starts[part]
        bounds = first[begin : begin + len(seconds) + 1]
        rows = slice(bounds[0], bounds[-1])
        held = np.repeat(seconds, np.diff(bounds)) * log.alloc_gpus[rows]
        busy += np.bincount(log.alloc_node[rows], held, minlength=cluster.num_nodes)
    return busy


def gpu_utilization(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the share of the cluster's GPUs held by jobs, between 0 and 1.

    Formula: busy GPU-seconds / (GPUs x end), over [0, end]. 0 for an empty run.

    Args:
        busy: from `busy_gpu_seconds`, which says how unfinished and rejected jobs count.
        cluster: the nodes.
        end: end of the log in seconds.
    """
    return _share(float(busy.sum()), cluster.total_gpus * end)


def flops_utilization(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the share of the cluster's TFLOPS held by jobs, between 0 and 1.

    Formula: `gpu_utilization` with each GPU weighted by the TFLOPS of its type. A GPU counts as
    used in full while a job holds it.
    """
    tflops = _of_node(cluster, [kind.tflops for kind in cluster.types])
    return _share(float(busy @ tflops), float(cluster.gpus @ tflops) * end)


def energy_kwh(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the energy the GPUs took over [0, end], in kWh.

    Formula: sum over nodes of peak_w x busy GPU-seconds + idle_w x free GPU-seconds, with the
    node's GPU type. Jobs count as in `busy_gpu_seconds`. CPUs, network and cooling are not in it.
    """
    idle_w = _of_node(cluster, [kind.idle_w for kind in cluster.types])
    peak_w = _of_node(cluster, [kind.peak_w for kind in cluster.types])
    return float(idle_w @ (cluster.gpus * end - busy) + peak_w @ busy) / JOULES_PER_KWH


def load_imbalance(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return how unevenly the nodes were used, between 0 (evenly) and 0.5.

    Formula: population standard deviation over nodes of busy GPU-seconds / (GPUs x end). Jobs
    count as in `busy_gpu_seconds`. 0 for an empty run.
    """
    return float(np.std(busy / (cluster.gpus * end))) if end > 0 else 0.0


def user_slowdowns(table: JobTable, workload: Workload) -> FloatColumn:
    """Return the mean bounded slowdown of each user with a counted job."""
    user = table.of_counted(workload.user)
    total = np.bincount(user, bounded_slowdowns(table, workload))
    jobs = np.bincount(user)
    return total[jobs > 0] / jobs[jobs > 0]


def jain_index(values: FloatColumn) -> float:
    """Return Jain's fairness index, between 1/n (one user takes all) and 1 (all alike).

    Formula: (sum x)^2 / (n x sum x^2) over users; x is the user's mean bounded slowdown, in which
    unfinished jobs are censored and rejected jobs left out. NaN when no job is counted.
    """
    if not values.size:
        return float("nan")
    return float(values.sum() ** 2 / (values.size * (values @ values)))


def mean_queue_length(table: JobTable, workload: Workload) -> float:
    """Return the time average of the number of waiting jobs over [0, end].

    Formula: sum of waits / end. Jobs not started: waiting until the end. Rejected jobs: never in
    the queue. 0 for an empty run.
    """
    return _share(float(waits(table, workload).sum()), table.end)


def max_queue_length(log: Schedule) -> int:
    """Return the largest number of jobs left waiting after the starts of any instant.

    A job that starts at the instant of its submission never counts, nor does a rejected one.
    """
    if not len(log):
        return 0
    change = (log.kind == SUBMIT).view(np.int8)
    change -= (log.kind == START).view(np.int8)
    change -= (log.kind == REJECT).view(np.int8)
    last_of_instant = np.append(log.time[1:] != log.time[:-1], np.True_)
    return int(np.max(change.cumsum(dtype=np.int32), where=last_of_instant, initial=0))


def deadline_miss_rate(table: JobTable, workload: Workload) -> float | None:
    """Return the share of jobs with a deadline that missed it; None when no job has one.

    Formula: jobs with finish > deadline / jobs with a finite deadline. Unfinished jobs: missed
    when the deadline is not after the end; otherwise counted as not missed, which makes the rate
    a lower bound. Rejected jobs: left out.
    """
    deadline = table.of_counted(workload.deadline)
    has_one = np.isfinite(deadline)
    if not has_one.any():
        return None
    finish, deadline = table.of_counted(table.finish)[has_one], deadline[has_one]
    missed = np.where(np.isnan(finish), deadline <= table.end, finish > deadline)
    return float(missed.mean())


def priority_groups(table: JobTable, workload: Workload) -> PriorityGroups:
    """Return the counted jobs grouped by priority.

    Up to `MAX_PRIORITIES` distinct priorities are a group each. More are cut at their quantiles
    into at most `PRIORITY_GROUPS` ranges of about equally many jobs; labels are then ranges.
    """
    priority = table.of_counted(workload.priority)
    if priority.size and priority.min() == priority.max():
        return PriorityGroups([_number(priority[0])], np.zeros(priority.size, dtype=np.int8))
    levels = np.unique(priority)
    if len(levels) <= MAX_PRIORITIES:
        member = np.searchsorted(levels, priority).astype(np.int8)
        return PriorityGroups([_number(level) for level in levels], member)
    shares = np.arange(1, PRIORITY_GROUPS) / PRIORITY_GROUPS
    cuts = np.unique(np.quantile(priority, shares, method="higher"))
    cuts = cuts[cuts > levels[0]]
    labels = []
    for part in np.split(levels, np.searchsorted(levels, cuts)):
        low, high = _number(part[0]), _number(part[-1])
        labels.append(low if low == high else f"{low} to {high}")
    return PriorityGroups(labels, np.searchsorted(cuts, priority, side="right").astype(np.int8))


def _since_submit(instant: FloatColumn, table: JobTable, workload: Workload) -> FloatColumn:
    """Return the counted jobs' instant - submit, with the end where the instant is NaN."""
    values = np.fmin(table.of_counted(instant), table.end)
    values -= table.of_counted(workload.submit)
    return values


def _distributions(
    values: FloatColumn, groups: PriorityGroups
) -> tuple[Distribution, list[Distribution]]:
    """Return the distribution of all values and that of each group. Reorders `values`."""
    if len(groups.labels) == 1:
        whole = distribution(values)
        return whole, [whole]
    parts = [distribution(values[groups.member == k]) for k in range(len(groups.labels))]
    return distribution(values), parts


def _of_node(cluster: Cluster, of_type: list[float]) -> FloatColumn:
    return np.array(of_type, dtype=np.float64)[cluster.gpu_type]


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _number(value: float) -> str:
    """Return the shortest text that reads back as `value`, without a trailing `.0`."""
    text = repr(float(value))
    return text.removesuffix(".0")
