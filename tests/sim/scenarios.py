"""Small runs written out by hand, and functions to read their logs.

Every scenario is simulated by both simulators; tests see their common log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GpuType
from berthline.model.schedule import (
    FALLBACK,
    FALLBACK_REASONS,
    FINISH,
    KINDS,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    PREEMPT_REASONS,
    REJECT,
    REJECT_REASONS,
    START,
    WHOLE_GPUS,
    Schedule,
)
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.policies.scheduler import Scheduler

# Made-up GPU types with round speeds; V100 = 1.
SLOW = GpuType("SLOW", 125, 16_384, 10, 100, measured_speed=0.5)
FAST = GpuType("FAST", 125, 16_384, 10, 100, measured_speed=2.0)


def jobs(*rows: tuple[float, float, int], **columns: Any) -> Workload:
    """Return jobs of (submit, run, gpus), sorted already; estimates equal run times by default."""
    submit, run, gpus = zip(*rows, strict=True)
    columns = {"estimate": run, "rebase": False} | columns
    workload = Workload.from_columns(submit=submit, run=run, gpus=gpus, **columns)
    assert workload.submit.tolist() == list(submit), "rows in order, so that row = job"
    return workload


def nodes(*gpus: int, **fields: Sequence[Any]) -> Cluster:
    """Return one node for each number of GPUs; fields such as `cpus` have one value per node."""
    groups = [
        NodeGroup(count=1, gpus=count, **{name: values[i] for name, values in fields.items()})
        for i, count in enumerate(gpus)
    ]
    return Cluster.from_groups(groups, extra_types=(SLOW, FAST))


def run(
    workload: Workload, cluster: Cluster, scheduler: Scheduler | str, **options: Any
) -> Schedule:
    """Simulate with both simulators and return the log on which they agree."""
    logs = {
        simulator: bl.simulate(workload, cluster, scheduler, simulator=simulator, **options).log
        for simulator in ("reference", "native")
    }
    reference, native = logs.values()
    np.testing.assert_array_equal(events(native), events(reference))
    assert native.sha256() == reference.sha256()
    assert native.decisions == reference.decisions
    return native


def events(log: Schedule) -> list[tuple[float, int, int]]:
    """Return (time, kind, job) of every row."""
    return list(zip(log.time.tolist(), log.kind.tolist(), log.job.tolist(), strict=True))


def starts(log: Schedule) -> dict[int, float]:
    """Return when each job started; jobs that did not are missing."""
    is_start = log.kind == START
    return dict(sorted(zip(log.job[is_start].tolist(), log.time[is_start].tolist(), strict=True)))


def order(log: Schedule) -> list[int]:
    """Return the jobs in the order in which they started."""
    return log.job[log.kind == START].tolist()


def allocations(log: Schedule) -> dict[int, dict[int, int]]:
    """Return {job: {node: gpus}}."""
    rows = np.flatnonzero(log.kind == START).tolist()
    return {int(log.job[row]): log.allocation(row) for row in rows}


def rejections(log: Schedule) -> dict[int, str]:
    """Return {job: reason}."""
    rows = np.flatnonzero(log.kind == REJECT).tolist()
    return {int(log.job[row]): REJECT_REASONS[log.detail[row]] for row in rows}


def finishes(log: Schedule) -> dict[int, float]:
    """Return when each job ended; jobs that did not are missing."""
    rows = log.kind == FINISH
    return dict(sorted(zip(log.job[rows].tolist(), log.time[rows].tolist(), strict=True)))


def story(log: Schedule) -> list[str]:
    """Return the log as lines: time, what, job, and where or why.

    `5 start 3 on 0:2 1:4` is job 3 on two GPUs of node 0 and four of node 1; `on 0#1` is on part of
    the shared GPU 1 of node 0.
    """
    return [_line(log, row) for row in range(len(log))]


def _line(log: Schedule, row: int) -> str:
    kind, detail = int(log.kind[row]), int(log.detail[row])
    line = f"{log.time[row]:.10g} {KINDS[kind]} "
    if kind in (NODE_DOWN, NODE_UP):
        return line + str(detail)
    line += str(log.job[row])
    if log.is_start[row]:
        slot = log.alloc_slot[detail]
        shares = log.allocation(row).items()
        if slot != WHOLE_GPUS:
            return f"{line} on {next(iter(shares))[0]}#{slot}"
        return f"{line} on " + " ".join(f"{node}:{gpus}" for node, gpus in shares)
    if kind == REJECT:
        return f"{line} ({REJECT_REASONS[detail]})"
    if kind == FALLBACK:
        return f"{line} ({FALLBACK_REASONS[detail]})"
    return f"{line} ({PREEMPT_REASONS[detail]})" if kind == PREEMPT else line
