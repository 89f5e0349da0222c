"""The placement `milp` inside a run: asks policies/milp.py where a job and those after it go.

The discipline decides which job starts; the program decides where, considering the next jobs. Only
jobs on whole GPUs of their own pool are planned. When the solver proves no optimum in time,
best-fit's allocation is used, and a row of the log says why. The same function serves both
simulators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError
from berthline.model.schedule import NOT_ON_OWN_NODES
from berthline.model.workload import WHOLE_GPU

if TYPE_CHECKING:
    from berthline.sim.inputs import Inputs, PlaceJobs

Ints = npt.NDArray[np.int64]


def milp_plan(inputs: Inputs) -> PlaceJobs:
    """Return the function that places jobs of this run.

    Raises:
        ConfigError: the cluster has quotas by GPU type, which the program does not support.
        MissingExtraError: the solver is not installed.
    """
    from berthline.policies.milp import FreeNodes, Gangs, plan, solver

    solver()  # fail now, not during the run
    workload, cluster, scheduler = inputs.workload, inputs.cluster, inputs.scheduler
    if any(quota.gpu_type for quota in cluster.quotas):
        raise ConfigError(
            "the placement milp does not support quotas by GPU type",
            expected="quotas without gpu_type, or another placement",
        )

    def room(job: int, gpus: Ints, cpus: Ints, memory_mib: Ints) -> Ints:
        """GPUs of the job that each node can take."""
        most = np.where(inputs.may_use[inputs.job_class[job]], gpus, 0)
        wanted = int(workload.gpus[job])
        if workload.cpus[job]:
            by_cpus = cpus * wanted // int(workload.cpus[job])
            most = np.where(cluster.cpus > 0, np.minimum(most, by_cpus), most)
        if workload.memory_mib[job]:
            by_memory = memory_mib * wanted // int(workload.memory_mib[job])
            most = np.where(cluster.memory_mib > 0, np.minimum(most, by_memory), most)
        return most

    def fewest_nodes(job: int) -> int:
        """Fewest nodes that hold the job on an empty cluster; 0 = its own pool cannot."""
        all_of_it = (cluster.gpus.astype(np.int64), cluster.cpus.astype(np.int64))
        most = np.sort(room(job, *all_of_it, cluster.memory_mib))[::-1]
        enough = np.flatnonzero(np.cumsum(most) >= workload.gpus[job])
        return int(enough[0]) + 1 if enough.size else 0

    def gangs(jobs: list[int], gpus: Ints, cpus: Ints, memory_mib: Ints) -> Gangs:
        return Gangs(
            workload.gpus[jobs],
            [fewest_nodes(job) for job in jobs],
            [room(job, gpus, cpus, memory_mib) for job in jobs],
            workload.cpus[jobs],
            workload.memory_mib[jobs],
        )

    def place(
        jobs: list[int], gpus: Ints, cpus: Ints, memory_mib: Ints
    ) -> list[tuple[int, int]] | int:
        most = scheduler.plan_jobs
        planned = [
            job
            for job in jobs[: 4 * most]
            if workload.gpus[job] > 0
            and workload.gpu_milli[job] == WHOLE_GPU
            and fewest_nodes(job) > 0
        ]
        if not planned or planned[0] != jobs[0]:
            return NOT_ON_OWN_NODES
        free = (gpus, cpus, memory_mib)
        found = plan(
            gangs(planned[:most], *free),
            FreeNodes(
                gpus,
                cluster.gpus,
                np.where(cluster.cpus > 0, cpus, np.inf),
                np.where(cluster.memory_mib > 0, memory_mib, np.inf),
            ),
            next_jobs=gangs(planned[most : 2 * most], *free) if planned[most:] else None,
            most_jobs=most,
            time_limit=scheduler.plan_seconds,
        )
        if isinstance(found, int):
            return found
        return list(found[0].items()) if found[0] else NOT_ON_OWN_NODES

    return place
