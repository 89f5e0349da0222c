"""What a cluster offers the jobs of a workload, by the simulator's rules."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import IntColumn, Workload


def impossible_jobs(workload: Workload, cluster: Cluster) -> IntColumn:
    """Return for each job why it can never run (an index into REJECT_REASONS), -1 = it can.

    One job of each kind is submitted to the empty cluster, one at a time; those that the simulator
    rejects are impossible.
    """
    from berthline.model.schedule import REJECT
    from berthline.sim.simulate import simulate

    asked = (
        workload.pool,
        workload.gpu_types,
        workload.gpus,
        workload.gpu_milli,
        workload.cpus,
        workload.memory_mib,
        workload.user if cluster.quotas else np.zeros(len(workload)),
    )
    kinds, kind_of = np.unique(
        np.stack([column.astype(np.int64) for column in asked], axis=1), axis=0, return_inverse=True
    )
    log = simulate(_probes(workload, *kinds.T), cluster, "fcfs", knowledge="none").log
    reason = np.full(len(kinds), -1, np.int32)
    rejected = log.kind == REJECT
    reason[log.job[rejected]] = log.detail[rejected]
    return reason[kind_of.reshape(-1)]


def usable_gpus(
    workload: Workload, cluster: Cluster, *, pool: int = -1, gpu_types: int = -1
) -> int:
    """Return how many GPUs the jobs of a pool, or of a GPU type set, may use; -1 = any."""
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.inputs import prepare

    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    whole = one * WHOLE_GPU
    probe = _probes(workload, one * pool, one * gpu_types, one, whole, none, none, none)
    inputs = prepare(
        probe, cluster, Scheduler.parse("fcfs"), knowledge="none", seed=0, horizon=None
    )
    return int(cluster.gpus[inputs.may_use[inputs.job_class[0]]].sum())


def _probes(
    workload: Workload,
    pool: npt.NDArray[np.int64],
    gpu_types: npt.NDArray[np.int64],
    gpus: npt.NDArray[np.int64],
    gpu_milli: npt.NDArray[np.int64],
    cpus: npt.NDArray[np.int64],
    memory_mib: npt.NDArray[np.int64],
    user: npt.NDArray[np.int64],
) -> Workload:
    """Return jobs with these requests, each of which has finished before the next arrives."""
    count = len(gpus)
    return dataclasses.replace(
        workload,
        submit=np.arange(count, dtype=np.float64),
        run=np.full(count, 0.5),
        estimate=np.full(count, np.nan),
        deadline=np.full(count, np.inf),
        priority=np.zeros(count),
        user=user.astype(np.int32),
        pool=pool.astype(np.int32),
        gpu_types=gpu_types.astype(np.int32),
        ran_on=np.full(count, -1, np.int32),
        gpus=gpus.astype(np.int32),
        gpu_milli=gpu_milli.astype(np.int32),
        cpus=cpus.astype(np.int32),
        memory_mib=memory_mib.copy(),
        names=None,
    )
