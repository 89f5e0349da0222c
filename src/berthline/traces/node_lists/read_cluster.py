"""Node lists of trace publishers, read as clusters.

A list is recognised by its content, like a trace; node_list_formats.py has all kinds. Nodes keep
the order of the file, and successive equal nodes form a group. Nodes without GPUs are left out and
counted. If a list names no GPU model, a guess is used and reported, unless the caller gives one.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError, TraceError
from berthline.model.cluster import NO_LIMIT, Cluster, NodeGroup
from berthline.model.gpu_types import gpu_type as find_gpu_type
from berthline.text_or_path import text_of
from berthline.traces.formats.alibaba import pai_tables
from berthline.traces.formats.google_2011.google_jobs import GPUS_PER_MACHINE
from berthline.traces.formats.google_2011.google_tables import MACHINE_EVENTS, own_parts, parts_in
from berthline.traces.node_lists.node_list_formats import (
    NODE_LIST_KINDS,
    NodeColumns,
    NodeListKind,
    node_list_kind,
)
from berthline.traces.reading.files import bare_name, is_directory, read_head
from berthline.traces.reading.quoted import shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    import numpy.typing as npt


@dataclasses.dataclass(frozen=True)
class NodeList:
    """The content of a node list.

    Attributes:
        kind: the kind of list, a key of `NODE_LIST_KINDS`.
        groups: the nodes with GPUs.
        nodes: number of nodes in the list.
        left_out: how many nodes were left out, by reason.
        assumed: assumptions about what the list does not state; empty = none.
    """

    kind: str
    groups: tuple[NodeGroup, ...]
    nodes: int
    left_out: dict[str, int]
    assumed: str = ""


def read_cluster(
    path: str | os.PathLike[str],
    *,
    gpu_type: str | None = None,
    gpus_per_machine: object = GPUS_PER_MACHINE.default,
    remark: Callable[[str], None] | None = None,
) -> Cluster:
    """Return the cluster that a publisher's node list describes.

    Args:
        path: the list; for Google's machine_events also a directory.
        gpu_type: for nodes whose model the list does not name; None = a guess that fits the list.
        gpus_per_machine: GPUs of Google's largest machine; smaller ones have proportionally fewer.
        remark: called with a sentence if nodes were left out, or something was assumed.

    Raises:
        ConfigError: a GPU model is not known, or no node has GPUs.
        TraceError: the file cannot be read, is not a node list, or has an invalid line.
    """
    path = Path(text_of("path", path))
    nodes = read_node_list(path, gpu_type=gpu_type, gpus_per_machine=gpus_per_machine)
    if remark is not None and (nodes.left_out or nodes.assumed):
        remark(f"{path}: {_remarks(nodes)}")
    return Cluster.from_groups(nodes.groups, name=bare_name(path.absolute(), ".csv"))


def _remarks(nodes: NodeList) -> str:
    """Return a sentence about nodes left out and assumptions."""
    parts = [
        f"{count:,} of {nodes.nodes:,} nodes left out: {why}"
        for why, count in nodes.left_out.items()
    ]
    if nodes.assumed:
        parts.append(f"assumed: {nodes.assumed}")
    return "; ".join(parts)


def read_node_list(
    path: Path,
    *,
    gpu_type: str | None = None,
    gpus_per_machine: object = GPUS_PER_MACHINE.default,
) -> NodeList:
    """Return the content of a node list; the arguments and errors are those of `read_cluster`."""
    files = _files_of(path)
    name = node_list_kind(_head(files[0]))
    if name is None:
        raise TraceError(
            "this is not a node list",
            where=str(path),
            expected="one of the node lists " + ", ".join(NODE_LIST_KINDS),
            hint="clusters of your own are TOML files with [[nodes]] groups",
        )
    kind = NODE_LIST_KINDS[name]
    factor = float(GPUS_PER_MACHINE.convert(gpus_per_machine, where=str(path)))
    columns = kind.read(files, factor)
    groups, left_out = _groups(columns, gpu_type, kind)
    counts = columns.counts
    assumed = [columns.assumed] if columns.assumed else []
    if columns.models is None:
        assumed.append(f"GPU type {gpu_type or kind.guess}")
    return NodeList(
        kind=name,
        groups=groups,
        nodes=len(columns.gpus) if counts is None else int(counts.sum()),
        left_out={columns.without_gpus: left_out} if left_out else {},
        assumed="; ".join(assumed),
    )


def _files_of(path: Path) -> list[Path]:
    """Return the files of a node list; `path` is the file or a directory that contains them."""
    if not is_directory(path):
        return [path]
    machines = pai_tables.tables_in(path).get(pai_tables.MACHINE)
    if machines:
        return [machines]
    files = parts_in(path, MACHINE_EVENTS) or own_parts(path)
    if not files:
        raise TraceError(
            "this is a directory without a file named like a node list",
            where=str(path),
            expected=f"the file of a node list, or a directory with {MACHINE_EVENTS} or "
            f"{pai_tables.MACHINE}",
            hint="name one file in it",
        )
    return files


def _head(path: Path) -> bytes:
    """Return the first bytes of a node list; errors say `node list` instead of `trace file`."""
    try:
        return read_head(path)
    except TraceError as error:
        raise TraceError(
            error.what.replace("trace file", "node list"),
            where=error.where,
            expected="a list of nodes as text, plain or gzip'd",
            hint=error.hint,
        ) from None


def _groups(
    columns: NodeColumns, gpu_type: str | None, kind: NodeListKind
) -> tuple[tuple[NodeGroup, ...], int]:
    """Return the nodes with GPUs in groups, and the number of nodes without."""
    size = len(columns.gpus)
    counts = np.ones(size) if columns.counts is None else columns.counts
    has_gpus = (columns.gpus > 0) & (counts > 0)
    if not has_gpus.any():
        raise ConfigError(
            f"none of the {size:,} nodes has GPUs",
            where=str(columns.table.path),
            expected="a node list with GPUs",
        )
    limits = [
        np.full(size, NO_LIMIT) if column is None else column
        for column in (columns.cpus, columns.memory_mib)
    ]
    types = _types(columns, has_gpus, gpu_type, kind)
    nodes = zip(
        columns.gpus[has_gpus].astype(int).tolist(),
        types,
        *(limit[has_gpus].astype(int).tolist() for limit in limits),
        [pool for pool, has in zip(columns.pools or [""] * size, has_gpus, strict=True) if has],
        counts[has_gpus].astype(int).tolist(),
        strict=True,
    )
    groups = [
        NodeGroup(
            count=sum(node[-1] for node in equal),
            gpus=gpus,
            gpu_type=kind,
            cpus=cpus,
            memory_mib=memory,
            pool=pool,
        )
        for (gpus, kind, cpus, memory, pool), equal in itertools.groupby(
            nodes, lambda node: node[:-1]
        )
    ]
    return tuple(groups), int(counts[columns.gpus <= 0].sum())


def _types(
    columns: NodeColumns,
    has_gpus: npt.NDArray[np.bool_],
    gpu_type: str | None,
    kind: NodeListKind,
) -> list[str]:
    """Return the name of the GPU type of each node with GPUs.

    Raises:
        ConfigError: a type is missing or unknown; the message has the line.
    """
    rows = np.flatnonzero(has_gpus).tolist()
    if columns.models is None:
        return [find_gpu_type(gpu_type or kind.guess).name] * len(rows)
    found: dict[str | None, str] = {}
    for row in rows:
        model = columns.models[row]
        if model in found:
            continue
        written = gpu_type if model is None else kind.names.get(model, model)
        where = f"{columns.table.path}, line {columns.table.line_of(row)}"
        if written is None:
            raise ConfigError(
                f"a node has {columns.gpus[row]:g} GPUs and no GPU model",
                where=where,
                expected="the name of a GPU model",
                hint="set it with gpu_type",
            )
        try:
            found[model] = find_gpu_type(written).name
        except ConfigError as error:
            raise ConfigError(
                f"unknown GPU type {shorten(written)}",
                where=where,
                expected=error.expected,
                hint=error.hint,
            ) from None
    return [found[columns.models[row]] for row in rows]
