"""Schedules for tests: written out by hand, or drawn at random (valid, but by no real policy)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import KINDS, Schedule
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = tuple[float, str, int] | tuple[float, str, int, dict[int, int] | int]


def schedule(rows: Iterable[Row], *, horizon: float = np.inf) -> Schedule:
    """Return the log of (time, kind, job[, {node: gpus} of a start | reason of a reject]) rows."""
    events: list[tuple[float, int, int, int]] = []
    allocated: list[tuple[int, int]] = []
    for time, kind, job, *more in rows:
        detail = -1
        if kind == "start":
            detail = len(allocated)
            allocated.extend(more[0].items())
        elif more:
            detail = more[0]
        events.append((time, KINDS.index(kind), job, detail))
    columns = list(zip(*events, strict=True)) if events else [()] * 4
    nodes_and_gpus = np.array(allocated, dtype=np.int32).reshape(-1, 2)
    return Schedule(
        time=np.array(columns[0], dtype=np.float64),
        kind=np.array(columns[1], dtype=np.uint8),
        job=np.array(columns[2], dtype=np.int32),
        detail=np.array(columns[3], dtype=np.int32),
        alloc_node=nodes_and_gpus[:, 0].copy(),
        alloc_gpus=nodes_and_gpus[:, 1].copy(),
        horizon=horizon,
        decisions=len({event[0] for event in events}),
    )


def random_case(seed: int) -> tuple[Schedule, Workload, Cluster]:
    """Return a random run: whole seconds, gangs over nodes, rejects, ties, often a horizon."""
    rng = np.random.default_rng(seed)
    kinds = ("V100", "T4", "A100")
    cluster = Cluster.from_groups(
        NodeGroup(count=1, gpus=int(rng.integers(1, 5)), gpu_type=str(rng.choice(kinds)))
        for _ in range(rng.integers(1, 5))
    )
    num_jobs = int(rng.integers(1, 40))
    run = rng.integers(1, 40, num_jobs)
    submit = np.sort(rng.integers(0, 60, num_jobs))
    workload = Workload.from_columns(
        submit=submit,
        run=run,
        gpus=rng.integers(1, cluster.total_gpus + 2, num_jobs),
        priority=rng.integers(-50, 50, num_jobs) / 4
        if rng.random() < 0.3
        else rng.integers(0, 3, num_jobs),
        deadline=np.where(rng.random(num_jobs) < 0.5, submit + 2 * run, np.inf),
        user=rng.integers(0, 4, num_jobs) * 2,
        rebase=False,
    )
    horizon = float(rng.integers(1, 150)) if rng.random() < 0.5 else np.inf
    return (
        schedule(_random_rows(workload, cluster, horizon, rng), horizon=horizon),
        workload,
        cluster,
    )


def _random_rows(
    workload: Workload, cluster: Cluster, horizon: float, rng: np.random.Generator
) -> Iterable[Row]:
    free = cluster.gpus.tolist()
    waiting: list[int] = []
    running: dict[int, tuple[float, dict[int, int]]] = {}
    arrived, now = 0, 0.0
    while now <= horizon and (arrived < len(workload) or waiting or running):
        for job, (finish, allocation) in sorted(running.items()):
            if finish == now:
                yield now, "finish", job
                del running[job]
                for node, gpus in allocation.items():
                    free[node] += gpus
        while arrived < len(workload) and workload.submit[arrived] == now:
            yield now, "submit", arrived
            if workload.gpus[arrived] > cluster.total_gpus:
                yield now, "reject", arrived, 2
            else:
                waiting.append(arrived)
            arrived += 1
        for job in rng.permutation(waiting).tolist():
            wanted = int(workload.gpus[job])
            if wanted > sum(free) or rng.random() < 0.3:
                continue
            allocation = {}
            for node in rng.permutation(len(free)).tolist():
                take = min(wanted - sum(allocation.values()), free[node])
                if take:
                    allocation[node] = take
                    free[node] -= take
            yield now, "start", job, allocation
            waiting.remove(job)
            running[job] = (now + float(workload.run[job]), allocation)
        now += 1.0
