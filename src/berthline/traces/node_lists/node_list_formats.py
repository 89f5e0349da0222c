"""The kinds of node list: how each is recognised, and its columns of GPUs, CPUs and memory.

openb       Alibaba 2023: sn, cpu_milli, memory_mib, gpu, model
pai         Alibaba 2020: pai_machine_spec, without a header line
spot        Alibaba 2026: gpu_model, gpu_capacity_num, cpu_num, node_name
philly      Microsoft 2017: machineId, number of GPUs; the publisher's and the revised list
helios      SenseTime 2020: cluster_gpu_number.csv: date, GPUs of each virtual cluster, total
tiresias    num_switch, num_node_p_switch, num_gpu_p_node, num_cpu_p_node, mem_p_node
google      Google 2011: machine_events, without a header line, in parts
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from berthline.traces.formats.alibaba import pai_tables as pai
from berthline.traces.formats.detection import header_cells
from berthline.traces.formats.google_2011 import google_tables as google
from berthline.traces.formats.row_filter import NO_GPUS
from berthline.traces.reading.csv.csv_table import CsvTable

_MOST = 2**31 - 1  # the limit of a cluster's columns
_MIB = 1024  # in a GiB
_HELIOS_NODE_GPUS = 8


@dataclasses.dataclass(frozen=True)
class NodeColumns:
    """The nodes of a list.

    Attributes:
        table: their source, for errors.
        gpus: GPUs of each node.
        models: GPU models, None for a model without a name; None = the list has no models.
        cpus: CPU cores; None = not stated.
        memory_mib: memory; None = not stated.
        counts: number of nodes for each row; None = one each.
        pools: the pool of each row; None = there are no pools.
        without_gpus: why a node has no GPUs.
        assumed: assumptions; empty = none.
    """

    table: CsvTable
    gpus: npt.NDArray[np.float64]  # (num_nodes,)
    models: list[str | None] | None = None
    cpus: npt.NDArray[np.float64] | None = None
    memory_mib: npt.NDArray[np.float64] | None = None
    counts: npt.NDArray[np.float64] | None = None
    pools: list[str] | None = None
    without_gpus: str = NO_GPUS
    assumed: str = ""


@dataclasses.dataclass(frozen=True)
class NodeListKind:
    """One kind of node list.

    Attributes:
        read: returns its nodes from its files (Google's may be several) and the number of GPUs of
            Google's largest machine.
        header: the columns that its header line must have; empty = no header line.
        guess: the GPU type if the list has no models.
        names: the usual names of models for which the list has unusual ones.
    """

    read: Callable[[Sequence[Path], float], NodeColumns]
    header: tuple[str, ...] = ()
    guess: str = "V100"
    names: dict[str, str] = dataclasses.field(default_factory=dict)


def node_list_kind(head: bytes) -> str | None:
    """Return the kind of node list that a file is, by its first bytes, or None."""
    cells = set(header_cells(head))
    for name, kind in NODE_LIST_KINDS.items():
        if kind.header and set(kind.header) <= cells:
            return name
    if pai.recognise(head)[0] == pai.MACHINE:
        return "pai"
    return "google" if google.recognise(head)[0] == google.MACHINE_EVENTS else None


def _openb(files: Sequence[Path], _: float) -> NodeColumns:
    table = CsvTable(files[0], required=NODE_LIST_KINDS["openb"].header)
    return NodeColumns(
        table,
        gpus=table.numbers("gpu", lowest=0, highest=_MOST, whole=True),
        models=table.text("model").to_list(),
        cpus=np.floor(table.numbers("cpu_milli", lowest=0, highest=1e12, missing=0) / 1000),
        memory_mib=np.floor(table.numbers("memory_mib", lowest=0, missing=0)),
    )


def _pai(files: Sequence[Path], _: float) -> NodeColumns:
    table = pai.open_table(pai.MACHINE, files[0])
    memory = table.numbers("cap_mem", lowest=0, highest=1e12, missing=0)
    return NodeColumns(
        table,
        gpus=table.numbers("cap_gpu", lowest=0, highest=_MOST, whole=True),
        models=table.text("gpu_type").to_list(),
        cpus=np.floor(table.numbers("cap_cpu", lowest=0, highest=_MOST, missing=0)),
        memory_mib=np.floor(memory * _MIB),
    )


def _spot(files: Sequence[Path], _: float) -> NodeColumns:
    table = CsvTable(files[0], required=NODE_LIST_KINDS["spot"].header)
    return NodeColumns(
        table,
        gpus=table.numbers("gpu_capacity_num", lowest=0, highest=_MOST, whole=True),
        models=table.text("gpu_model").to_list(),
        cpus=np.floor(table.numbers("cpu_num", lowest=0, highest=_MOST, missing=0)),
    )


def _philly(files: Sequence[Path], _: float) -> NodeColumns:
    table = CsvTable(files[0], required=NODE_LIST_KINDS["philly"].header)
    return NodeColumns(
        table, gpus=table.numbers("number of GPUs", lowest=0, highest=_MOST, whole=True)
    )


def _tiresias(files: Sequence[Path], _: float) -> NodeColumns:
    table = CsvTable(files[0], required=NODE_LIST_KINDS["tiresias"].header)
    switches = table.numbers("num_switch", lowest=1, highest=10**6, whole=True)
    nodes = table.numbers("num_node_p_switch", lowest=0, highest=10**6, whole=True)
    return NodeColumns(
        table,
        gpus=table.numbers("num_gpu_p_node", lowest=0, highest=_MOST, whole=True),
        cpus=table.numbers("num_cpu_p_node", lowest=0, highest=_MOST, whole=True, missing=0),
        memory_mib=np.floor(table.numbers("mem_p_node", lowest=0, highest=1e12, missing=0) * _MIB),
        counts=switches * nodes,
    )


def _helios(files: Sequence[Path], _: float) -> NodeColumns:
    """Return the nodes of eight GPUs that each virtual cluster had on the last day of the table."""
    table = CsvTable(files[0], required=NODE_LIST_KINDS["helios"].header)
    dates = table.text("date")
    last = dates.fill_null("").arg_max() or 0
    pools = [name for name in table.columns if name not in NODE_LIST_KINDS["helios"].header]
    quotas = np.array(
        [table.numbers(name, lowest=0, highest=10**6, whole=True)[last] for name in pools]
    )
    return NodeColumns(
        table,
        gpus=np.full(len(pools), float(_HELIOS_NODE_GPUS)),
        counts=np.ceil(quotas / _HELIOS_NODE_GPUS),
        pools=pools,
        assumed=f"nodes of {_HELIOS_NODE_GPUS} GPUs; the quotas of {dates[last]}",
    )


def _google(files: Sequence[Path], gpus_per_machine: float) -> NodeColumns:
    """Return every machine that ever existed, with its last capacity."""
    import polars as pl

    events = []
    for file in files:
        table = google.open_part(file, google.MACHINE_EVENTS)
        google.microseconds(table)  # raises for invalid times
        capacity = table.numbers("CPUs", lowest=0, highest=1, missing=np.nan)
        cpu = pl.Series(capacity, nan_to_null=True)
        events.append(pl.DataFrame({"machine": table.text("machine ID"), "cpu": cpu}))
    machines = (
        pl.concat(events)
        .group_by("machine", maintain_order=True)
        .agg(pl.col("cpu").drop_nulls().last())
    )
    share = machines["cpu"].fill_null(0.0).to_numpy()
    return NodeColumns(
        table,
        gpus=np.floor(share * gpus_per_machine + 1e-9),
        without_gpus="too small for a GPU",
        assumed=f"{gpus_per_machine:g} GPUs in the largest machine, in others in proportion to "
        "their CPUs; every machine that ever existed",
    )


NODE_LIST_KINDS: dict[str, NodeListKind] = {
    "openb": NodeListKind(_openb, ("sn", "cpu_milli", "memory_mib", "gpu", "model")),
    "pai": NodeListKind(_pai, names=pai.TYPE_NAMES),
    "spot": NodeListKind(_spot, ("gpu_model", "gpu_capacity_num", "cpu_num", "node_name")),
    "philly": NodeListKind(_philly, ("machineId", "number of GPUs"), guess="P100"),
    "helios": NodeListKind(_helios, ("date", "total")),
    "tiresias": NodeListKind(
        _tiresias,
        ("num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"),
        guess="P100",
    ),
    "google": NodeListKind(_google),
}
"""Every kind by its name."""
