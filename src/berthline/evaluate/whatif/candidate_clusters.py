"""The clusters that a log may have been recorded on, each with the excerpt to simulate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.whatif.log_excerpt import (
    LogExcerpt,
    Nodes,
    Part,
    make_excerpt,
    nodes_of_pool,
    parts_of,
)
from berthline.model.cluster import Cluster
from berthline.traces.inspect.infer_cluster import InferredCluster, infer_cluster

if TYPE_CHECKING:
    from berthline.model.workload import Workload

GIVEN, WHOLE, APART = "as given", "as inferred", "partitions apart"
"""How the pools of a cluster were found."""


@dataclasses.dataclass(frozen=True, eq=False)
class ClusterExcerpt:
    """A cluster with the excerpt to simulate on it.

    Attributes:
        name: how its pools were found.
        inferred: the findings; None = the cluster was given.
        cluster: its nodes.
        excerpt: the jobs.
        parts: the parts that are simulated independently.
        pool: for each job of the whole log, an index into the cluster's pools; -1 = any.
        available: the share of the inferred GPUs that the cluster has.
        user_limit: the most GPUs that a user may hold at once; None = no limit.
        user_limits: the same for each user who could reach it; larger for users with wider jobs.
    """

    name: str
    inferred: InferredCluster | None
    cluster: Cluster
    excerpt: LogExcerpt
    parts: list[Part]
    pool: npt.NDArray[np.int32]  # (jobs of the log,)
    available: float = 1.0
    user_limit: float | None = None
    user_limits: Mapping[str, float] = dataclasses.field(default_factory=dict)


def settings_of(
    workload: Workload, cluster: Cluster | None, begin: float, end: float
) -> list[ClusterExcerpt]:
    """Return the possible clusters: the given one, or those that are consistent with the log."""
    inferred = infer_cluster(workload)
    if cluster is not None:
        return [_given(workload, cluster, inferred, begin, end)]
    may_be = {WHOLE: inferred}
    if not inferred.nodes and len(workload.pool_names) > 1:
        apart = infer_cluster(workload, apart=True)
        # Partitions that together held more GPUs than the cluster has do not have their own.
        if apart.cluster.total_gpus <= workload.provenance.get("max_procs", math.inf):
            may_be[APART] = apart
    found = []
    for name, each in may_be.items():
        pools = each.cluster.pool_names
        excerpt = make_excerpt(workload, each.pool, pools, each.nodes, begin=begin, end=end)
        parts = parts_of(excerpt, clusters_of_pools(each.cluster))
        found.append(ClusterExcerpt(name, each, each.cluster, excerpt, parts, each.pool))
    return found


def clusters_of_pools(cluster: Cluster) -> list[tuple[Cluster, Nodes]]:
    """Return a cluster for each pool with its nodes, or the whole one if there are no pools."""
    pools = range(len(cluster.pool_names))
    return [nodes_of_pool(cluster, index) for index in pools] or [_whole(cluster)]


def _whole(cluster: Cluster) -> tuple[Cluster, Nodes]:
    return cluster, np.arange(cluster.num_nodes)


def _given(
    workload: Workload, cluster: Cluster, inferred: InferredCluster, begin: float, end: float
) -> ClusterExcerpt:
    """Return the given cluster, with those pools of the jobs that the cluster has.

    Jobs are bound to their partitions, or else to the inferred pools (a user may edit and pass the
    file of an inferred cluster). If the nodes are those of the log, jobs that run at the begin stay
    on their nodes.
    """
    same_speed = cluster.with_conditions({"gpu_speeds": 0})
    pool = np.full(len(workload), -1, np.int32)
    names: tuple[str, ...] = ()
    for of_jobs, known in (
        (workload.pool, workload.pool_names),
        (inferred.pool, inferred.cluster.pool_names),
    ):
        if known and set(known) <= set(cluster.pool_names):
            pool, names = of_jobs, known
            break
    same_nodes = cluster.num_nodes == inferred.cluster.num_nodes and bool(
        (cluster.gpus >= inferred.cluster.gpus).all()
    )
    nodes = inferred.nodes if same_nodes else []
    excerpt = make_excerpt(workload, pool, names, nodes, begin=begin, end=end)
    place = np.array([cluster.pool_names.index(name) for name in names] + [-1], np.int32)
    return ClusterExcerpt(
        GIVEN, None, same_speed, excerpt, parts_of(excerpt, [_whole(same_speed)]), place[pool]
    )
