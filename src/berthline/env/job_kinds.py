"""Job kinds: what the native core must know about a job besides its columns, looked up by kind.

Jobs with the same pool, GPU types, type they ran on and, where there are quotas, user share a class
of nodes, a set of quota counters and a reference speed. An environment resolves every kind once,
when it is made; episodes only look them up.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.model.workload import Workload
from berthline.sim.inputs import Inputs, prepare

if TYPE_CHECKING:
    from berthline.env.episodes_source import EpisodeSource, JobColumns
    from berthline.model.cluster import Cluster
    from berthline.policies.scheduler import Scheduler


class JobKinds:
    """Every kind of job that a source can produce, resolved for a cluster.

    Args:
        source: where jobs come from.
        cluster: the nodes.
    """

    def __init__(self, source: EpisodeSource, cluster: Cluster) -> None:
        has_quotas = bool(cluster.quotas)
        pools = range(-1, len(source.pool_names))
        types = range(-1, len(source.gpu_type_sets))
        users = range(len(source.user_names)) if has_quotas else range(1)
        ran_on = range(-1, len(source.ran_on_types))
        self._shape = (len(pools), len(types), len(users), len(ran_on))
        kinds = np.array(list(itertools.product(pools, types, users, ran_on)), np.int32)
        self.workload = Workload.from_columns(
            submit=np.zeros(len(kinds)),
            run=np.ones(len(kinds)),
            estimate=np.ones(len(kinds)),
            gpus=np.ones(len(kinds), np.int32),
            pool=kinds[:, 0],
            gpu_types=kinds[:, 1],
            user=kinds[:, 2],
            ran_on=kinds[:, 3],
            user_names=source.user_names if has_quotas else source.user_names[:1],
            pool_names=source.pool_names,
            gpu_type_sets=source.gpu_type_sets,
            ran_on_types=source.ran_on_types,
            reference_type=source.reference_type,
            name="kinds of jobs",
        )
        self._cluster = cluster

    def inputs(self, scheduler: Scheduler, knowledge: str) -> Inputs:
        """Return the inputs of a run with one job of each kind."""
        return prepare(
            self.workload, self._cluster, scheduler, knowledge=knowledge, seed=0, horizon=None
        )

    def same_columns(self, inputs: Inputs, jobs: int) -> dict[str, npt.NDArray[Any]]:
        """If all jobs are of one kind, return its columns as single rows; else {}."""
        if len(self.workload) > 1:
            return {}
        return {name: np.full((1, jobs), of[0], of.dtype) for name, of in _known(inputs).items()}

    def columns(self, inputs: Inputs, drawn: JobColumns) -> dict[str, npt.NDArray[Any]]:
        """Return the class, quota set and reference speed of the jobs of drawn episodes."""
        _, num_types, num_users, num_ran_on = self._shape
        kind = (drawn["pool"] + 1) * num_types + drawn["gpu_types"] + 1
        kind = kind * num_users + (drawn["user"] if num_users > 1 else 0)
        kind = kind * num_ran_on + drawn["ran_on"] + 1
        return {name: of[kind] for name, of in _known(inputs).items()}


def _known(inputs: Inputs) -> dict[str, npt.NDArray[Any]]:
    return {
        "job_class": inputs.job_class,
        "quota_set": inputs.quotas.job_set,
        "reference_speed": inputs.reference_speed,
    }
