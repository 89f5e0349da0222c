"""From a look to a Snapshot, on which a scheduler decides.

Jobs that are not ours are load on their nodes, as are GPUs that are in use and that no job
explains. Nodes that take no starts are full, or down if nothing runs there. A start that was asked
for and has not been seen yet holds its GPUs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.deploy.systems.contract import (
    BY_US,
    FINISHED,
    HELD,
    RUNNING,
    UP,
    WAITING,
    JobRecord,
    Look,
)
from berthline.model.gpu_types import RECORDED
from berthline.model.snapshot import Snapshot
from berthline.model.workload import Workload
from berthline.sim.snapshots.live import RunningJob, snapshot_of

if TYPE_CHECKING:
    from berthline.deploy.looks.known_jobs import KnownJob, KnownJobs
    from berthline.deploy.looks.live_cluster import LiveCluster
    from berthline.model.cluster import Cluster

_WHOLE = 1000
LOAD = "load"
"""Names of rows of load begin with it."""


class AskedStart(NamedTuple):
    """A start that was asked for and has not been seen yet."""

    time: float
    nodes: Mapping[str, int]


class LiveJob(NamedTuple):
    """A job of a look and its number."""

    known: KnownJob
    record: JobRecord

    @property
    def may_start(self) -> bool:
        """Whether we may decide about it now."""
        job = self.record
        return (
            job.ours
            and job.is_eligible
            and job.gpu_milli == _WHOLE
            and job.gpus is not None
            and job.gpus > 0
            and (job.state == WAITING or (job.state == HELD and job.held_by == BY_US))
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """A look, in the terms of schedulers.

    Attributes:
        look: the look.
        jobs: its jobs, by number.
        snapshot: the state.
        rows: the number of each row of the snapshot; -1 = load.
        node_names: names of the nodes, by id.
        origin: the time of the system's clock that is 0 in the snapshot.
    """

    look: Look
    jobs: Mapping[int, LiveJob]
    snapshot: Snapshot
    rows: tuple[int, ...]
    node_names: tuple[str, ...]
    origin: float


def jobs_of(look: Look, known: KnownJobs) -> dict[int, LiveJob]:
    """Return the jobs of a look by their numbers."""
    found = {}
    for record in look.jobs:
        job = known.find(record, look.time)
        found[job.number] = LiveJob(job, record)
    return found


def known_jobs_of(look: Look, known: KnownJobs) -> dict[int, LiveJob]:
    """Return the jobs of a look that is not journaled: new ones have no number yet."""
    found = {}
    for record in look.jobs:
        job = known.peek(record)
        if job is not None:
            found[job.number] = LiveJob(job, record)
    return found


def see(
    look: Look,
    jobs: Mapping[int, LiveJob],
    nodes: LiveCluster,
    *,
    origin: float,
    asked: Mapping[int, AskedStart] | None = None,
    scheduler: str = "",
    knowledge: str = "estimate",
    seed: int = 0,
) -> Seen:
    """Return what a scheduler sees of a look that does not contradict itself.

    Args:
        look: the look, in order.
        jobs: its jobs.
        nodes: the nodes so far.
        origin: the time of the system's clock that becomes 0.
        asked: starts that hold their GPUs, by number of job. They fit beside the running jobs.
        scheduler: who decides.
        knowledge: what it knows.
        seed: of random draws.
    """
    cluster = nodes.follow(look)
    now = look.time - origin
    rows: list[_Row] = []
    explained = [0] * cluster.num_nodes
    promised = [0] * cluster.num_nodes
    asked = asked or {}
    for number, job in jobs.items():
        record = job.record
        if record.state == FINISHED:
            continue
        submit = max(job.known.submitted - origin, 0.0)
        if record.state == RUNNING:
            if not _is_readable(record):
                continue  # load, see `_add_load`
            held = {nodes.ids[name]: gpus for name, gpus in record.nodes.items() if gpus}
            for node, gpus in held.items():
                explained[node] += gpus
            start = min(max((record.started or 0.0) - origin, submit), now)
            rows.append(_Row(min(submit, start), number, job, start, held))
        elif number in asked:
            if not asked[number].nodes:
                continue  # a start that is being taken back
            held = {nodes.ids[name]: gpus for name, gpus in asked[number].nodes.items()}
            for node, gpus in held.items():
                promised[node] += gpus
            start = min(max(asked[number].time - origin, submit), now)
            rows.append(_Row(submit, number, job, start, held))
        elif job.may_start:
            rows.append(_Row(min(submit, now), number, job, math.nan, {}))
    down = _add_load(look, jobs, nodes, cluster, explained, promised, rows)
    rows.sort(key=lambda row: (row.submit, row.number))
    workload, running = _columns(rows, origin)
    snapshot = snapshot_of(
        workload,
        cluster,
        now,
        running=running,
        down=down,
        scheduler=scheduler,
        knowledge=knowledge,
        seed=seed,
    )
    return Seen(
        look=look,
        jobs=jobs,
        snapshot=snapshot,
        rows=tuple(row.number if row.job is not None else -1 for row in rows),
        node_names=tuple(node.name for node in nodes.nodes),
        origin=origin,
    )


def _is_readable(record: JobRecord) -> bool:
    """Whether a running job can be a row: it holds the whole GPUs that it asks for."""
    return record.gpu_milli == _WHOLE and 0 < sum(record.nodes.values()) == record.gpus


class _Row(NamedTuple):
    submit: float
    number: int
    job: LiveJob | None
    start: float
    held: dict[int, int]


def _add_load(
    look: Look,
    jobs: Mapping[int, LiveJob],
    nodes: LiveCluster,
    cluster: Cluster,
    explained: list[int],
    promised: list[int],
    rows: list[_Row],
) -> list[int]:
    """Add what is in use and explained by no row; return the nodes that are down and empty."""
    shown = {node.name: node for node in look.nodes}
    other = [0] * cluster.num_nodes
    for job in jobs.values():
        if job.record.state == RUNNING and not _is_readable(job.record):
            for name, gpus in job.record.nodes.items():
                other[nodes.ids[name]] += gpus
    down = []
    for node, name in enumerate(nodes.ids):
        record = shown.get(name)
        size = int(cluster.gpus[node])
        free = size - explained[node] - promised[node]
        in_use = other[node]
        if record is not None and record.gpus_in_use is not None:
            # A start that has happened already is in use: it is not counted twice.
            in_use = max(in_use, record.gpus_in_use - explained[node] - promised[node])
        if record is None or record.state != UP or record.gpus == 0:
            if free == size and not in_use:
                down.append(node)
                continue
            in_use = free
        in_use = min(max(in_use, 0), max(free, 0))
        if in_use:
            rows.append(_Row(0.0, -1 - node, None, 0.0, {node: in_use}))
    return down


def _columns(
    rows: list[_Row], origin: float
) -> tuple[Workload, dict[int, RunningJob | tuple[float, Mapping[int, int]]]]:
    """Return the rows as a workload, and those that run."""
    users: dict[str, int] = {}
    pools: dict[str, int] = {"": -1}
    types: dict[str, int] = {"": -1}
    running: dict[int, RunningJob | tuple[float, Mapping[int, int]]] = {}
    numbers: list[tuple[float, ...]] = []
    for at, row in enumerate(rows):
        if not math.isnan(row.start):
            running[at] = RunningJob(row.start, row.held)
        if row.job is None:
            size = sum(row.held.values())
            user = users.setdefault(LOAD, len(users))
            numbers.append((size, math.nan, 0, 0, 0.0, math.inf, user, -1, -1))
            continue
        job = row.job.record
        numbers.append(
            (
                job.gpus or 0,
                math.nan if job.estimate is None else job.estimate,
                job.cpus,
                job.memory_mib,
                job.priority,
                math.inf if job.deadline is None else job.deadline - origin,
                users.setdefault(job.user, len(users)),
                pools.setdefault(job.pool, len(pools) - 1),
                types.setdefault(job.gpu_types, len(types) - 1),
            )
        )
    columns = zip(*numbers, strict=True) if numbers else iter([()] * 9)
    gpus, estimate, cpus, memory, priority, deadline, user_of, pool, gpu_types = map(list, columns)
    workload = Workload.from_columns(
        submit=[row.submit for row in rows],
        run=np.full(len(rows), np.nan),
        gpus=gpus,
        estimate=estimate,
        cpus=cpus,
        memory_mib=memory,
        priority=priority,
        deadline=deadline,
        user=user_of,
        pool=pool,
        gpu_types=gpu_types,
        user_names=tuple(users) or ("none",),
        pool_names=tuple(pools)[1:],
        gpu_type_sets=tuple(types)[1:],
        reference_type=RECORDED,
        names=[str(row.number) if row.job is not None else f"{LOAD}{row.number}" for row in rows],
        name="live",
        rebase=False,
        of_snapshot=True,
    )
    return workload, running


_HASHED = ("submit", "gpus", "estimate", "cpus", "memory_mib", "priority", "deadline")


def snapshot_hash(snapshot: Snapshot) -> str:
    """Return a hash of everything that a decision on a live snapshot depends on."""
    work, cluster = snapshot.workload, snapshot.cluster
    digest = hashlib.sha256(f"{snapshot.now!r} {snapshot.knowledge} {snapshot.seed}".encode())
    for name in (*_HASHED, "user", "pool", "gpu_types"):
        digest.update(np.ascontiguousarray(getattr(work, name)).data)
    texts = (work.user_names, work.pool_names, work.gpu_type_sets, cluster.pool_names)
    digest.update(repr(texts).encode())
    digest.update(repr((tuple(kind.name for kind in cluster.types), cluster.quotas)).encode())
    for column in (cluster.gpus, cluster.cpus, cluster.memory_mib, cluster.gpu_type, cluster.pool):
        digest.update(np.ascontiguousarray(column).data)
    digest.update(snapshot.log.sha256().encode())
    return digest.hexdigest()
