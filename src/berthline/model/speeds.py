"""Speeds of the nodes of a cluster, and of the GPU types that run times refer to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.model.gpu_types import GPU_TYPES, canonical_name

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import FloatColumn, Workload


def speeds(workload: Workload, cluster: Cluster) -> tuple[FloatColumn, FloatColumn]:
    """Return the speed of each node, and of the GPU type that each job's run time refers to.

    All are 1 if the conditions say that GPU types do not differ.
    """
    if not cluster.conditions.gpu_speeds:
        return np.ones(cluster.num_nodes), np.ones(len(workload))
    speed = np.array([kind.speed for kind in cluster.types])[cluster.gpu_type]
    known = {kind.name: kind.speed for kind in (*GPU_TYPES.values(), *cluster.types)}
    of_set = [known[workload.reference_type]]
    for text in workload.gpu_type_sets:
        # A job that asks for one type has run on that type. Which types have nodes here does not
        # matter: otherwise the same job would be faster or slower for a node it does not use.
        written = [name.strip() for name in text.split("|")]
        asks_for_one = len({canonical_name(name) for name in written}) == 1
        names = [name for name in (*written, *map(canonical_name, written)) if name in known]
        of_set.append(known[names[0]] if asks_for_one and names else of_set[0])
    return speed, np.array(of_set)[workload.gpu_types + 1]
