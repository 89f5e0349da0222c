"""snapshot_of: the state of a system that was not simulated, from what it says of its jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.errors import ConfigError
from berthline.model.schedule import NO_JOB, NODE_DOWN, START, SUBMIT, WHOLE_GPUS, Schedule
from berthline.model.snapshot import Snapshot
from berthline.model.workload import WHOLE_GPU
from berthline.model.workload_rows import job_name
from berthline.sim.snapshots.check import check_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload


class RunningJob(NamedTuple):
    """A job that runs now.

    Attributes:
        start: when it started, in seconds on the clock of the jobs.
        gpus: the GPUs that it holds on each node, by node id.
        slot: of a job on part of a GPU: the number of the shared GPU on its node.
    """

    start: float
    gpus: Mapping[int, int]
    slot: int = WHOLE_GPUS


def snapshot_of(
    jobs: Workload,
    cluster: Cluster,
    now: float,
    *,
    running: Mapping[int, RunningJob | tuple[float, Mapping[int, int]]] | None = None,
    down: Iterable[int] = (),
    scheduler: str = "",
    knowledge: str = "estimate",
    seed: int = 0,
) -> Snapshot:
    """Return the state of a system in which some jobs run and the others wait.

    Args:
        jobs: the jobs that run or wait: `Workload.from_columns(..., rebase=False,
            of_snapshot=True)`, with NaN for run times that are not known.
        cluster: the nodes.
        now: the instant, in seconds on the clock of the jobs.
        running: the jobs that run, by their row in `jobs`.
        down: the nodes that take no jobs.
        scheduler: who decides unless `decide` or `resume` names another.
        knowledge: what it knows about run times.
        seed: of random draws.

    Raises:
        ConfigError: this contradicts itself.

    Example:
        >>> import berthline as bl
        >>> jobs = bl.Workload.from_columns(
        ...     submit=[0, 60], run=[float("nan")] * 2, gpus=[8, 4], estimate=[3600, 600],
        ...     rebase=False, of_snapshot=True)
        >>> cluster = bl.Cluster.uniform(nodes=2, gpus_per_node=8)
        >>> state = bl.snapshot_of(jobs, cluster, now=90, running={0: (5.0, {0: 8})})
        >>> [(action.kind, action.job, action.gpus) for action in bl.decide(state, "sjf").actions]
        [('start', 1, {1: 4})]
    """
    held = {job: RunningJob(*one) for job, one in sorted((running or {}).items())}
    _check_rows(jobs, held)
    ids = np.fromiter(held, np.int32, len(held))
    starts = np.array([one.start for one in held.values()], np.float64)
    nodes = np.array(sorted(set(down)), np.int32)
    known = np.arange(len(jobs), dtype=np.int32)
    time = np.concatenate([jobs.submit, starts, np.full(len(nodes), float(now))])
    kinds = np.array([SUBMIT, START, NODE_DOWN], np.uint8)
    kind = np.repeat(kinds, [len(known), len(ids), len(nodes)])
    job = np.concatenate([known, ids, np.full(len(nodes), NO_JOB, np.int32)])
    detail = np.concatenate([np.full(len(known) + len(ids), -1), nodes]).astype(np.int32)
    order = np.argsort(time, kind="stable")  # a job's submission stays before its start
    # Allocations are in the order of the starts.
    in_order = [held[number] for number in job[order][kind[order] == START].tolist()]
    sizes = [len(one.gpus) for one in in_order]
    detail = detail[order]
    detail[kind[order] == START] = np.cumsum([0, *sizes])[: len(sizes)]
    snapshot = Snapshot(
        workload=jobs,
        cluster=cluster,
        log=Schedule(
            time=time[order],
            kind=kind[order],
            job=job[order],
            detail=detail,
            alloc_node=_flat(node for one in in_order for node in one.gpus),
            alloc_gpus=_flat(gpus for one in in_order for gpus in one.gpus.values()),
            alloc_slot=_flat(one.slot for one in in_order for _ in one.gpus),
            horizon=float(now),
            decisions=0,
        ),
        now=float(now),
        number=known.astype(np.int64),
        scheduler=scheduler,
        knowledge=knowledge,
        seed=seed,
    )
    check_snapshot(snapshot)
    return snapshot


def _check_rows(jobs: Workload, held: Mapping[int, RunningJob]) -> None:
    for job, one in held.items():
        if not 0 <= job < len(jobs):
            raise ConfigError(
                f"job {job} runs, but there is no such job",
                where="running",
                expected=f"rows 0 to {len(jobs) - 1} of the jobs",
            )
        is_part = jobs.gpu_milli[job] < WHOLE_GPU
        if is_part != (one.slot != WHOLE_GPUS):
            raise ConfigError(
                f"job {job_name(jobs, job)} has the shared GPU {one.slot}",
                where="running",
                expected="a number from 0 for a job on part of a GPU"
                if is_part
                else f"{WHOLE_GPUS}, as the job has whole GPUs",
            )
        if not one.gpus:
            raise ConfigError(f"job {job_name(jobs, job)} runs on no node", where="running")


def _flat(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.fromiter(values, np.int32)
