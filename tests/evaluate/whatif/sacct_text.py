"""A simulated log as `sacct -P` would print it, as input for `whatif`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np

import berthline as bl
from berthline.model.schedule import START

if TYPE_CHECKING:
    from collections.abc import Callable

HEADER = (
    "JobID|User|Partition|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|Priority|AllocTRES|"
    "NodeList"
)
ZERO = dt.datetime(2024, 3, 4, tzinfo=dt.UTC)


def whole_seconds(workload: bl.Workload) -> bl.Workload:
    """Return the workload with times that sacct can print, and limits in whole minutes."""
    return bl.Workload.from_columns(
        submit=np.floor(workload.submit),
        run=np.ceil(workload.run),
        gpus=workload.gpus,
        estimate=60 * np.ceil(workload.estimate / 60),
        user=workload.user,
        user_names=workload.user_names,
        pool=workload.pool,
        pool_names=workload.pool_names,
        name=workload.name,
    )


def sacct_text(
    result: bl.Result,
    *,
    node_name: Callable[[int], str] = lambda node: f"gpu{node + 1:02}",
    gpu_type: Callable[[int], str] = lambda _: "a100",
    taken_at: float = np.inf,
) -> str:
    """Return the accounting of a run, in the form of sacct.

    Args:
        result: the run.
        node_name: the name of each node.
        gpu_type: the type of the GPUs of each node.
        taken_at: when sacct was called: jobs that run then have no end, those that wait no start.
    """
    log, jobs = result.log, result.workload
    rows = np.flatnonzero(log.kind == START)
    bounds = np.append(log.detail[rows], len(log.alloc_node))
    lines = [HEADER]
    for index, row in sorted(enumerate(rows.tolist()), key=lambda item: log.job[item[1]]):
        job, start = int(log.job[row]), float(log.time[row])
        if jobs.submit[job] >= taken_at:
            continue
        nodes = log.alloc_node[bounds[index] : bounds[index + 1]].tolist()
        end = start + float(jobs.run[job])
        state, elapsed = "COMPLETED", end - start
        if end > taken_at:
            state, elapsed = "RUNNING", max(taken_at - start, 0.0)
        if start > taken_at:
            state = "PENDING"
        gpus, kind = int(jobs.gpus[job]), gpu_type(nodes[0])
        limit = int(jobs.estimate[job])
        cells = [
            str(1000 + job),
            jobs.user_names[jobs.user[job]],
            jobs.pool_names[jobs.pool[job]] if jobs.pool_names else "gpu",
            state,
            _date(jobs.submit[job]),
            _date(jobs.submit[job]),
            "Unknown" if state == "PENDING" else _date(start),
            _date(end) if state == "COMPLETED" else "Unknown",
            str(round(elapsed)),
            f"{limit // 86400}-{limit // 3600 % 24:02}:{limit // 60 % 60:02}:00",
            "1000",
            f"cpu={gpus},gres/gpu:{kind}={gpus},gres/gpu={gpus},mem=4G,node={len(nodes)}",
            "None assigned" if state == "PENDING" else ",".join(map(node_name, nodes)),
        ]
        lines.append("|".join(cells))
    return "\n".join(lines) + "\n"


def _date(seconds: float) -> str:
    return (ZERO + dt.timedelta(seconds=float(seconds))).strftime("%Y-%m-%dT%H:%M:%S")
