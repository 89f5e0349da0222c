"""LogExcerpt: a period of a log, ready to be simulated from the state in which it began.

A log does not begin on an empty cluster. Jobs that ran when the excerpt begins run for the rest of
their time, jobs that waited then wait at the head of the queue, and all others are submitted when
they first became eligible in reality. Every scheduler begins in the same state.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.evaluate.metrics.job_table import REJECTED, job_table
from berthline.evaluate.metrics.stretches import stretches
from berthline.model.cluster import Cluster
from berthline.model.history import NOT_RECORDED
from berthline.model.schedule import START, SUBMIT, WHOLE_GPUS, Schedule
from berthline.model.snapshot import Memory, Snapshot
from berthline.model.workload import WHOLE_GPU, FloatColumn, Workload
from berthline.sim.snapshots.take import take_jobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.model.history import History

HEAD = 2.0
"""Simulated time at which the excerpt begins: running jobs start at 0, waiting ones come at 1."""

Nodes = npt.NDArray[np.int64]

SHORTEST_ESTIMATE = 60.0
"""The least estimate of a running job, in seconds: its limit may have passed."""


@dataclasses.dataclass(frozen=True, eq=False)
class LogExcerpt:
    """Jobs to simulate, and what was recorded of them.

    Attributes:
        workload: the jobs, in the order of their simulated submission.
        since: when each became eligible, on the log's clock.
        recorded: recorded start - since, in seconds.
        running: number of jobs, the first ones, that were running when the excerpt begins.
        queued: number of jobs, the next ones, that were waiting then.
        begin: time of the log at which the excerpt begins.
        rows: the index of each job in the log.
        held: for each running job, its nodes in the cluster; empty = they are not known.
    """

    workload: Workload
    since: FloatColumn  # (num_jobs,)
    recorded: FloatColumn  # (num_jobs,)
    running: int
    queued: int
    begin: float
    rows: npt.NDArray[np.int64]  # (num_jobs,)
    held: tuple[Nodes, ...]  # (running,)


@dataclasses.dataclass(frozen=True, eq=False)
class ExcerptRun:
    """The outcome of an excerpt under a scheduler.

    Attributes:
        wait: of each job, in seconds.
        jct: submission to finish of each job, in seconds.
        rejected: jobs that the cluster can never run; their times have no meaning.
        busy: GPU-seconds that jobs held within the given span.
    """

    wait: FloatColumn  # (num_jobs,)
    jct: FloatColumn  # (num_jobs,)
    rejected: npt.NDArray[np.bool_]  # (num_jobs,)
    busy: float


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """Jobs and nodes that are independent of all others: a pool, or everything.

    Attributes:
        rows: the jobs, by their index in the excerpt.
        workload: these jobs.
        cluster: the nodes.
        held: for each of the first jobs, which are running, its nodes; empty = they are not known.
    """

    rows: npt.NDArray[np.int64]
    workload: Workload
    cluster: Cluster
    held: tuple[Nodes, ...]


def eligible_since(workload: Workload) -> FloatColumn:
    """Return when each job became eligible: its submission, or later if that is recorded.

    A job may wait for another job, or for a date; no scheduler can start it earlier.
    """
    history = workload.history
    if history is None or history.eligible is None:
        return workload.submit
    later = np.fmax(workload.submit, history.eligible)
    return np.fmax(workload.submit, np.fmin(later, history.start))


def recorded_starts(workload: Workload) -> FloatColumn:
    """Return the recorded start of each job; NaN = not recorded."""
    if workload.history is None:
        return np.full(len(workload), np.nan)
    return workload.history.start


def make_excerpt(
    workload: Workload,
    pool: npt.NDArray[np.int32],
    pool_names: tuple[str, ...],
    nodes: Sequence[npt.NDArray[np.int64]] = (),
    *,
    begin: float,
    end: float,
) -> LogExcerpt:
    """Return the excerpt of a log from `begin` to `end`, in seconds of its clock.

    CPUs and memory are ignored: a log does not say what nodes have of them.

    Args:
        workload: the jobs of the log, with their history.
        pool: which pool each job belongs to; -1 = any.
        pool_names: the names of the pools.
        nodes: for each list of nodes in the history, the nodes of the cluster: jobs that run when
            the excerpt begins hold them.
        begin: where the excerpt begins.
        end: jobs that became eligible at this time or later are left out.

    Raises:
        TraceError: no start of any job is recorded.
    """
    history = workload.history
    if history is None or not np.isfinite(history.start).any():
        raise TraceError(
            "the log does not say when jobs started",
            where=workload.name,
            expected="recorded starts: sacct with Start, SWF with wait times, ...",
            hint="sacct -aXP -o JobID,User,Partition,State,Submit,Eligible,Start,End,ElapsedRaw,"
            "Timelimit,Priority,AllocTRES,NodeList",
        )
    since = eligible_since(workload)
    start = np.fmax(history.start, since)  # clocks may disagree: no negative waits
    over = history.start + workload.run
    known = np.isfinite(start)
    running = np.flatnonzero(known & (history.start < begin) & (over > begin))
    queued = np.flatnonzero(known & (since < begin) & (history.start >= begin))
    later = np.flatnonzero(known & (since >= begin) & (since < end) & (history.start >= begin))
    # Wide jobs first, so that what fitted in reality also fits here.
    running = running[np.argsort(-workload.gpus[running], kind="stable")]
    queued = queued[np.argsort(since[queued], kind="stable")]
    later = later[np.argsort(since[later], kind="stable")]
    rows = np.concatenate([running, queued, later])
    if not len(rows):
        raise TraceError(
            "no job of the log is in this period",
            where=workload.name,
            expected=f"a period between 0 and {float(since.max()):.0f} s of the log",
        )
    first = len(running)
    run, estimate = workload.run[rows].copy(), workload.estimate[rows].copy()
    run[:first] = over[running] - begin + HEAD
    spent = begin - HEAD - history.start[running]
    estimate[:first] = np.maximum(estimate[:first] - spent, SHORTEST_ESTIMATE)
    submit = since[rows] - begin + HEAD
    submit[:first] = 0.0
    submit[first : first + len(queued)] = HEAD / 2
    priority = workload.priority
    if history.priority is not None and np.isfinite(history.priority).any():
        priority = np.nan_to_num(history.priority, nan=float(np.nanmedian(history.priority)))
    replayed = Workload.from_columns(
        submit=submit,
        run=run,
        gpus=workload.gpus[rows],
        gpu_milli=workload.gpu_milli[rows],
        estimate=estimate,
        priority=priority[rows],
        user=workload.user[rows],
        user_names=workload.user_names,
        pool=pool[rows],
        pool_names=pool_names,
        ran_on=workload.ran_on[rows],
        ran_on_types=workload.ran_on_types,
        reference_type=workload.reference_type,
        name=workload.name,
        rebase=False,
    )
    return LogExcerpt(
        workload=replayed,
        since=since[rows],
        recorded=(start - since)[rows],
        running=first,
        queued=len(queued),
        begin=begin,
        rows=rows,
        held=_held(history, running, nodes),
    )


def nodes_of_pool(cluster: Cluster, pool: int) -> tuple[Cluster, Nodes]:
    """Return the nodes of a pool as a separate cluster without pools, and which nodes they are."""
    rows = np.flatnonzero(cluster.pool == pool)
    columns = ("gpus", "cpus", "memory_mib", "gpu_type", "rack", "mtbf", "mttr")
    alone = dataclasses.replace(
        cluster,
        **{name: getattr(cluster, name)[rows] for name in columns},
        pool=np.full(len(rows), -1, np.int32),
        pool_names=(),
    )
    return alone, rows


def parts_of(excerpt: LogExcerpt, clusters: Sequence[tuple[Cluster, Nodes]]) -> list[Part]:
    """Return the parts that can be simulated independently.

    Args:
        excerpt: the jobs.
        clusters: one for each pool of the jobs, in their order, with its nodes; or a single one for
            all jobs.
    """
    workload = excerpt.workload
    if len(clusters) == 1:
        return [Part(np.arange(len(workload)), workload, clusters[0][0], excerpt.held)]
    found = []
    for index, (cluster, nodes) in enumerate(clusters):
        rows = np.flatnonzero(workload.pool == index)
        if len(rows):
            own = [excerpt.held[row] for row in rows[rows < excerpt.running].tolist()]
            # Nodes of another pool are not those of a job of this one.
            held = tuple(np.searchsorted(nodes, each[np.isin(each, nodes)]) for each in own)
            found.append(Part(rows, _without_pools(workload, rows), cluster, held))
    return found


def run_excerpt(
    excerpt: LogExcerpt,
    parts: Sequence[Part],
    scheduler: str,
    *,
    knowledge: str,
    seed: int,
    span: tuple[float, float],
) -> ExcerptRun:
    """Return the outcome of an excerpt under a scheduler.

    Args:
        excerpt: the jobs.
        parts: from `parts_of`; each is simulated on its own.
        scheduler: its text.
        knowledge: what it knows of run times.
        seed: for random decisions of the scheduler.
        span: times of the log between which GPU-seconds are counted.
    """
    jobs = len(excerpt.workload)
    wait, jct = np.full(jobs, np.nan), np.full(jobs, np.nan)
    rejected = np.zeros(jobs, np.bool_)
    low, high = (time - excerpt.begin + HEAD for time in span)
    busy = 0.0
    for part in parts:
        log = _log_of(part, scheduler, knowledge=knowledge, seed=seed)
        table = job_table(log, part.workload)
        wait[part.rows] = table.start - part.workload.submit
        jct[part.rows] = table.finish - part.workload.submit
        rejected[part.rows] = table.status == REJECTED
        ran = stretches(log, table)
        seconds = np.clip(ran.stop, low, high) - np.clip(ran.begin, low, high)
        busy += float(seconds @ part.workload.gpu_amount[ran.job])
    return ExcerptRun(wait, jct, rejected, busy)


def _log_of(part: Part, scheduler: str, *, knowledge: str, seed: int) -> Schedule:
    """Return the log of a part, which begins with the running jobs on their nodes."""
    from berthline.sim.simulate import simulate
    from berthline.sim.snapshots.resume import resume

    if not any(len(nodes) for nodes in part.held):
        # Where running jobs are is not known: they start first, wherever they fit.
        return simulate(part.workload, part.cluster, scheduler, knowledge=knowledge, seed=seed).log
    later = np.arange(len(part.held), len(part.workload))
    return resume(
        state_at_begin(part),
        scheduler,
        arrivals=take_jobs(part.workload, later) if len(later) else None,
        knowledge=knowledge,
        seed=seed,
    ).log


def state_at_begin(part: Part) -> Snapshot:
    """Return the state in which a part begins: running jobs hold GPUs of their nodes.

    A job waits if its nodes are not known, or have too few free GPUs: the log does not say how many
    GPUs a job had on each of its nodes, and an inferred node may have too few.
    """
    free = part.cluster.gpus.astype(np.int64)
    count = len(part.held)
    jobs = take_jobs(part.workload, np.arange(count))
    starts: list[int] = []
    shares: list[tuple[int, int]] = []
    firsts: list[int] = []
    for job, nodes in enumerate(part.held):
        is_whole = jobs.gpu_milli[job] == WHOLE_GPU and jobs.gpus[job] > 0
        found = _spread(int(jobs.gpus[job]), nodes, free) if is_whole else []
        if found:
            starts.append(job)
            firsts.append(len(shares))
            shares += found
            for node, gpus in found:
                free[node] -= gpus
    ids = np.concatenate([np.arange(count), starts]).astype(np.int32)
    table = np.array(shares, np.int32).reshape(-1, 2)
    return Snapshot(
        workload=jobs,
        cluster=part.cluster,
        log=Schedule(
            time=np.zeros(len(ids)),
            kind=np.repeat([SUBMIT, START], [count, len(starts)]).astype(np.uint8),
            job=ids,
            detail=np.concatenate([np.full(count, -1), firsts]).astype(np.int32),
            alloc_node=np.ascontiguousarray(table[:, 0]),
            alloc_gpus=np.ascontiguousarray(table[:, 1]),
            alloc_slot=np.full(len(shares), WHOLE_GPUS, np.int32),
            horizon=HEAD / 4,
            decisions=0,
        ),
        now=HEAD / 4,
        number=np.arange(count),
        memory=Memory(max_priority=max(1.0, float(jobs.priority.max(initial=1.0)))),
    )


def _spread(gpus: int, nodes: Nodes, free: Nodes) -> list[tuple[int, int]]:
    """Return how many GPUs a job has on each of its nodes, as evenly as they have free ones."""
    if not len(nodes) or free[nodes].sum() < gpus or (free[nodes] < 1).any():
        return []
    found = []
    left = gpus
    # Nodes with few free GPUs first: the others take what those lack.
    order = nodes[np.argsort(free[nodes], kind="stable")].tolist()
    for place, node in enumerate(order):
        share = min(-(-left // (len(order) - place)), int(free[node]))
        if share:
            found.append((node, share))
        left -= share
    return sorted(found) if not left else []


def _held(
    history: History, running: npt.NDArray[np.int64], nodes: Sequence[Nodes]
) -> tuple[Nodes, ...]:
    """Return the nodes that each running job holds; none = not known."""
    none = np.zeros(0, np.int64)
    if history.nodes is None or not nodes:
        return (none,) * len(running)
    lists = history.nodes[running].tolist()
    return tuple(none if each == NOT_RECORDED else np.unique(nodes[each]) for each in lists)


def _without_pools(workload: Workload, rows: npt.NDArray[np.int64]) -> Workload:
    return Workload.from_columns(
        submit=workload.submit[rows],
        run=workload.run[rows],
        gpus=workload.gpus[rows],
        gpu_milli=workload.gpu_milli[rows],
        estimate=workload.estimate[rows],
        priority=workload.priority[rows],
        user=workload.user[rows],
        user_names=workload.user_names,
        ran_on=workload.ran_on[rows],
        ran_on_types=workload.ran_on_types,
        reference_type=workload.reference_type,
        name=workload.name,
        rebase=False,
    )
