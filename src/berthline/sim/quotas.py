"""Quotas as the simulators count them: counters with limits, and which jobs count toward which."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.limits import EACH_USER
from berthline.model.workload import IntColumn, Workload

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster

ANY_TYPE = -1


@dataclasses.dataclass(frozen=True, eq=False)
class QuotaCounters:
    """Counters of GPUs in use, in thousandths.

    Attributes:
        limit: the limit of each counter.
        gpu_type: the GPU type (index into the cluster's) that a counter counts; -1 = all.
        job_set: for each job, its set of counters; -1 = none.
        set_begin: the counters of set s are `members[set_begin[s] : set_begin[s + 1]]`.
        members: counters.
    """

    limit: npt.NDArray[np.int64]  # (num_counters,)
    gpu_type: IntColumn  # (num_counters,)
    job_set: IntColumn  # (num_jobs,)
    set_begin: IntColumn  # (num_sets + 1,)
    members: IntColumn

    def of_job(self, job: int) -> list[int]:
        """Return the counters of a job."""
        chosen = int(self.job_set[job])
        if chosen < 0:
            return []
        members: list[int] = self.members[
            self.set_begin[chosen] : self.set_begin[chosen + 1]
        ].tolist()
        return members


def quota_counters(workload: Workload, cluster: Cluster) -> QuotaCounters:
    """Return the counters for the cluster's quotas and the jobs that count toward them."""
    if not cluster.quotas:
        none = np.zeros(0, np.int32)
        return QuotaCounters(
            np.zeros(0, np.int64),
            none,
            np.full(len(workload), -1, np.int32),
            np.zeros(1, np.int32),
            none,
        )
    kinds = [kind.name for kind in cluster.types]
    limits: list[int] = []
    types: list[int] = []
    # Jobs of the same pool and user have the same counters.
    width = len(workload.user_names)
    pairs, job_set = np.unique(
        (workload.pool + 1).astype(np.int64) * width + workload.user, return_inverse=True
    )
    sets: list[list[int]] = [[] for _ in pairs]
    for quota in cluster.quotas:
        own: dict[int, int] = {}  # user (or -1 = all) -> counter
        for position, pair in enumerate(pairs.tolist()):
            pool, user = divmod(pair, width)
            if quota.pool and (pool == 0 or workload.pool_names[pool - 1] != quota.pool):
                continue
            if quota.user not in ("", EACH_USER, workload.user_names[user]):
                continue
            key = user if quota.user == EACH_USER else -1
            if key not in own:
                own[key] = len(limits)
                limits.append(round(quota.gpus * 1000))
                types.append(kinds.index(quota.gpu_type) if quota.gpu_type else ANY_TYPE)
            sets[position].append(own[key])
    sizes = [len(members) for members in sets]
    return QuotaCounters(
        limit=np.array(limits, np.int64),
        gpu_type=np.array(types, np.int32),
        job_set=job_set.astype(np.int32),
        set_begin=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32),
        members=np.array([member for members in sets for member in members], np.int32),
    )
