"""Cluster: nodes with GPUs, in pools, as columns.

A node's *id* is its position; placement rules break every tie by the lowest id, so the order of
nodes is part of the semantics. A CLUSTER argument is a preset's name (cluster_presets.py), a TOML
file (cluster_file.py) or `uniform:NODESxGPUS[:TYPE]`. GPU types go by the names in gpu_types.py,
whatever the spelling in the input.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, unknown_name
from berthline.model.conditions import Conditions
from berthline.model.gpu_types import GpuType, gpu_type
from berthline.model.limits import Outage, PoolRules, Quota
from berthline.model.workload_columns import MAX_MEMORY_MIB
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from berthline.text_or_path import TextOrPath

NO_LIMIT = 0
"""The CPUs or memory of a node where the cluster does not limit them."""

MAX_GPUS = 2**23
"""GPUs of a cluster. Memory times GPUs must fit into 64 bits, hence this and MAX_MEMORY_MIB."""


class NodeGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`count` equal nodes, as written in a cluster file.

    They are in the named rack, or in new racks of `nodes_per_rack` nodes each. Nodes with
    neither share one rack. `mtbf` and `mttr` (seconds) replace
    the cluster's conditions of the same name; 0 = as the conditions say.
    """

    count: int
    gpus: int
    gpu_type: str = "V100"
    cpus: int = NO_LIMIT
    memory_mib: int = NO_LIMIT
    pool: str = ""
    rack: str = ""
    nodes_per_rack: int = 0
    mtbf: float = 0.0
    mttr: float = 0.0


@dataclasses.dataclass(frozen=True, eq=False)
class Cluster:
    """The nodes of a cluster.

    Attributes:
        name: its name in reports.
        gpus: GPUs on each node.
        cpus: CPU cores on each node; 0 = not limited.
        memory_mib: memory on each node; 0 = not limited.
        gpu_type: index into `types` for each node.
        pool: index into `pool_names` for each node; -1 = in no pool.
        types: the GPU types present.
        pool_names: names of the pools, each of which owns the nodes that point to it.
        rack: index into `rack_names` for each node.
        rack_names: names of the racks.
        mtbf: mean time between failures of each node in seconds; 0 = as `conditions` say.
        mttr: mean time to repair of each node in seconds; 0 = as `conditions` say.
        conditions: how jobs run here.
        quotas: limits on GPUs in use.
        pool_rules: for pools that borrow or lend.
        outages: when nodes are known to be down.
    """

    name: str
    gpus: npt.NDArray[np.int32]  # (num_nodes,)
    cpus: npt.NDArray[np.int32]  # (num_nodes,)
    memory_mib: npt.NDArray[np.int64]  # (num_nodes,)
    gpu_type: npt.NDArray[np.int32]  # (num_nodes,)
    pool: npt.NDArray[np.int32]  # (num_nodes,)
    types: tuple[GpuType, ...]
    pool_names: tuple[str, ...]
    rack: npt.NDArray[np.int32]  # (num_nodes,)
    rack_names: tuple[str, ...]
    mtbf: npt.NDArray[np.float64]  # (num_nodes,)
    mttr: npt.NDArray[np.float64]  # (num_nodes,)
    conditions: Conditions = dataclasses.field(default_factory=Conditions)
    quotas: tuple[Quota, ...] = ()
    pool_rules: Mapping[str, PoolRules] = dataclasses.field(default_factory=dict)
    outages: tuple[Outage, ...] = ()

    @property
    def num_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.gpus)

    @property
    def total_gpus(self) -> int:
        """How many GPUs there are."""
        return int(self.gpus.sum())

    @classmethod
    def uniform(cls, *, nodes: int, gpus_per_node: int, gpu_type: str = "V100") -> Cluster:
        """Return `nodes` equal nodes of `gpus_per_node` GPUs, with no CPU or memory limits.

        Raises:
            ConfigError: a number is not whole or too large, or the GPU type is unknown.
        """
        return cls.from_groups(
            [NodeGroup(count=nodes, gpus=gpus_per_node, gpu_type=gpu_type)],
            name=f"uniform:{nodes}x{gpus_per_node}:{gpu_type}",
        )

    @classmethod
    def from_groups(
        cls,
        groups: Iterable[NodeGroup],
        *,
        name: str = "cluster",
        extra_types: Iterable[GpuType] = (),
    ) -> Cluster:
        """Return a cluster of the given groups; node ids follow their order.

        Raises:
            ConfigError: a group has no nodes, no GPUs, or an unknown GPU type.
        """
        extra = {kind.name: kind for kind in extra_types}
        groups = list(groups)
        kinds: list[GpuType] = []  # of each group
        types: list[GpuType] = []
        pools: list[str] = []
        for number, group in enumerate(groups, start=1):
            _check_whole(group, f"{name}, node group {number}")
            kind = _checked_type(group, f"{name}, node group {number}", extra)
            kinds.append(kind)
            if kind not in types:
                types.append(kind)
            if group.pool and group.pool not in pools:
                pools.append(group.pool)
        if not groups:
            raise ConfigError("a cluster needs at least one node", where=name)
        counts = [group.count for group in groups]
        if sum(counts) > 1_000_000 or sum(g.count * g.gpus for g in groups) > MAX_GPUS:
            raise ConfigError(
                "the cluster is too large",
                where=name,
                expected=f"up to 1,000,000 nodes and {MAX_GPUS:,} GPUs",
            )

        def spread(values: Sequence[float], dtype: type[np.generic] = np.int32) -> npt.NDArray[Any]:
            column = np.repeat(np.array(values, dtype=dtype), counts)
            column.setflags(write=False)
            return column

        rack, rack_names = _racks(groups)
        return cls(
            name=name,
            rack=rack,
            rack_names=rack_names,
            mtbf=spread([g.mtbf for g in groups], np.float64),
            mttr=spread([g.mttr for g in groups], np.float64),
            gpus=spread([g.gpus for g in groups]),
            cpus=spread([g.cpus for g in groups]),
            memory_mib=spread([g.memory_mib for g in groups], np.int64),
            gpu_type=spread([types.index(kind) for kind in kinds]),
            pool=spread([pools.index(g.pool) if g.pool else -1 for g in groups]),
            types=tuple(types),
            pool_names=tuple(pools),
        )

    @classmethod
    def from_toml(cls, path: Path | str) -> Cluster:
        """Read a cluster file.

        Raises:
            ConfigError: the file cannot be read, or does not describe a cluster.
        """
        from berthline.model.cluster_file import read_cluster_file

        return read_cluster_file(path)

    def with_conditions(self, changes: Mapping[str, float]) -> Cluster:
        """Return this cluster with some of its conditions changed."""
        return dataclasses.replace(self, conditions=self.conditions.replace(changes))

    @classmethod
    def parse(cls, text: TextOrPath) -> Cluster:
        """Return the cluster that a CLUSTER argument names: a preset, a shape or a TOML file.

        Raises:
            ConfigError: no cluster has this name, or the file does not describe one.

        Example:
            >>> Cluster.parse("uniform:64x8:V100").total_gpus
            512
            >>> Cluster.parse("philly").total_gpus
            2490
        """
        from berthline.model.cluster_presets import PRESETS

        text = text_of("cluster", text)
        match = re.fullmatch(r"uniform:(\d+)x(\d+)(?::([\w-]+))?", text)
        if match:
            nodes, gpus, kind = match.groups()
            return cls.uniform(nodes=int(nodes), gpus_per_node=int(gpus), gpu_type=kind or "V100")
        if text in PRESETS:
            return PRESETS[text].cluster()
        if text.endswith(".toml") or Path(text).is_file():
            return cls.from_toml(text)
        what, expected, hint = unknown_name("cluster", text, PRESETS)
        raise ConfigError(
            what,
            expected="uniform:NODESxGPUS[:TYPE], such as uniform:64x8:V100; a TOML file; or "
            + expected,
            hint=hint or "one node with all GPUs (no placement at all) is uniform:1x512",
        )


def _check_whole(group: NodeGroup, where: str) -> None:
    """Raise unless the numbers of a group are whole: a column would round them without a word."""
    for field in ("count", "gpus", "cpus", "memory_mib"):
        value: object = getattr(group, field)
        try:
            is_whole = not isinstance(value, bool) and operator.index(value) == value  # type: ignore[arg-type]
        except TypeError:
            is_whole = False
        if not is_whole:
            raise ConfigError(
                f"{field} of a node group is {value!r}", where=where, expected="a whole number"
            )


def _checked_type(group: NodeGroup, where: str, extra: Mapping[str, GpuType]) -> GpuType:
    """Check the numbers of a group; return its GPU type."""
    for field in ("count", "gpus"):
        value = getattr(group, field)
        if value < 1:
            raise ConfigError(f"{field} is {value}", where=where, expected="1 or more")
    for field, highest in (("cpus", 2**31 - 1), ("memory_mib", MAX_MEMORY_MIB)):
        value = getattr(group, field)
        if not 0 <= value <= highest:
            raise ConfigError(
                f"{field} is {value}",
                where=where,
                expected="0 (no limit) or more" if value < 0 else f"at most {highest}",
            )
    try:
        kind = extra[group.gpu_type] if group.gpu_type in extra else gpu_type(group.gpu_type)
    except ConfigError as error:
        raise ConfigError(
            error.what, where=where, expected=error.expected, hint=error.hint
        ) from None
    for field in ("mtbf", "mttr", "nodes_per_rack"):
        value = getattr(group, field)
        if not (value == 0 or value >= 1):
            raise ConfigError(
                f"{field} is {value:g}", where=where, expected="1 or more; or 0, the default"
            )
    if group.rack and group.nodes_per_rack:
        raise ConfigError(
            "rack and nodes_per_rack are both given", where=where, expected="one of them"
        )
    return kind


def _racks(groups: Sequence[NodeGroup]) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return each node's rack and the racks' names."""
    rack: list[int] = []
    names: list[str] = []
    numbered = 0
    for group in groups:
        for position in range(group.count):
            if group.nodes_per_rack and not group.rack:
                if position % group.nodes_per_rack == 0:
                    numbered += 1
                name = f"rack{numbered}"
            else:
                name = group.rack or "rack0"
            # Equal names are adjacent, so the last one nearly always matches.
            if not names or names[-1] != name:
                if name in names:
                    rack.append(names.index(name))
                    continue
                names.append(name)
            rack.append(len(names) - 1)
    column = np.array(rack, np.int32)
    column.setflags(write=False)
    return column, tuple(names)
