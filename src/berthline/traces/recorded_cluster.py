"""The cluster that an accounting log with lists of nodes was recorded on, as a CLUSTER argument."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from berthline.counted import counted
from berthline.errors import TraceError
from berthline.model.history import NOT_RECORDED
from berthline.traces.formats.format_table import detect_format
from berthline.traces.inspect.infer_cluster import infer_cluster
from berthline.traces.load import load_trace
from berthline.traces.reading.files import bare_name, read_head

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload


def lists_nodes(path: Path) -> bool:
    """Return whether a file is an accounting log with lists of nodes, by its first bytes."""
    try:
        head = read_head(path)
        found = detect_format(head, path)
    except TraceError:
        return False  # reading it as a node list, or as a trace, will say what is wrong
    return found is not None and found.lists_nodes is not None and found.lists_nodes(head, path)


def read_recorded_cluster(path: Path, remark: Callable[[str], None] | None = None) -> Cluster:
    """Return the cluster that a log was recorded on, inferred from its lists of nodes.

    Args:
        path: the log.
        remark: called with a sentence about what was inferred.

    Raises:
        TraceError: the log cannot be read.
    """
    workload = load_trace(path)
    cluster = recorded_cluster(workload)
    if cluster is None:  # a column of node lists without a single list
        cluster = infer_cluster(workload).cluster
    cluster = dataclasses.replace(cluster, name=bare_name(path))
    if remark is not None:
        remark(
            f"{path.name}: {cluster_words(cluster)}, as its jobs used them; GPUs that no job used "
            "are missing"
        )
    return cluster


def recorded_cluster(workload: Workload) -> Cluster | None:
    """Return the cluster that a log's lists of nodes show; None = it has none.

    Run times are not scaled on it: they were recorded there. Partitions whose jobs never shared a
    node are pools. If some shared nodes, there are no pools, because a job names one partition.
    """
    history = workload.history
    if history is None or history.nodes is None:
        return None
    if not (history.nodes[np.isfinite(history.start)] != NOT_RECORDED).any():
        return None
    cluster = infer_cluster(workload).cluster
    if set(cluster.pool_names) <= set(workload.pool_names):
        return cluster
    return dataclasses.replace(
        cluster, pool=np.full(cluster.num_nodes, -1, np.int32), pool_names=()
    )


def cluster_words(cluster: Cluster) -> str:
    """Return how large a cluster is."""
    return f"{counted(cluster.total_gpus, 'GPU')} on {counted(cluster.num_nodes, 'node')}"
