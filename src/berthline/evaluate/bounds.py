"""Bounds: total JCTs that no scheduler can beat, whatever its knowledge, placement or preemption.

Each bound is the least total JCT of a relaxed problem. The relaxed problem allows everything that
the simulator can do, so its optimum is at or below every schedule. The bounds hold for every log of
a simulator because of three facts:

- A job makes progress no faster than on the fastest GPUs it may use. A gang is as fast as its
  slowest node; spread over nodes and racks, beside others on a shared GPU, or after a preemption
  it is never faster. So each job holds its GPUs for at least its *shortest hold*.
- Jobs hold at most all GPUs at once. Parts of a GPU add up to at most one GPU, outages and quotas
  only reduce the GPUs, and jobs without GPUs need none.
- Jobs bound to different pools or GPU types that share no node are bounded separately.

Rejected jobs are not counted, so they are not bounded. Which jobs are rejected does not depend on
the scheduler. Finish times are rounded to float64, so a log may be below the bound by that
rounding.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.schedule import REJECT
from berthline.model.speeds import AS_RECORDED, relative_speed
from berthline.traces.cluster_argument import resolve_cluster

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import FloatColumn, Workload
    from berthline.sim.inputs import Inputs
    from berthline.text_or_path import TextOrPath

Mask = npt.NDArray[np.bool_]


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """A lower bound on the total JCT of some jobs, in seconds, and its parts.

    Attributes:
        total: the bound: the largest part of each group of jobs that share nodes, summed over
            groups.
        mean: total / jobs, a bound on the mean JCT; NaN without jobs.
        jobs: number of jobs.
        run_times: every job alone on the fastest GPUs it may use: the sum of shortest holds.
        srpt: one machine as fast as all GPUs together, which always runs the job with the least
            work left.
        busy_times: the same machine: for each job, the mean time at which its work is done plus
            half of its shortest hold; None with a horizon, where it does not hold.
    """

    total: float
    mean: float
    jobs: int
    run_times: float
    srpt: float
    busy_times: float | None


def jct_lower_bound(
    workload: Workload,
    cluster: Cluster | TextOrPath,
    *,
    counted: Mask | None = None,
    until: float = np.inf,
) -> Bound:
    """Return a lower bound on the total JCT of all schedules of these jobs on this cluster.

    Formula: max(sum of shortest holds; total JCT of SRPT on one machine; sum of mean busy times +
    half the shortest holds) for each group of jobs that share nodes, summed over groups; in
    seconds. The machine does the GPU-seconds of the shortest hold at the speed of all GPUs. Where
    GPUs differ in speed, the bound is also computed with GPUs weighted by speed, and the larger
    value counts.

    Why it holds: SRPT minimises the number of unfinished jobs of one machine at every instant
    (Schrage, Operations Research 16(3), 1968), so the bound also holds for JCTs cut off at a
    horizon and for a subset of the jobs. The mean time at which a job's work is done is at least
    half of its shortest hold before its finish, because the work cannot be done faster. Serving the
    job with the least total work first minimises the sum of these means (Goemans and others, SIAM
    Journal on Discrete Mathematics 15(2), 2002).

    Args:
        workload: the jobs.
        cluster: the nodes and their conditions: a Cluster or a CLUSTER argument.
        counted: which jobs to bound, such as `job_table(...).counted`; None = all but those that
            would be rejected.
        until: the horizon: unfinished jobs count with the time they have spent by then.

    Example:
        >>> import berthline as bl
        >>> jobs = bl.Workload.from_columns(submit=[0, 0, 0], run=[10, 10, 40], gpus=[4, 4, 2])
        >>> jct_lower_bound(jobs, "uniform:1x4").total
        80.0
    """
    cluster = resolve_cluster(cluster)
    inputs = _inputs(workload, cluster)
    if counted is None:
        counted = ~rejected_jobs(workload, cluster)
    jobs = np.flatnonzero(counted & (workload.submit <= until))
    parts = [_bound_of(group, until) for group in _groups(inputs, jobs)]
    total = sum(max(part.run_times, part.srpt, part.busy_times) for part in parts)
    return Bound(
        total=total,
        mean=total / len(jobs) if len(jobs) else np.nan,
        jobs=len(jobs),
        run_times=sum(part.run_times for part in parts),
        srpt=sum(part.srpt for part in parts),
        busy_times=sum(part.busy_times for part in parts) if np.isinf(until) else None,
    )


def gap_to_bound(mean_jct: float, bound: Bound) -> float | None:
    """Return mean JCT / bound - 1: 0.25 = 25 % above the bound; None without jobs.

    The optimum lies between the two, so this is an upper limit of the possible gain, and usually
    far above it.
    """
    return mean_jct / bound.mean - 1 if bound.jobs else None


def rejected_jobs(workload: Workload, cluster: Cluster) -> Mask:
    """Return which jobs a simulator rejects because they do not fit on the empty cluster.

    The simulator itself decides: all jobs are submitted at once and the clock stops.
    """
    import dataclasses

    from berthline.sim.simulate import simulate

    at_once = dataclasses.replace(workload, submit=np.zeros(len(workload)))
    log = simulate(at_once, cluster, "fcfs", knowledge="none", horizon=_AN_INSTANT).log
    rejected = np.zeros(len(workload), np.bool_)
    rejected[log.job[log.kind == REJECT]] = True
    return rejected


_AN_INSTANT = 1e-9


class _Group(NamedTuple):
    """Jobs that share nodes with each other and with no other jobs."""

    submit: FloatColumn
    hold: FloatColumn
    """Shortest hold of each job, seconds."""
    machines: list[tuple[FloatColumn, FloatColumn]]
    """Seconds that each job's work takes on one machine, and the shortest time in which the job's
    own limits allow it. Two entries where GPUs differ in speed."""


class _Parts(NamedTuple):
    run_times: float
    srpt: float
    busy_times: float


def _inputs(workload: Workload, cluster: Cluster) -> Inputs:
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.inputs import prepare

    # The horizon avoids drawing failures, which do not matter here.
    return prepare(
        workload, cluster, Scheduler.parse("fcfs"), knowledge="none", seed=0, horizon=_AN_INSTANT
    )


def _groups(inputs: Inputs, jobs: npt.NDArray[np.intp]) -> list[_Group]:
    """Return the jobs in groups that share no node, with their shortest holds and work."""
    workload, cluster = inputs.workload, inputs.cluster
    may_use = _nodes_of_classes(inputs)
    job_class = inputs.job_class[jobs]
    component = _components(may_use, np.unique(job_class))
    rate = _fastest_rates(inputs, jobs, may_use)
    progress = workload.run[jobs] / rate
    hold = progress + cluster.conditions.start_delay
    gpus = workload.gpu_amount[jobs]
    # In units in which a GPU of speed s does s units of work per second.
    reference = inputs.reference_speed[jobs]
    # A job of unknown type takes as long on every node: it uses least on the slowest.
    reference = np.where(reference == AS_RECORDED, inputs.node_speed.min(), reference)
    weighted = gpus * workload.run[jobs] * reference
    found = []
    for number in np.unique(component[component >= 0]):
        classes = np.flatnonzero(component == number)
        member = np.isin(job_class, classes)
        nodes = may_use[classes].any(axis=0)
        submit, own = workload.submit[jobs][member], hold[member]
        machines = [(gpus[member] * own / cluster.gpus[nodes].sum(), own)]
        speed = inputs.node_speed[nodes]
        if np.ptp(speed) > 0:
            machines.append((weighted[member] / (cluster.gpus[nodes] @ speed), progress[member]))
        found.append(_Group(submit, own, machines))
    return found


def _nodes_of_classes(inputs: Inputs) -> Mask:
    """Return which nodes the jobs of each class may use, including borrowed ones."""
    own = len(inputs.borrow_class)
    borrow = np.where(inputs.borrow_class >= 0, inputs.borrow_class, np.arange(own))
    return inputs.may_use | inputs.may_use[borrow]


def _components(may_use: Mask, classes: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Return a number for each class; classes connected by shared nodes have the same one.

    Each class without jobs has its own number below 0.
    """
    number = -1 - np.arange(len(may_use), dtype=np.int64)
    for label, first in enumerate(classes.tolist()):
        touching = [
            other for other in classes[:label].tolist() if (may_use[other] & may_use[first]).any()
        ]
        number[first] = label
        for other in touching:
            number[number == number[other]] = label
    return number


def _fastest_rates(inputs: Inputs, jobs: npt.NDArray[np.intp], may_use: Mask) -> FloatColumn:
    """Return the fastest rate at which each job can make progress on an empty cluster.

    A gang of g GPUs is as fast as its slowest node. At best it uses the fastest nodes that together
    have g GPUs, less the penalty between nodes; or one node that has g.
    """
    workload, cluster = inputs.workload, inputs.cluster
    rate = np.ones(len(jobs))
    gpus = workload.gpus[jobs]
    for job_class in np.unique(inputs.job_class[jobs]):
        member = np.flatnonzero((inputs.job_class[jobs] == job_class) & (gpus > 0))
        nodes = np.flatnonzero(may_use[job_class])
        nodes = nodes[np.argsort(-inputs.node_speed[nodes], kind="stable")]
        if not (len(member) and len(nodes)):
            continue
        speed, size = inputs.node_speed[nodes], cluster.gpus[nodes]
        together, alone = np.cumsum(size), np.maximum.accumulate(size)
        # Speeds descend, so the first node with enough GPUs is the fastest.
        spread = np.append(speed, speed[-1])[np.searchsorted(together, gpus[member])]
        single = np.append(speed, 0.0)[np.searchsorted(alone, gpus[member])]
        reference = inputs.reference_speed[jobs[member]]
        factor = cluster.conditions.across_nodes
        of_gang = relative_speed(spread, reference) * factor
        of_node = np.where(single > 0, relative_speed(single, reference), 0.0)
        rate[member] = np.maximum(of_node, of_gang)
    return rate


def _bound_of(group: _Group, until: float) -> _Parts:
    hold, rest = group.hold, until - group.submit
    run_times = float(np.minimum(hold, rest).sum())
    srpt, busy_times = 0.0, 0.0
    for work, shortest in group.machines:
        needs_gpus = work > 0
        others = float(np.minimum(hold, rest)[~needs_gpus].sum())
        submit, size = group.submit[needs_gpus], work[needs_gpus]
        srpt = max(srpt, others + srpt_total_jct(submit, size, until=until))
        if np.isinf(until):
            means = least_mean_busy_times(submit, size) - float(submit.sum())
            half = float(shortest[needs_gpus].sum()) / 2
            busy_times = max(busy_times, others + means + half)
    return _Parts(run_times, srpt, busy_times)


def srpt_total_jct(submit: FloatColumn, size: FloatColumn, *, until: float = np.inf) -> float:
    """Return the total JCT of SRPT on one machine, in seconds.

    Args:
        submit: submission times, ascending, none after `until`.
        size: seconds that each job takes on the machine.
        until: jobs unfinished at this time count with the time spent so far.

    Example:
        >>> srpt_total_jct(np.array([0.0, 1.0]), np.array([3.0, 1.0]))
        5.0
    """
    if not len(submit):
        return 0.0
    left: list[float] = []  # a heap; only the smallest job runs, so it stays the smallest
    push, pop = heapq.heappush, heapq.heappop
    finishes = 0.0
    arrivals = submit.tolist()
    for now, then, work in zip(arrivals, arrivals[1:], size.tolist(), strict=False):
        push(left, work)
        spare = then - now
        while left and left[0] <= spare:
            spare -= pop(left)
            finishes += then - spare
        if left:
            left[0] -= spare
    left.append(float(size[-1]))
    last = arrivals[-1] + np.sort(left).cumsum()
    return finishes + float(np.minimum(last, until).sum()) - float(submit.sum())


def least_mean_busy_times(submit: FloatColumn, size: FloatColumn) -> float:
    """Return the least sum, over jobs, of the mean time at which one machine works on a job.

    The job with the smallest total size is served first, however much of it is left.

    Args:
        submit: submission times, ascending.
        size: seconds that each job takes on the machine.

    Example:
        >>> least_mean_busy_times(np.array([0.0, 1.0]), np.array([3.0, 1.0]))
        3.6666666666666665
    """
    if not len(submit):
        return 0.0
    waiting: list[tuple[float, float]] = []  # a heap of (size, seconds left)
    push, pop = heapq.heappush, heapq.heappop
    sum_of_means = 0.0
    arrivals = submit.tolist()
    for now, then, work in zip(arrivals, arrivals[1:], size.tolist(), strict=False):
        push(waiting, (work, work))
        clock = now
        while waiting:
            whole, left = waiting[0]
            if clock + left > then:
                # Jobs are ordered by total size, which does not change, so the heap stays valid.
                waiting[0] = (whole, left - (then - clock))
                sum_of_means += (then - clock) / whole * (clock + then) / 2
                break
            pop(waiting)
            sum_of_means += left / whole * (clock + left / 2)
            clock += left
    waiting.append((float(size[-1]), float(size[-1])))
    wholes, lefts = np.array(sorted(waiting)).T
    ends = arrivals[-1] + lefts.cumsum()
    return sum_of_means + float((lefts / wholes * (ends - lefts / 2)).sum())
