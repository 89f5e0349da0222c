"""Cluster: nodes with GPUs, in pools, as columns.

A node's *id* is its position; placement rules break every tie by the lowest id, so the order of
nodes is part of the semantics. A CLUSTER argument is a preset's name (presets.py), a TOML file or
`uniform:NODESxGPUS[:TYPE]`. GPU types go by the names in gpu_types.py, whatever spelling was given.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, misfit, unknown_name
from berthline.model.conditions import Conditions
from berthline.model.gpu_types import GpuType, canonical_name, gpu_type
from berthline.model.limits import Outage, PoolRules, Quota
from berthline.model.workload import MAX_MEMORY_MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

NO_LIMIT = 0
"""Written for a node's CPUs or memory when the cluster does not limit them."""

MAX_GPUS = 2**23
"""GPUs of a cluster. Memory times GPUs must fit into 64 bits, hence this and MAX_MEMORY_MIB."""


class NodeGroup(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`count` equal nodes, as written in a cluster file.

    They are in the rack that is named, or in racks of their own of `nodes_per_rack` nodes, or else
    in one rack with all other nodes for which nothing is said. `mtbf` and `mttr` (seconds) replace
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


Amount = Annotated[float, msgspec.Meta(ge=0)]


class GpuTypeEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A GPU type that a cluster file defines, in a table `[gpu_types.NAME]`; see GpuType."""

    tflops: Annotated[float, msgspec.Meta(gt=0)]
    memory_mib: Annotated[int, msgspec.Meta(ge=0)]
    idle_w: Amount
    peak_w: Amount
    tflops_fp32: Amount | None = None
    source: str = "the cluster file"
    is_guess: bool = False
    speed: Annotated[float, msgspec.Meta(gt=0)] | None = None


class QuotaEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A `[[quotas]]` entry; see Quota."""

    gpus: Annotated[float, msgspec.Meta(ge=0, le=MAX_GPUS)]
    pool: str = ""
    user: str = ""
    gpu_type: str = ""


class PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table `[pools.NAME]`; see PoolRules."""

    borrow: bool = False
    lend: bool = False


class OutageEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An `[[outages]]` entry: some nodes, a rack, or a share of all nodes (lowest ids first)."""

    down: Amount
    up: Amount | None = None
    nodes: list[int] = []
    rack: str = ""
    share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0


class ClusterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The layout of a cluster TOML file: a name, `[[nodes]]` groups, and what they are like."""

    name: str = ""
    nodes: list[NodeGroup]
    gpu_types: dict[str, GpuTypeEntry] = {}
    conditions: dict[str, Any] = {}
    quotas: list[QuotaEntry] = []
    pools: dict[str, PoolEntry] = {}
    outages: list[OutageEntry] = []


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
        extra = {kind.name: kind for kind in extra_types}
        groups = list(groups)
        kinds: list[GpuType] = []  # of each group
        types: list[GpuType] = []
        pools: list[str] = []
        for number, group in enumerate(groups, start=1):
            where = f"{name}, node group {number}"
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
                kind = (
                    extra[group.gpu_type] if group.gpu_type in extra else gpu_type(group.gpu_type)
                )
            except ConfigError as error:
                raise ConfigError(
                    error.what, where=where, expected=error.expected, hint=error.hint
                ) from None
            kinds.append(kind)
            if kind not in types:
                types.append(kind)
            if group.pool and group.pool not in pools:
                pools.append(group.pool)
            for field, lowest in (("mtbf", 1), ("mttr", 1), ("nodes_per_rack", 1)):
                value = getattr(group, field)
                if not (value == 0 or value >= lowest):
                    raise ConfigError(
                        f"{field} is {value:g}",
                        where=where,
                        expected=f"{lowest} or more; or 0, as if nothing were said",
                    )
            if group.rack and group.nodes_per_rack:
                raise ConfigError(
                    "rack and nodes_per_rack are both given", where=where, expected="one of them"
                )
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
        path = Path(path)
        table = ""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8"))
            for named, kind, entry in _named_tables(content):
                table = named
                msgspec.convert(entry, kind)
            table = ""
            layout = msgspec.convert(content, ClusterFile)
        except OSError as error:
            raise ConfigError(
                f"cannot read the cluster file: {error.strerror}", where=str(path)
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
            what, where, expected = misfit(
                error, {"nodes": "node group", "quotas": "quota", "outages": "outage"}, table=table
            )
            part = re.match(r"\[?(\w+)", where)
            raise ConfigError(
                f"not a cluster file: {what}",
                where=", ".join(filter(None, (str(path), where))),
                expected=expected or _LAYOUTS.get(part[1] if part else "", _LAYOUT_OF_NODES),
                hint="see docs/reference/cluster.md",
            ) from None
        extra = []
        for name, entry in layout.gpu_types.items():
            figures = msgspec.structs.asdict(entry)
            extra.append(GpuType(name=name, measured_speed=figures.pop("speed"), **figures))
        cluster = cls.from_groups(layout.nodes, name=layout.name or path.stem, extra_types=extra)
        try:
            return cluster.with_rules(layout)
        except ConfigError as error:
            raise ConfigError(
                error.what,
                where=", ".join(filter(None, (str(path), error.where))),
                expected=error.expected,
                hint=error.hint,
            ) from None

    def with_rules(self, layout: ClusterFile) -> Cluster:
        """Return this cluster with the conditions, quotas, pool rules and outages of a file.

        Raises:
            ConfigError: one of them names a pool, rack, node or GPU type that is not there.
        """
        for name in layout.pools:
            self._check_pool(name, f"[pools.{name}]")
        for name, value in layout.conditions.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise ConfigError(f"condition {name} is {value!r}", expected="a number")
        kinds = [kind.name for kind in self.types]
        quotas = []
        for number, entry in enumerate(layout.quotas, start=1):
            if entry.pool:
                self._check_pool(entry.pool, f"quota {number}")
            kind = entry.gpu_type
            if kind and kind not in kinds:
                kind = canonical_name(kind)
            if kind and kind not in kinds:
                what, expected, hint = unknown_name("GPU type", entry.gpu_type, kinds)
                raise ConfigError(
                    what, where=f"quota {number}", expected=f"{expected}, as the nodes", hint=hint
                )
            quotas.append(Quota(gpus=entry.gpus, pool=entry.pool, user=entry.user, gpu_type=kind))
        return dataclasses.replace(
            self,
            conditions=self.conditions.replace(layout.conditions),
            quotas=tuple(quotas),
            pool_rules={
                name: PoolRules(borrow=entry.borrow, lend=entry.lend)
                for name, entry in layout.pools.items()
            },
            outages=tuple(
                self._outage(entry, f"outage {number}")
                for number, entry in enumerate(layout.outages, start=1)
            ),
        )

    def _check_pool(self, name: str, where: str) -> None:
        if name not in self.pool_names:
            what, expected, hint = unknown_name("pool", name, self.pool_names)
            if not self.pool_names:
                expected = "a pool of the nodes, but none has one"
            raise ConfigError(what, where=where, expected=expected, hint=hint)

    def _outage(self, entry: OutageEntry, where: str) -> Outage:
        up = np.inf if entry.up is None else entry.up
        if not up > entry.down:
            raise ConfigError(
                f"down is {entry.down:g} and up is {up:g}",
                where=where,
                expected="up after down, in seconds",
            )
        nodes = set(entry.nodes)
        if entry.rack:
            if entry.rack not in self.rack_names:
                what, expected, hint = unknown_name("rack", entry.rack, self.rack_names)
                raise ConfigError(what, where=where, expected=expected, hint=hint)
            rack = self.rack_names.index(entry.rack)
            nodes.update(np.flatnonzero(self.rack == rack).tolist())
        nodes.update(range(round(entry.share * self.num_nodes)))
        if not nodes or not all(0 <= node < self.num_nodes for node in nodes):
            raise ConfigError(
                "it is no outage of nodes of the cluster",
                where=where,
                expected=f"nodes = [0, ...] up to {self.num_nodes - 1}, a rack, or a share",
            )
        return Outage(down=entry.down, up=up, nodes=tuple(sorted(nodes)))

    def with_conditions(self, changes: Mapping[str, float]) -> Cluster:
        """Return this cluster with some of its conditions changed."""
        return dataclasses.replace(self, conditions=self.conditions.replace(changes))

    @classmethod
    def parse(cls, text: str) -> Cluster:
        """Return the cluster that a CLUSTER argument names: a preset, a shape or a TOML file.

        Example:
            >>> Cluster.parse("uniform:64x8:V100").total_gpus
            512
            >>> Cluster.parse("philly").total_gpus
            2490
        """
        from berthline.model.presets import PRESETS

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


_LAYOUT_OF_NODES = "[[nodes]] groups, each with count and gpus"
_LAYOUTS = {
    "quota": "gpus, and whose: pool, user or gpu_type",
    "outage": "down, up, and which: nodes, rack or share",
    "gpu_types": "tflops, memory_mib, idle_w, peak_w; speed, tflops_fp32, source and is_guess too",
    "pools": "borrow or lend",
}
"""What is expected in the parts of a cluster file."""


def _named_tables(content: Mapping[str, Any]) -> Iterator[tuple[str, type, object]]:
    """Yield tables whose names the user chose, which msgspec does not tell, as `[pools.NAME]`."""
    for part, kind in {"gpu_types": GpuTypeEntry, "pools": PoolEntry}.items():
        tables = content.get(part)
        for name, table in tables.items() if isinstance(tables, dict) else ():
            yield f"[{part}.{name}]", kind, table


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
            # Names come in runs, so the last one is nearly always the one sought.
            if not names or names[-1] != name:
                if name in names:
                    rack.append(names.index(name))
                    continue
                names.append(name)
            rack.append(len(names) - 1)
    column = np.array(rack, np.int32)
    column.setflags(write=False)
    return column, tuple(names)
