"""Cluster files: TOML with `[[nodes]]` groups and their rules; see docs/reference/cluster.md."""

from __future__ import annotations

import dataclasses
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np

from berthline.errors import ConfigError, misfit, unknown_name
from berthline.model.cluster import MAX_GPUS, Cluster, NodeGroup
from berthline.model.gpu_types import GpuType, canonical_name
from berthline.model.limits import Outage, PoolRules, Quota

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """The layout of a cluster TOML file: a name, `[[nodes]]` groups, and their rules."""

    name: str = ""
    nodes: list[NodeGroup]
    gpu_types: dict[str, GpuTypeEntry] = {}
    conditions: dict[str, Any] = {}
    quotas: list[QuotaEntry] = []
    pools: dict[str, PoolEntry] = {}
    outages: list[OutageEntry] = []


_LAYOUT_OF_NODES = "[[nodes]] groups, each with count and gpus"
_LAYOUTS = {
    "quota": "gpus, and its scope: pool, user or gpu_type",
    "outage": "down, up, and where: nodes, rack or share",
    "gpu_types": "tflops, memory_mib, idle_w, peak_w; also speed, tflops_fp32, source and is_guess",
    "pools": "borrow or lend",
}
"""What is expected in the parts of a cluster file."""


def _named_tables(content: Mapping[str, Any]) -> Iterator[tuple[str, type, object]]:
    """Yield tables with user-chosen names, such as `[pools.NAME]`; msgspec's errors omit these."""
    for part, kind in {"gpu_types": GpuTypeEntry, "pools": PoolEntry}.items():
        tables = content.get(part)
        for name, table in tables.items() if isinstance(tables, dict) else ():
            yield f"[{part}.{name}]", kind, table


def read_cluster_file(path: Path | str) -> Cluster:
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
    cluster = Cluster.from_groups(layout.nodes, name=layout.name or path.stem, extra_types=extra)
    try:
        return _with_rules(cluster, layout)
    except ConfigError as error:
        raise ConfigError(
            error.what,
            where=", ".join(filter(None, (str(path), error.where))),
            expected=error.expected,
            hint=error.hint,
        ) from None


def _with_rules(cluster: Cluster, layout: ClusterFile) -> Cluster:
    """Return the cluster with the conditions, quotas, pool rules and outages of a file.

    Raises:
        ConfigError: one of them names a pool, rack, node or GPU type that is not there.
    """
    for name in layout.pools:
        _check_pool(cluster, name, f"[pools.{name}]")
    for name, value in layout.conditions.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConfigError(f"condition {name} is {value!r}", expected="a number")
    kinds = [kind.name for kind in cluster.types]
    quotas = []
    for number, entry in enumerate(layout.quotas, start=1):
        if entry.pool:
            _check_pool(cluster, entry.pool, f"quota {number}")
        kind = entry.gpu_type
        if kind and kind not in kinds:
            kind = canonical_name(kind)
        if kind and kind not in kinds:
            what, expected, hint = unknown_name("GPU type", entry.gpu_type, kinds)
            raise ConfigError(
                what, where=f"quota {number}", expected=f"{expected}, as in [[nodes]]", hint=hint
            )
        quotas.append(Quota(gpus=entry.gpus, pool=entry.pool, user=entry.user, gpu_type=kind))
    return dataclasses.replace(
        cluster,
        conditions=cluster.conditions.replace(layout.conditions),
        quotas=tuple(quotas),
        pool_rules={
            name: PoolRules(borrow=entry.borrow, lend=entry.lend)
            for name, entry in layout.pools.items()
        },
        outages=tuple(
            _outage(cluster, entry, f"outage {number}")
            for number, entry in enumerate(layout.outages, start=1)
        ),
    )


def _check_pool(cluster: Cluster, name: str, where: str) -> None:
    if name not in cluster.pool_names:
        what, expected, hint = unknown_name("pool", name, cluster.pool_names)
        if not cluster.pool_names:
            expected = "a pool of the nodes, but no node has a pool"
        raise ConfigError(what, where=where, expected=expected, hint=hint)


def _outage(cluster: Cluster, entry: OutageEntry, where: str) -> Outage:
    up = np.inf if entry.up is None else entry.up
    if not up > entry.down:
        raise ConfigError(
            f"down is {entry.down:g} and up is {up:g}",
            where=where,
            expected="up after down, in seconds",
        )
    nodes = set(entry.nodes)
    if entry.rack:
        if entry.rack not in cluster.rack_names:
            what, expected, hint = unknown_name("rack", entry.rack, cluster.rack_names)
            raise ConfigError(what, where=where, expected=expected, hint=hint)
        rack = cluster.rack_names.index(entry.rack)
        nodes.update(np.flatnonzero(cluster.rack == rack).tolist())
    nodes.update(range(round(entry.share * cluster.num_nodes)))
    if not nodes or not all(0 <= node < cluster.num_nodes for node in nodes):
        raise ConfigError(
            "the outage names no nodes of the cluster",
            where=where,
            expected=f"nodes = [0, ...] up to {cluster.num_nodes - 1}, a rack, or a share",
        )
    return Outage(down=entry.down, up=up, nodes=tuple(sorted(nodes)))
