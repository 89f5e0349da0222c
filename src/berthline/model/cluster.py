"""Cluster: nodes with GPUs, in pools, as columns.

A node's *id* is its position; placement rules break every tie by the lowest id, so the order of
nodes is part of the semantics. A CLUSTER argument is a TOML file or `uniform:NODESxGPUS[:TYPE]`.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, unknown_name
from berthline.model.gpu_types import GPU_TYPES, GpuType

if TYPE_CHECKING:
    from collections.abc import Iterable

NO_LIMIT = 0
"""Written for a node's CPUs or memory when the cluster does not limit them."""


class NodeGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`count` equal nodes, as written in a cluster file."""

    count: int
    gpus: int
    gpu_type: str = "V100"
    cpus: int = NO_LIMIT
    memory_mib: int = NO_LIMIT
    pool: str = ""


class ClusterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The layout of a cluster TOML file: a name and a list of `[[nodes]]` groups."""

    name: str = ""
    nodes: list[NodeGroup]
    gpu_types: dict[str, dict[str, float]] = {}


@dataclasses.dataclass(frozen=True, eq=False)
class Cluster:
    """The nodes of a cluster.

    Attributes:
        name: what reports call it.
        gpus: GPUs on each node.
        cpus: CPU cores on each node; 0 = not limited.
        memory_mib: memory on each node; 0 = not limited.
        gpu_type: index into `types` for each node.
        pool: index into `pool_names` for each node; -1 = in no pool.
        types: the GPU types present.
        pool_names: names of the pools, each of which owns the nodes that point to it.
    """

    name: str
    gpus: npt.NDArray[np.int32]  # (num_nodes,)
    cpus: npt.NDArray[np.int32]  # (num_nodes,)
    memory_mib: npt.NDArray[np.int64]  # (num_nodes,)
    gpu_type: npt.NDArray[np.int32]  # (num_nodes,)
    pool: npt.NDArray[np.int32]  # (num_nodes,)
    types: tuple[GpuType, ...]
    pool_names: tuple[str, ...]

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
        """Return `nodes` equal nodes of `gpus_per_node` GPUs, with no CPU or memory limits."""
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
        known = GPU_TYPES | {kind.name: kind for kind in extra_types}
        groups = list(groups)
        types: list[GpuType] = []
        pools: list[str] = []
        for number, group in enumerate(groups, start=1):
            where = f"{name}, node group {number}"
            for field in ("count", "gpus"):
                value = getattr(group, field)
                if value < 1:
                    raise ConfigError(f"{field} is {value}", where=where, expected="1 or more")
            for field in ("cpus", "memory_mib"):
                value = getattr(group, field)
                if value < 0:
                    raise ConfigError(
                        f"{field} is {value}", where=where, expected="0 (no limit) or more"
                    )
            if group.gpu_type not in known:
                what, expected, hint = unknown_name("GPU type", group.gpu_type, known)
                raise ConfigError(what, where=where, expected=expected, hint=hint)
            if known[group.gpu_type] not in types:
                types.append(known[group.gpu_type])
            if group.pool and group.pool not in pools:
                pools.append(group.pool)
        if not groups:
            raise ConfigError("a cluster needs at least one node", where=name)
        counts = [group.count for group in groups]
        if sum(counts) > 1_000_000 or sum(g.count * g.gpus for g in groups) > 2**31 - 1:
            raise ConfigError(
                "the cluster is too large", where=name, expected="up to 1,000,000 nodes"
            )

        def spread(values: list[int], dtype: type[np.generic] = np.int32) -> npt.NDArray[Any]:
            column = np.repeat(np.array(values, dtype=dtype), counts)
            column.setflags(write=False)
            return column

        return cls(
            name=name,
            gpus=spread([g.gpus for g in groups]),
            cpus=spread([g.cpus for g in groups]),
            memory_mib=spread([g.memory_mib for g in groups], np.int64),
            gpu_type=spread([types.index(known[g.gpu_type]) for g in groups]),
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
        path = Path(path)
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            layout = msgspec.convert(content, ClusterFile)
        except OSError as error:
            raise ConfigError(
                f"cannot read the cluster file: {error.strerror}", where=str(path)
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
            raise ConfigError(
                f"not a cluster file: {error}",
                where=str(path),
                expected="[[nodes]] groups, each with count and gpus",
                hint="see docs/reference/cluster.md",
            ) from None
        extra = []
        for type_name, fields in layout.gpu_types.items():
            try:
                extra.append(msgspec.convert({"name": type_name, **fields}, GpuType))
            except msgspec.ValidationError as error:
                raise ConfigError(
                    f"gpu_types.{type_name}: {error}",
                    where=str(path),
                    expected="tflops, memory_mib, idle_w, peak_w",
                ) from None
        return cls.from_groups(layout.nodes, name=layout.name or path.stem, extra_types=extra)

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """Return the cluster that a CLUSTER argument names.

        Example:
            >>> Cluster.parse("uniform:64x8:V100").total_gpus
            512
        """
        match = re.fullmatch(r"uniform:(\d+)x(\d+)(?::([\w-]+))?", text)
        if match:
            nodes, gpus, gpu_type = match.groups()
            return cls.uniform(
                nodes=int(nodes), gpus_per_node=int(gpus), gpu_type=gpu_type or "V100"
            )
        if text.endswith(".toml") or Path(text).is_file():
            return cls.from_toml(text)
        raise ConfigError(
            f"unknown cluster {text!r}",
            expected="uniform:NODESxGPUS[:TYPE], such as uniform:64x8:V100, or a TOML file",
            hint="one node with all GPUs (no placement at all) is uniform:1x512",
        )
