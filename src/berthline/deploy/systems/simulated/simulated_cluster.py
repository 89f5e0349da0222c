"""SimulatedCluster: a cluster with a native scheduler of its own, which takes actions from outside.

Between two instants the native simulator runs it. Without actions its log is that of one simulation
of the same jobs, row for row. Jobs that are held are hidden from the native scheduler.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.deploy.systems.contract import (
    BY_US,
    CLOSED,
    DONE,
    DOWN,
    FINISHED,
    HELD,
    REFUSED,
    RUNNING,
    UP,
    WAITING,
    Action,
    ActionKind,
    JobRecord,
    Look,
    NodeRecord,
    Outcome,
    QuotaRecord,
)
from berthline.deploy.systems.simulated.snapshot_edits import add_row, with_job, without_job
from berthline.errors import ConfigError
from berthline.model.gpu_types import type_names
from berthline.model.schedule import (
    FINISH,
    FOR_ANOTHER,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    REJECT,
    REJECT_REASONS,
    RESUME,
    START,
    Schedule,
)
from berthline.model.snapshot import Memory, Snapshot
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import last_failure
from berthline.sim.snapshots.live import snapshot_of
from berthline.sim.snapshots.resume import resume
from berthline.sim.snapshots.take import count_before_decision, take_jobs, take_snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    import numpy.typing as npt

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

LISTED_SECONDS = 300.0
"""Finished jobs are listed for so long."""
FUTURE = "future"
_WORDS = {WAITING: "PENDING", HELD: "HELD", RUNNING: "RUNNING", FINISHED: "COMPLETED"}


@dataclasses.dataclass
class SimulatedJob:
    """What the system knows about a job.

    Attributes:
        number: its row in the workload.
        id: its id, which may have been another job's before.
        state: one of JOB_STATES, or FUTURE.
        started: when it last started.
        nodes: GPUs on each node, by node id.
        starts: how often it started.
        finished: when it ended.
        away_until: it may not start before, after a preemption.
        stash: the rows about it while it is held.
        reason: why it waits or how it ended.
    """

    number: int
    id: str = ""
    state: str = FUTURE
    started: float = math.nan
    nodes: dict[int, int] = dataclasses.field(default_factory=dict)
    starts: int = 0
    finished: float = math.nan
    away_until: float = 0.0
    stash: Schedule | None = None
    reason: str = ""


class SimulatedCluster:
    """A cluster whose time passes by `advance`.

    Args:
        workload: the jobs; they arrive at their times.
        cluster: the nodes, with conditions, quotas and outages.
        native: the scheduler that starts jobs that are not held.
        knowledge: what it knows about run times.
        seed: of random draws.
        pools: the pools whose jobs are ours; None = all.
        ids: ids are used again after this number of jobs; None = never.
        closed: nodes that are drained, by id.

    Raises:
        ConfigError: the simulation has parts that no action from outside can be added to.
    """

    def __init__(
        self,
        workload: Workload,
        cluster: Cluster,
        native: str = "static-priority+easy",
        *,
        knowledge: str = "estimate",
        seed: int = 0,
        pools: Collection[str] | None = None,
        ids: int | None = None,
        closed: Collection[int] = (),
    ) -> None:
        _check(workload, cluster)
        self.workload, self.cluster = workload, cluster
        self.scheduler = Scheduler.parse(native)
        self.ranks = native.startswith("static-priority")
        self.jobs = [SimulatedJob(number) for number in range(len(workload))]
        self.now = 0.0
        self.holds_until = -math.inf
        """New jobs of ours are held until this time, as a hook of a real system does."""
        self.closed = set(closed)
        self._down: set[int] = set()
        self._ids, self._next, self._last_id = ids, 0, 0
        self._by_id: dict[str, SimulatedJob] = {}
        self._live: dict[int, SimulatedJob] = {}
        self._records: dict[int, JobRecord] = {}
        self._priority = workload.priority.copy()
        self._ours = _ours(workload, pools)
        self._types = [
            frozenset(type_names(text)) if text else None for text in workload.gpu_type_sets
        ]
        self.truth: list[tuple[float, int, int, dict[int, int]]] = []
        """What really happened: (time, kind, job, GPUs on each node)."""
        empty = snapshot_of(
            take_jobs(workload, np.arange(0)),
            cluster,
            0.0,
            scheduler=str(self.scheduler),
            knowledge=knowledge,
            seed=seed,
        )
        until = last_failure(workload.submit, workload.run)
        self.state: Snapshot = dataclasses.replace(
            empty, memory=dataclasses.replace(Memory(), failures_until=until)
        )
        self._arrive_now()

    @property
    def is_over(self) -> bool:
        """Whether every job has come and gone."""
        return self._next == len(self.jobs) and all(
            job.state == FINISHED for job in self._live.values()
        )

    def advance(self, to: float) -> None:
        """Let time pass."""
        while self.now < to:
            until = to
            if self.now < self.holds_until < to:
                until = self.holds_until
            self._step(until)

    def _arrive_now(self) -> None:
        """Add the jobs that are submitted at this very instant."""
        while self._next < len(self.jobs) and float(self.workload.submit[self._next]) <= self.now:
            job = self._submit(self._next)
            if job.state == WAITING:
                self._show(job)
            self._next += 1

    def _submit(self, number: int) -> SimulatedJob:
        job = self.jobs[number]
        while not job.id or (job.id in self._by_id and self._by_id[job.id].state != FINISHED):
            self._last_id = self._last_id % (self._ids or 2**62) + 1
            job.id = str(self._last_id)
        submit = float(self.workload.submit[number])
        is_held = bool(self._ours[number]) and submit < self.holds_until
        job.state = HELD if is_held else WAITING
        self._by_id[job.id] = job
        self._live[number] = job
        return job

    def _step(self, until: float) -> None:
        """Let the native simulator run, without actions."""
        submit, numbers = self.workload.submit, []
        while self._next < len(self.jobs) and float(submit[self._next]) <= until:
            if self._submit(self._next).state == WAITING:
                numbers.append(self._next)
            self._next += 1
        before, first = self.state, self._next
        jobs = None
        if numbers:
            jobs = take_jobs(
                dataclasses.replace(self.workload, priority=self._priority), np.array(numbers)
            )
        # Arrivals get the numbers after those of all earlier jobs.
        memory = dataclasses.replace(before.memory, jobs=first - before.num_jobs)
        before = dataclasses.replace(before, memory=memory)
        result = resume(before, self.scheduler, arrivals=jobs, horizon=until)
        known = [*before.number.tolist(), *numbers]
        self._record(result.log, len(before.log), known, until)
        found = take_snapshot(result, until)
        number = np.where(
            found.number < first,
            found.number,
            np.array([*numbers, -1])[np.clip(found.number - first, -1, len(numbers))],
        )
        self.state = dataclasses.replace(found, number=number)
        self.now = until
        for job in [job for job in self._live.values() if job.state == FINISHED]:
            if job.finished < until - LISTED_SECONDS:
                del self._live[job.number]
                self._records.pop(job.number, None)
        for job in self._live.values():
            if job.state == WAITING and job.away_until and job.away_until <= until:
                self._changed(job)

    def _record(self, log: Schedule, first: int, known: list[int], until: float) -> None:
        """Follow what the native simulator did."""
        for row in range(first, count_before_decision(log, until)):
            time, kind = float(log.time[row]), int(log.kind[row])
            if kind in (NODE_DOWN, NODE_UP):
                node = int(log.detail[row])
                (self._down.add if kind == NODE_DOWN else self._down.discard)(node)
                continue
            job = self.jobs[known[int(log.job[row])]]
            if kind in (START, RESUME):
                self._started(job, time, log.allocation(row))
            elif kind in (FINISH, REJECT):
                job.state, job.finished = FINISHED, time
                job.reason = REJECT_REASONS[int(log.detail[row])] if kind == REJECT else ""
                self.truth.append((time, kind, job.number, {}))
            elif kind == PREEMPT:
                self._stopped(job, time)
            self._changed(job)

    def _started(self, job: SimulatedJob, time: float, nodes: dict[int, int]) -> None:
        job.state, job.started, job.nodes = RUNNING, time, nodes
        job.starts += 1
        job.reason = ""
        self.truth.append((time, START, job.number, nodes))

    def _stopped(self, job: SimulatedJob, time: float) -> None:
        job.state, job.started, job.nodes = WAITING, math.nan, {}
        job.away_until = time + self.cluster.conditions.requeue_delay
        self.truth.append((time, PREEMPT, job.number, {}))

    def _changed(self, job: SimulatedJob) -> None:
        self._records.pop(job.number, None)

    def _row(self, job: SimulatedJob) -> int:
        return int(np.searchsorted(self.state.number, job.number))

    def _show(self, job: SimulatedJob) -> int:
        """Put a job into the state in which the native scheduler decides; return its row."""
        jobs = dataclasses.replace(self.workload, priority=self._priority)
        state, row = with_job(self.state, jobs, job.number, job.stash)
        job.stash = None
        self.state = dataclasses.replace(state, decides=True)
        return row

    def _hide(self, job: SimulatedJob) -> None:
        state, job.stash = without_job(self.state, self._row(job))
        self.state = dataclasses.replace(state, decides=True)

    # What can be done from outside.

    def look(self) -> Look:
        """Return what the system says of itself."""
        held = [0] * self.cluster.num_nodes
        jobs = []
        for job in self._live.values():
            record = self._records.get(job.number)
            if record is None:
                record = self._records[job.number] = self._record_of(job)
            jobs.append(record)
            if job.state == RUNNING:
                for node, gpus in job.nodes.items():
                    held[node] += gpus
        return Look(
            time=self.now,
            jobs=tuple(jobs),
            nodes=tuple(self._node_record(node, held[node]) for node in range(len(held))),
            quotas=tuple(
                QuotaRecord(gpus=int(q.gpus), pool=q.pool, user=q.user, gpu_type=q.gpu_type)
                for q in self.cluster.quotas
            ),
        )

    def _node_record(self, node: int, in_use: int) -> NodeRecord:
        cluster, pool = self.cluster, int(self.cluster.pool[node])
        state = DOWN if node in self._down else CLOSED if node in self.closed else UP
        return NodeRecord(
            name=node_name(node),
            gpus=int(cluster.gpus[node]),
            state=state,
            gpus_in_use=in_use,
            gpu_type=cluster.types[int(cluster.gpu_type[node])].name,
            cpus=int(cluster.cpus[node]),
            memory_mib=int(cluster.memory_mib[node]),
            pool=cluster.pool_names[pool] if pool >= 0 else "",
            words=state,
        )

    def _record_of(self, job: SimulatedJob) -> JobRecord:
        work, number = self.workload, job.number
        estimate, deadline = float(work.estimate[number]), float(work.deadline[number])
        pool, types = int(work.pool[number]), int(work.gpu_types[number])
        is_running = job.state == RUNNING
        return JobRecord(
            id=job.id,
            submitted=float(work.submit[number]),
            state=job.state,
            ours=bool(self._ours[number]),
            gpus=int(work.gpus[number]),
            gpu_types=work.gpu_type_sets[types] if types >= 0 else "",
            pool=work.pool_names[pool] if pool >= 0 else "",
            cpus=int(work.cpus[number]),
            memory_mib=int(work.memory_mib[number]),
            estimate=None if math.isnan(estimate) else estimate,
            priority=float(self._priority[number]),
            deadline=None if math.isinf(deadline) else deadline,
            user=work.user_names[int(work.user[number])],
            name=f"job {number}" if work.names is None else str(work.names[number]),
            held_by=BY_US if job.state == HELD else "",
            is_eligible=job.away_until <= self.now,
            started=job.started if is_running else None,
            nodes={node_name(node): gpus for node, gpus in job.nodes.items()} if is_running else {},
            finished=None if math.isnan(job.finished) else job.finished,
            exit_code=0 if job.state == FINISHED and not job.reason else None,
            restarts=max(job.starts - 1, 0),
            words=_WORDS[job.state],
            reason=job.reason,
        )

    def do(self, actions: Sequence[Action]) -> list[Outcome]:
        """Do these things now."""
        return [self._do(action) for action in actions]

    def _do(self, action: Action) -> Outcome:
        job = self._by_id.get(action.job)
        if job is None or job.number not in self._live:
            return Outcome(REFUSED, f"no job {action.job}")
        if float(self.workload.submit[job.number]) != action.submitted:
            return Outcome(REFUSED, f"job {action.job} was submitted at another time")
        if job.state == FINISHED:
            return Outcome(REFUSED, f"job {action.job} is over")
        words = {
            ActionKind.START: self._start,
            ActionKind.PREEMPT: self._preempt,
            ActionKind.HOLD: self._hold,
            ActionKind.RELEASE: self._release,
            ActionKind.RANK: self._rank,
        }[action.kind](job, action)
        return Outcome(REFUSED, words) if words else Outcome(DONE)

    def _start(self, job: SimulatedJob, action: Action) -> str:
        try:
            nodes = {node_id(name): gpus for name, gpus in action.nodes.items()}
        except ValueError:
            return "invalid node name"
        if job.state == RUNNING:
            return "" if nodes == job.nodes else f"job {job.id} runs elsewhere"
        if why := self._why_not(job, nodes):
            return why
        row = self._show(job) if job.state == HELD else self._row(job)
        log = self.state.log
        kind = RESUME if (log.is_start & (log.job == row)).any() else START
        log = add_row(log, self.now, kind, row, gpus=nodes)
        self.state = dataclasses.replace(self.state, log=log, decides=True)
        self._started(job, self.now, nodes)
        self._changed(job)
        return ""

    def _why_not(self, job: SimulatedJob, nodes: dict[int, int]) -> str:
        """Return why a job cannot start on these nodes; empty = it can."""
        work, cluster, number = self.workload, self.cluster, job.number
        gpus, pool, types = (
            int(work.gpus[number]),
            int(work.pool[number]),
            int(work.gpu_types[number]),
        )
        if sum(nodes.values()) != gpus or not nodes:
            return f"job {job.id} asks for {gpus} GPUs"
        if job.away_until > self.now:
            return f"job {job.id} may not begin before {job.away_until:g}"
        free = self._free()
        for node, wanted in nodes.items():
            if not 0 <= node < cluster.num_nodes or node in self._down or node in self.closed:
                return f"node {node_name(node)} takes no jobs"
            share = wanted / gpus if gpus else 1.0
            needs = (wanted, work.cpus[number] * share, work.memory_mib[number] * share)
            limits = (np.inf, cluster.cpus[node] or np.inf, cluster.memory_mib[node] or np.inf)
            names = ("GPUs", "CPUs", "memory")
            for name, need, room, limit in zip(names, needs, free[node], limits, strict=True):
                if need > room and limit:
                    return f"not enough {name} on node {node_name(node)}"
            allowed = self._types[types] if types >= 0 else None
            kind = cluster.types[int(cluster.gpu_type[node])].name
            if pool >= 0 and cluster.pool_names and pool != self._pool_of(node):
                return f"node {node_name(node)} is in another pool"
            if allowed is not None and kind not in allowed:
                return f"node {node_name(node)} has GPUs of type {kind}"
        return ""

    def _pool_of(self, node: int) -> int:
        index = int(self.cluster.pool[node])
        names = self.workload.pool_names
        name = self.cluster.pool_names[index] if index >= 0 else ""
        return names.index(name) if name in names else -2

    def _free(self) -> list[list[float]]:
        """Return free GPUs, CPUs and memory of each node."""
        cluster, work = self.cluster, self.workload
        free = [
            [
                float(cluster.gpus[node]),
                float(cluster.cpus[node]) or math.inf,
                float(cluster.memory_mib[node]) or math.inf,
            ]
            for node in range(cluster.num_nodes)
        ]
        for job in self._live.values():
            if job.state != RUNNING:
                continue
            gpus = int(work.gpus[job.number])
            for node, taken in job.nodes.items():
                share = taken / gpus if gpus else 1.0
                free[node][0] -= taken
                free[node][1] -= float(work.cpus[job.number]) * share
                free[node][2] -= float(work.memory_mib[job.number]) * share
        return free

    def _preempt(self, job: SimulatedJob, _: Action) -> str:
        if job.state != RUNNING:
            return "" if job.state == HELD else f"job {job.id} does not run"
        log = add_row(
            self.state.log, self.now, PREEMPT, self._row(job), detail=FOR_ANOTHER, gpus={}
        )
        self.state = dataclasses.replace(self.state, log=log)
        self._stopped(job, self.now)
        self._hide(job)
        job.state = HELD
        self._changed(job)
        return ""

    def _hold(self, job: SimulatedJob, _: Action) -> str:
        if job.state == RUNNING:
            return f"job {job.id} runs"
        if job.state == WAITING:
            self._hide(job)
            job.state = HELD
            self._changed(job)
        return ""

    def _release(self, job: SimulatedJob, _: Action) -> str:
        if job.state == RUNNING:
            return ""
        self._priority[job.number] = self.workload.priority[job.number]
        if job.state == WAITING:  # its rank is taken back: the state is built again
            self._hide(job)
        self._show(job)
        job.state = WAITING
        self._changed(job)
        return ""

    def _rank(self, job: SimulatedJob, action: Action) -> str:
        if not self.ranks:
            return "this system has no priorities"
        if job.state == RUNNING:
            return f"job {job.id} runs"
        self._priority[job.number] = float(action.of - action.rank)
        if job.state == WAITING:
            self._hide(job)
            self._show(job)
        self._changed(job)
        return ""

    def lift(self) -> tuple[int, int]:
        """Release everything that is held, and hold nothing new; return (lifted, left)."""
        self.holds_until = -math.inf
        lifted = 0
        for job in self._live.values():
            is_ranked = self._priority[job.number] != self.workload.priority[job.number]
            if job.state == HELD or (job.state == WAITING and is_ranked):
                lifted += job.state == HELD
                self._release(job, Action(kind=ActionKind.RELEASE, job=job.id, submitted=0.0))
        return lifted, self.num_held

    @property
    def num_held(self) -> int:
        """How many jobs are held."""
        return sum(job.state == HELD for job in self._live.values())


def node_name(node: int) -> str:
    """Return the name of a node."""
    return f"node{node}"


def node_id(name: str) -> int:
    """Return the id of a node."""
    return int(name.removeprefix("node"))


def _ours(workload: Workload, pools: Collection[str] | None) -> npt.NDArray[np.bool_]:
    """Return which jobs are ours: those with GPUs, of the pools given."""
    has_gpus = workload.gpus > 0
    if pools is None:
        return has_gpus
    unknown = set(pools) - set(workload.pool_names)
    if unknown:
        raise ConfigError(
            f"no job is in the pool {sorted(unknown)[0]!r}",
            where=workload.name,
            expected="one of " + ", ".join(workload.pool_names) if workload.pool_names else "none",
        )
    codes = [workload.pool_names.index(pool) for pool in pools]
    found: npt.NDArray[np.bool_] = has_gpus & np.isin(workload.pool, codes)
    return found


def _check(workload: Workload, cluster: Cluster) -> None:
    conditions = cluster.conditions
    hint = "berthline deploy simulated takes whole GPUs, and nodes that do not sleep"
    if (workload.gpu_milli < 1000).any():
        raise ConfigError("jobs ask for parts of a GPU", where=workload.name, hint=hint)
    if conditions.interference or math.isfinite(conditions.sleep_after) or conditions.tick:
        raise ConfigError(
            "the conditions of the cluster have interference, sleeping nodes or a tick",
            where=cluster.name,
            hint=hint,
        )
