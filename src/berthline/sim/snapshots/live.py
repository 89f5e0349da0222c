"""snapshot_of: the state of a system that was not simulated, from what it says of its jobs."""

from __future__ import annotations

import itertools
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

    import numpy.typing as npt

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
    if not jobs.in_order:
        raise ConfigError(
            "the jobs were not given in the order of their submission",
            where="jobs",
            expected="that order, in which `running` counts rows",
            hint="sort the records by submission first",
        )
    running = running or {}
    try:
        given = list(running.values())
        ids = np.array(list(running), np.int64)
        starts = np.array([one[0] for one in given], np.float64)
        held = [one[1] for one in given]
        sizes = np.array(list(map(len, held)), np.int64)
        slots = np.array([one[2] if len(one) > 2 else WHOLE_GPUS for one in given], np.int32)
        nodes = np.array(sorted(set(down)), np.int32)
        now = float(now)
        alloc_node = _whole(list(itertools.chain.from_iterable(held)))
        alloc_gpus = _whole([number for gpus in held for number in gpus.values()])
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ConfigError(
            f"the state cannot be read: {error}",
            where="snapshot_of",
            expected="running={row: (start, {node: GPUs})}, down=[node], now in seconds",
            hint="jobs by their rows and nodes by their ids in the cluster, not by name",
        ) from None
    _check_running(jobs, ids, sizes, slots)
    # The rows of the log: submissions, starts, and nodes that are down, then sorted by time.
    known = np.arange(len(jobs), dtype=np.int32)
    rows = len(known) + len(ids) + len(nodes)
    time, kind = np.empty(rows), np.empty(rows, np.uint8)
    job, detail = np.empty(rows, np.int32), np.empty(rows, np.int32)
    submits, others = slice(len(known)), slice(len(known) + len(ids), rows)
    begins = slice(submits.stop, others.start)
    time[submits], time[begins], time[others] = jobs.submit, starts, now
    kind[submits], kind[begins], kind[others] = SUBMIT, START, NODE_DOWN
    job[submits], job[begins], job[others] = known, ids, NO_JOB
    detail[: others.start], detail[others] = -1, nodes
    # A job's submission stays before its start; equal starts are in the order of the jobs.
    order = np.lexsort((job, kind == START, time))
    kind, detail = kind[order], detail[order]
    # Allocations are in the order of the starts.
    is_start = kind == START
    rank = order[is_start] - len(known)
    first = (sizes.cumsum() - sizes)[rank]
    sizes = sizes[rank]
    own = sizes.cumsum() - sizes
    detail[is_start] = own
    shares = np.repeat(first - own, sizes) + np.arange(len(alloc_node))
    snapshot = Snapshot(
        workload=jobs,
        cluster=cluster,
        log=Schedule(
            time=time[order],
            kind=kind,
            job=job[order],
            detail=detail,
            alloc_node=alloc_node[shares],
            alloc_gpus=alloc_gpus[shares],
            alloc_slot=np.repeat(slots[rank], sizes),
            horizon=now,
            decisions=0,
        ),
        now=now,
        number=known.astype(np.int64),
        scheduler=scheduler,
        knowledge=knowledge,
        seed=seed,
    )
    check_snapshot(snapshot)
    return snapshot


def _whole(numbers: list[int]) -> npt.NDArray[np.int32]:
    """Return whole numbers as an array."""
    found = np.array(numbers, None if numbers else np.int32)
    if found.ndim != 1 or found.dtype.kind not in "iu" or (abs(found) >= 2**31).any():
        raise TypeError("nodes and numbers of GPUs are not all whole numbers")
    return found.astype(np.int32)


def _check_running(
    jobs: Workload,
    ids: npt.NDArray[np.int64],
    sizes: npt.NDArray[np.int64],
    slots: npt.NDArray[np.int32],
) -> None:
    """Raise if a running job does not exist, holds nothing, or holds what it did not ask for."""
    unknown = ids[(ids < 0) | (ids >= len(jobs))]
    if len(unknown):
        raise ConfigError(
            f"job {unknown[0]} runs, but there is no such job",
            where="running",
            expected=f"rows 0 to {len(jobs) - 1} of the jobs",
        )
    nowhere = ids[sizes == 0]
    if len(nowhere):
        raise ConfigError(f"job {job_name(jobs, int(nowhere[0]))} runs on no node", where="running")
    is_part = jobs.gpu_milli[ids] < WHOLE_GPU
    wrong = np.flatnonzero(is_part != (slots != WHOLE_GPUS))
    if len(wrong):
        at = int(wrong[0])
        raise ConfigError(
            f"job {job_name(jobs, int(ids[at]))} has the shared GPU {slots[at]}",
            where="running",
            expected="a number from 0 for a job on part of a GPU"
            if is_part[at]
            else f"{WHOLE_GPUS}, as the job has whole GPUs",
        )
