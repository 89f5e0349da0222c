"""What a log does not say about its cluster, in a few values to choose from by the waits.

Some GPUs of a real cluster are always down, reserved or lost to packing, and users may hold only a
part at once. A log shows only what that does to waits. Both are tried on the models that are
closest without them, on the days on which models are chosen.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from berthline.evaluate.whatif.candidate_clusters import ClusterExcerpt, clusters_of_pools
from berthline.evaluate.whatif.log_excerpt import parts_of
from berthline.model.limits import Quota
from berthline.traces.inspect.infer_cluster import Conclusion
from berthline.traces.inspect.infer_nodes import peak_use

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.cluster import Cluster
    from berthline.model.workload import FloatColumn, Workload

AVAILABLE = (0.97, 0.94, 0.9, 0.85, 0.8, 0.7)
"""Shares of the inferred GPUs that are tried, besides all."""

USER_LIMITS = (1 / 4, 1 / 8, 1 / 16)
"""Shares of all GPUs that are tried as a limit for each user, besides the most that any user has
held at once."""

FEWEST_BEFORE = 50
"""Jobs before the period from which that most is taken; with fewer, it is taken from all jobs."""


def with_fewer_gpus(setting: ClusterExcerpt) -> list[ClusterExcerpt]:
    """Return the setting with each of the AVAILABLE shares of its GPUs.

    Empty if the cluster was given, or if the log has lists of nodes: it then shows which nodes ran
    jobs. A job that is wider than what is left takes all of it.
    """
    if setting.inferred is None or setting.inferred.nodes:
        return []
    return [_with_share(setting, share) for share in AVAILABLE]


def _with_share(setting: ClusterExcerpt, share: float) -> ClusterExcerpt:
    cluster = share_of(setting.cluster, share)
    jobs = setting.excerpt.workload
    # Without lists of nodes, a pool is one node.
    room = cluster.gpus[np.maximum(jobs.pool, 0)]
    narrowed = dataclasses.replace(jobs, gpus=np.minimum(jobs.gpus, room))
    excerpt = dataclasses.replace(setting.excerpt, workload=narrowed)
    parts = parts_of(excerpt, clusters_of_pools(cluster))
    return dataclasses.replace(
        setting, cluster=cluster, excerpt=excerpt, parts=parts, available=share
    )


def share_of(cluster: Cluster, share: float) -> Cluster:
    """Return the cluster with a share of the GPUs of each node, at least one."""
    gpus = np.maximum(np.rint(cluster.gpus * share), 1).astype(np.int32)
    return dataclasses.replace(cluster, gpus=gpus)


def with_user_limits(setting: ClusterExcerpt, most_held: float) -> list[ClusterExcerpt]:
    """Return the setting with limits on the GPUs that a user holds at once.

    Empty if the cluster was given. A user with a job wider than the limit has that width as limit:
    the job did run.

    Args:
        setting: the cluster and the jobs.
        most_held: the most GPUs that any user has held at once.
    """
    if setting.inferred is None:
        return []
    total = setting.cluster.total_gpus
    limits = {float(max(round(share * total), 1)) for share in USER_LIMITS}
    if most_held < total:
        limits.add(float(np.ceil(most_held)))
    found = []
    for limit in sorted(limits, reverse=True):
        of_users = _limits_of_users(setting.excerpt.workload, limit)
        if of_users:
            cluster = with_quotas(setting.cluster, of_users)
            parts = parts_of(setting.excerpt, clusters_of_pools(cluster))
            found.append(
                dataclasses.replace(
                    setting, cluster=cluster, parts=parts, user_limit=limit, user_limits=of_users
                )
            )
    return found


def _limits_of_users(jobs: Workload, limit: float) -> dict[str, float]:
    """Return the limit of each user whose jobs together could exceed it."""
    users = len(jobs.user_names)
    together = np.bincount(jobs.user, jobs.gpu_amount, users)
    widest = np.zeros(users)
    np.maximum.at(widest, jobs.user, np.ceil(jobs.gpu_amount))
    return {
        jobs.user_names[user]: max(limit, float(widest[user]))
        for user in np.flatnonzero(together > np.maximum(widest, limit)).tolist()
    }


def with_quotas(cluster: Cluster, of_users: Mapping[str, float]) -> Cluster:
    """Return the cluster with a quota for each of the users."""
    quotas = tuple(Quota(gpus=gpus, user=user) for user, gpus in of_users.items())
    return dataclasses.replace(cluster, quotas=quotas)


def most_held_by_a_user(workload: Workload, start: FloatColumn, begin: float) -> float:
    """Return the most GPUs that any user held at once, before a time if there are enough jobs."""
    before = np.isfinite(start) & (start < begin)
    rows = np.flatnonzero(before if before.sum() >= FEWEST_BEFORE else np.isfinite(start))
    rows = rows[np.argsort(workload.user[rows], kind="stable")]
    if not len(rows):
        return 0.0
    bounds = np.flatnonzero(np.diff(workload.user[rows], prepend=-1))
    amount = workload.gpu_amount
    return max(
        float(peak_use(start[mine], start[mine] + workload.run[mine], amount[mine]))
        for mine in np.split(rows, bounds[1:])
    )


def limit_findings(setting: ClusterExcerpt) -> list[Conclusion]:
    """Return what was concluded from the waits; see Conclusion."""
    found = []
    if setting.available < 1:
        found.append(
            Conclusion(
                what="available",
                found=f"{setting.cluster.total_gpus:,} of them",
                evidence=f"of all and {len(AVAILABLE)} smaller shares, the one whose waits come "
                "closest to the recorded ones",
                uncertainty="nodes may have been down or reserved, or lost to packing; the log "
                "does not say when",
            )
        )
    if setting.user_limit is not None:
        found.append(
            Conclusion(
                what="users",
                found=f"at most {setting.user_limit:,.0f} GPUs at once for each, or the user's "
                "widest job",
                evidence=f"of none and {1 + len(USER_LIMITS)} limits, the one whose waits come "
                f"closest to the recorded ones; {len(setting.user_limits):,} users could reach it",
                uncertainty="the real limits may differ from user to user, or count jobs or "
                "GPU-hours",
            )
        )
    return found
