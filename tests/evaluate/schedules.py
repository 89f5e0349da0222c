"""Schedules for tests: written by hand, or drawn at random (valid, but of no real policy)."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import KINDS, NO_JOB, WHOLE_GPUS, Schedule
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = tuple[Any, ...]

ROUGH_SECONDS = 100
"""In random runs, nothing is preempted and no node goes down after this."""


def schedule(rows: Iterable[Row], *, horizon: float = np.inf) -> Schedule:
    """Return the log of these rows.

    (time, "start" or "resume", job, {node: gpus}) or (..., {node: 1}, shared GPU); (time, "reject"
    or "preempt", job, reason); (time, "node down" or "node up", node); (time, other kind, job).
    """
    events: list[tuple[float, int, int, int]] = []
    allocated: list[tuple[int, int, int]] = []
    for time, kind, job, *more in rows:
        detail = -1
        if kind in ("start", "resume"):
            detail = len(allocated)
            slot = more[1] if len(more) > 1 else WHOLE_GPUS
            allocated.extend((node, gpus, slot) for node, gpus in more[0].items())
        elif kind in ("node down", "node up"):
            detail, job = job, NO_JOB
        elif more:
            detail = more[0]
        events.append((time, KINDS.index(kind), job, detail))
    columns = list(zip(*events, strict=True)) if events else [()] * 4
    nodes, gpus, slots = np.array(allocated, dtype=np.int32).reshape(-1, 3).T.copy()
    return Schedule(
        time=np.array(columns[0], dtype=np.float64),
        kind=np.array(columns[1], dtype=np.uint8),
        job=np.array(columns[2], dtype=np.int32),
        detail=np.array(columns[3], dtype=np.int32),
        alloc_node=nodes,
        alloc_gpus=gpus,
        alloc_slot=slots,
        horizon=horizon,
        decisions=len({event[0] for event in events}),
    )


def random_case(seed: int) -> tuple[Schedule, Workload, Cluster]:
    """Return a random run: whole seconds, gangs over nodes, rejects, ties, often a horizon.

    In half of the runs also parts of GPUs, jobs without GPUs, preemptions, refused starts, nodes
    that go down, and often nodes that sleep.
    """
    rng = np.random.default_rng(seed)
    rough = bool(rng.random() < 0.5)
    kinds = ("V100", "T4", "A100")
    cluster = Cluster.from_groups(
        NodeGroup(count=1, gpus=int(rng.integers(1, 5)), gpu_type=str(rng.choice(kinds)))
        for _ in range(rng.integers(1, 5))
    )
    num_jobs = int(rng.integers(1, 40))
    run = rng.integers(1, 40, num_jobs)
    submit = np.sort(rng.integers(0, 60, num_jobs))
    gpus = rng.integers(1, cluster.total_gpus + 2, num_jobs)
    milli = np.full(num_jobs, 1000)
    if rough:
        cluster = cluster.with_conditions(
            {"sleep_after": float(rng.choice([0, 1, 5, 20, np.inf])), "sleep_w": 7.5}
        )
        small = rng.random(num_jobs) < 0.5
        gpus[small] = rng.integers(0, 2, small.sum())
        parts = small & (gpus == 1)
        milli[parts] = rng.choice([100, 250, 333, 500, 1000], parts.sum())
    workload = Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        gpu_milli=milli,
        cpus=1,
        priority=rng.integers(-50, 50, num_jobs) / 4
        if rng.random() < 0.3
        else rng.integers(0, 3, num_jobs),
        deadline=np.where(rng.random(num_jobs) < 0.5, submit + 2 * run, np.inf),
        user=rng.integers(0, 4, num_jobs) * 2,
        pool=rng.integers(-1, 2, num_jobs),
        pool_names=("left", "right"),
        rebase=False,
    )
    horizon = float(rng.integers(1, 150)) if rng.random() < 0.5 else np.inf
    rows = _RandomRun(workload, cluster, rng, rough=rough).rows(horizon)
    return schedule(rows, horizon=horizon), workload, cluster


@dataclasses.dataclass
class _Running:
    allocation: dict[int, int]
    slot: int
    """The shared GPU, or WHOLE_GPUS."""
    held: list[tuple[int, int]]
    """(node, GPU) of every GPU it uses."""
    finish: float


class _RandomRun:
    """Random decisions second by second, on GPUs that are allocated one by one in thousandths."""

    def __init__(
        self, workload: Workload, cluster: Cluster, rng: np.random.Generator, *, rough: bool
    ) -> None:
        self.workload, self.rng, self.rough = workload, rng, rough
        self.total_gpus = cluster.total_gpus
        self.used = [[0] * gpus for gpus in cluster.gpus.tolist()]
        self.down: set[int] = set()
        self.waiting: list[int] = []
        self.started: set[int] = set()
        self.running: dict[int, _Running] = {}
        self.left = workload.run.tolist()

    def rows(self, horizon: float) -> Iterator[Row]:
        arrived, now = 0, 0.0
        while now <= horizon and (arrived < len(self.workload) or self.waiting or self.running):
            for job in sorted(self.running):
                if self.running[job].finish == now:
                    yield now, "finish", job
                    self._give_back(job)
            if self.rough:
                yield from self._trouble(now)
            while arrived < len(self.workload) and self.workload.submit[arrived] == now:
                yield now, "submit", arrived
                if self.workload.gpus[arrived] > self.total_gpus:
                    yield now, "reject", arrived, 2
                else:
                    self.waiting.append(arrived)
                arrived += 1
            for job in self.rng.permutation(self.waiting).tolist():
                yield from self._start(now, job)
            now += 1.0

    def _trouble(self, now: float) -> Iterator[Row]:
        """Nodes come up or go down, jobs are preempted; some of them move at once."""
        lasts = now < ROUGH_SECONDS
        for node in range(len(self.used)):
            if node in self.down and (not lasts or self.rng.random() < 0.2):
                self.down.remove(node)
                yield now, "node up", node
            elif node not in self.down and lasts and self.rng.random() < 0.02:
                self.down.add(node)
                yield now, "node down", node
                for job in sorted(self.running):
                    if node in self.running[job].allocation:
                        yield from self._preempt(now, job, 1)
        for job in sorted(self.running):
            if lasts and self.rng.random() < 0.05:
                reason = int(self.rng.choice([0, 2, 3]))
                yield from self._preempt(now, job, reason)

    def _preempt(self, now: float, job: int, reason: int) -> Iterator[Row]:
        self.left[job] = float(self.rng.integers(1, 30))
        yield now, "preempt", job, reason
        self._give_back(job)
        self.waiting.append(job)

    def _give_back(self, job: int) -> None:
        done = self.running.pop(job)
        for node, gpu in done.held:
            self.used[node][gpu] -= int(self.workload.gpu_milli[job])

    def _start(self, now: float, job: int) -> Iterator[Row]:
        if self.rng.random() < 0.3:
            if self.rough and self.rng.random() < 0.1:
                yield now, "refuse", job
            return
        found = self._place(job)
        if found is None:
            return
        allocation, slot, held = found
        for node, gpu in held:
            self.used[node][gpu] += int(self.workload.gpu_milli[job])
        self.waiting.remove(job)
        self.running[job] = _Running(allocation, slot, held, now + self.left[job])
        kind = "resume" if job in self.started else "start"
        self.started.add(job)
        yield now, kind, job, allocation, slot

    def _place(self, job: int) -> tuple[dict[int, int], int, list[tuple[int, int]]] | None:
        nodes = [n for n in self.rng.permutation(len(self.used)).tolist() if n not in self.down]
        wanted, milli = int(self.workload.gpus[job]), int(self.workload.gpu_milli[job])
        if not nodes:
            return None
        if wanted == 0:
            return {nodes[0]: 0}, WHOLE_GPUS, []
        held = [
            (node, gpu)
            for node in nodes
            for gpu, used in enumerate(self.used[node])
            if used + milli <= 1000
        ][:wanted]
        if len(held) < wanted:
            return None
        allocation: dict[int, int] = {}
        for node, _ in held:
            allocation[node] = allocation.get(node, 0) + 1
        return allocation, held[0][1] if milli < 1000 else WHOLE_GPUS, held
