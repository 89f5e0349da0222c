"""Utilization: how much of the cluster jobs held, how evenly, and how much of it was up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.stretches import shares

if TYPE_CHECKING:
    from berthline.evaluate.metrics.stretches import Clock, Stretches
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import FloatColumn, Workload


class Utilization(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the cluster: of its GPUs and of its TFLOPS in use, and of its GPUs that were up."""

    gpu: float
    flops: float
    available: float


def busy_gpu_seconds(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    ran: Stretches,
    clock: Clock | None = None,
) -> FloatColumn:
    """Return the GPU-seconds that jobs held on each node, (num_nodes,).

    Formula: sum over the stretches on the node of GPUs x (stop - begin); a job on part of a GPU
    holds that part, a job without GPUs nothing. Jobs running at the end: until the end. Waiting and
    rejected jobs hold nothing.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        ran: from `stretches`.
        clock: what to count instead of seconds.
    """
    busy = np.zeros(cluster.num_nodes)
    for part in shares(log, workload, ran):
        busy += np.bincount(part.node, part.gpu_seconds(clock), minlength=cluster.num_nodes)
    return busy


def gpu_utilization(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the share of the cluster's GPUs held by jobs, between 0 and 1.

    Formula: busy GPU-seconds / (GPUs x end), over [0, end]; the denominator includes GPUs of nodes
    that are down. 0 for an empty run.

    Args:
        busy: from `busy_gpu_seconds`, which says how unfinished and rejected jobs count.
        cluster: the nodes.
        end: end of the log in seconds.
    """
    return _share(float(busy.sum()), cluster.total_gpus * end)


def flops_utilization(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the share of the cluster's TFLOPS held by jobs, between 0 and 1.

    Formula: `gpu_utilization` with each GPU weighted by the TFLOPS of its type. A GPU counts as
    used in full while a job holds it, a part of one as that part.
    """
    tflops = of_node(cluster, [kind.tflops for kind in cluster.types])
    return _share(float(busy @ tflops), float(cluster.gpus @ tflops) * end)


def available_share(down: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return the share of the cluster's GPU-seconds in which their nodes were up.

    Formula: 1 - sum over nodes of GPUs x seconds down / (GPUs x end). 1 for an empty run.

    Args:
        down: seconds for which each node was down, (num_nodes,).
        cluster: the nodes.
        end: end of the log in seconds.
    """
    return 1.0 - _share(float(down @ cluster.gpus), cluster.total_gpus * end)


def load_imbalance(busy: FloatColumn, cluster: Cluster, end: float) -> float:
    """Return how unevenly the nodes were used, between 0 (evenly) and 0.5.

    Formula: population standard deviation over nodes of busy GPU-seconds / (GPUs x end). Jobs
    count as in `busy_gpu_seconds`. 0 for an empty run.
    """
    return float(np.std(busy / (cluster.gpus * end))) if end > 0 else 0.0


def of_node(cluster: Cluster, of_type: list[float]) -> FloatColumn:
    """Return a figure of the GPU types, such as their TFLOPS, for each node."""
    return np.array(of_type, dtype=np.float64)[cluster.gpu_type]


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
