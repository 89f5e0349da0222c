"""LiveCluster: the nodes of a system as a Cluster, with ids that stay the same."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GPU_TYPES, GpuType, canonical_name
from berthline.model.limits import Quota

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.deploy.systems.contract import Look, NodeRecord

_LIKE = "V100-32"
"""What stands for the figures of an unknown GPU type, which no decision reads."""


class LiveCluster:
    """The nodes that any look has shown.

    A node gets the next id when it is first seen; a node that is no longer there keeps its id.

    Args:
        name: of the cluster.
        nodes: the nodes of an earlier run of the controller, by id.
    """

    def __init__(self, name: str, nodes: Iterable[NodeRecord] = ()) -> None:
        self.name = name
        self.nodes: list[NodeRecord] = list(nodes)
        self.ids: dict[str, int] = {node.name: at for at, node in enumerate(self.nodes)}
        self.changed: dict[str, NodeRecord] = {}
        """Nodes that are new or differ since this was last cleared."""
        self._facts: object = None
        self._cluster: Cluster | None = None

    def follow(self, look: Look) -> Cluster:
        """Return the cluster of a look; the same object while nothing changes."""
        for node in look.nodes:
            if node.name not in self.ids:
                self.ids[node.name] = len(self.nodes)
                self.nodes.append(node)
                self.changed[node.name] = node
            at = self.ids[node.name]
            if _facts(self.nodes[at]) != _facts(node):
                self.changed[node.name] = node
            self.nodes[at] = node
        facts = (
            look.quotas,
            tuple(map(_facts, self.nodes)),
        )
        if self._cluster is None or facts != self._facts:
            self._facts, self._cluster = facts, self._made(look)
        return self._cluster

    def _made(self, look: Look) -> Cluster:
        groups, extra = [], {}
        for node in self.nodes:
            kind = canonical_name(node.gpu_type)
            if kind not in GPU_TYPES:
                extra[kind] = dataclasses.replace(GPU_TYPES[_LIKE], name=kind, is_guess=True)
            groups.append(
                NodeGroup(
                    count=1,
                    gpus=max(node.gpus, 1),  # a node without GPUs takes no jobs of ours
                    gpu_type=kind,
                    cpus=node.cpus,
                    memory_mib=node.memory_mib,
                    pool=node.pool,
                )
            )
        types: list[GpuType] = list(extra.values())
        cluster = Cluster.from_groups(groups, name=self.name, extra_types=types)
        quotas = tuple(
            Quota(gpus=q.gpus, pool=q.pool, user=q.user, gpu_type=q.gpu_type) for q in look.quotas
        )
        return dataclasses.replace(cluster, quotas=quotas)


def _facts(node: NodeRecord) -> tuple[object, ...]:
    """Return what a cluster says of a node."""
    return node.gpus, node.gpu_type, node.cpus, node.memory_mib, node.pool
