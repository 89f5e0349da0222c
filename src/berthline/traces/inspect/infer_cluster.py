"""The cluster of an accounting log, as far as the log shows it.

If jobs have lists of nodes, a node has as many GPUs as jobs ever held on it at once, and partitions
whose jobs ran on the same nodes share them. Without lists of nodes, only the number of GPUs in use
at once is known. Both are lower bounds: unused GPUs do not appear in a log. Therefore every finding
comes with its evidence and its uncertainty.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GPU_TYPES, canonical_name
from berthline.model.history import NOT_RECORDED, History
from berthline.traces.inspect.impossible_records import impossible_use
from berthline.traces.inspect.infer_nodes import (
    completed,
    components,
    job_classes,
    kinds_of_nodes,
    natural,
    peak_use,
    peaks,
    pool_labels,
    spelled,
)
from berthline.traces.reading.host_lists import expand_hosts

if TYPE_CHECKING:
    from berthline.model.workload import FloatColumn, Workload

NAME = "inferred"


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """A conclusion from the log.

    Attributes:
        what: its subject, such as `nodes`.
        found: the conclusion.
        evidence: the evidence in the log.
        uncertainty: how it could be wrong.
    """

    what: str
    found: str
    evidence: str
    uncertainty: str


@dataclasses.dataclass(frozen=True, eq=False)
class InferredCluster:
    """A cluster, and which of its pools each job belongs to.

    Attributes:
        cluster: its nodes; all GPUs are equally fast, so that recorded run times stay valid.
        pool: for each job, an index into the cluster's pools; -1 = there are no pools.
        findings: the conclusions, with their evidence.
        nodes: for each list of nodes in the history, the nodes of the cluster; empty = the log has
            no such lists.
    """

    cluster: Cluster
    pool: npt.NDArray[np.int32]  # (num_jobs,)
    findings: list[Conclusion]
    nodes: list[npt.NDArray[np.int64]]


def infer_cluster(workload: Workload, *, apart: bool = False) -> InferredCluster:
    """Return the cluster that a log was recorded on.

    Args:
        workload: its jobs, with their history.
        apart: if nodes are not recorded, give every partition its own nodes, instead of one set
            for all.
    """
    history = workload.history or History(np.full(len(workload), np.nan))
    known = np.isfinite(history.start)
    if history.nodes is not None and (history.nodes[known] != NOT_RECORDED).any():
        return _from_nodes(workload, history)
    return _from_use(workload, history, apart=apart and len(workload.pool_names) > 1)


def _from_use(workload: Workload, history: History, *, apart: bool) -> InferredCluster:
    """Return one node, or one for each partition, with as many GPUs as were in use at once."""
    known = np.isfinite(history.start)
    start, amount = history.start[known], workload.gpu_amount[known]
    end = start + workload.run[known]
    widest = int(workload.gpus.max())
    kind = spelled((workload.reference_type,))
    stated = workload.provenance.get("max_procs")
    pool = np.full(len(workload), -1, np.int32)
    if apart:
        groups = []
        for index, name in enumerate(workload.pool_names):
            mine = workload.pool[known] == index
            peak = peak_use(start[mine], end[mine], amount[mine])
            most = int(workload.gpus[workload.pool == index].max(initial=1))
            groups.append(
                NodeGroup(count=1, gpus=max(int(np.ceil(peak)), most), gpu_type=kind, pool=name)
            )
        pool = np.maximum(workload.pool, 0)
    else:
        peak = peak_use(start, end, amount)
        gpus = max(int(np.ceil(peak)), widest, 1) if stated is None else int(stated)
        groups = [NodeGroup(count=1, gpus=max(gpus, widest), gpu_type=kind)]
    total = sum(group.gpus for group in groups)
    by_header = stated is not None and not apart
    findings = [
        Conclusion(
            what="GPUs",
            found=f"{total:,}",
            evidence=f"the header of the file; at most {peak:,.0f} were in use at once"
            if by_header
            else "peak number in use at once" + (", in each partition" if apart else ""),
            uncertainty="some may have been down, or reserved"
            if by_header
            else "a lower bound: the GPUs may never have been all in use at once",
        ),
        Conclusion(
            what="nodes",
            found="one" if not apart else f"one for each of {len(groups)} partitions",
            evidence="the log has no lists of nodes",
            uncertainty="packing is not modelled: jobs never wait for GPUs on the same node",
        ),
    ]
    wrong = impossible_use(workload)
    if wrong is not None:
        findings.append(
            Conclusion(
                what="records",
                found="impossible ones",
                evidence=wrong.in_words(),
                uncertainty="waits recorded at that time cannot be modelled",
            )
        )
    if len(workload.pool_names) > 1:
        findings.append(
            Conclusion(
                what="pools",
                found="apart" if apart else "one for all",
                evidence=f"{len(workload.pool_names)} partitions; the choice that fits waits best",
                uncertainty="whether partitions share nodes is not in the log",
            )
        )
    return _cluster(groups, pool, findings, [])


def _from_nodes(workload: Workload, history: History) -> InferredCluster:
    """Return the nodes that jobs ran on, in pools of partitions and GPU types that share them."""
    assert history.nodes is not None  # checked by the caller
    known = np.isfinite(history.start) & (history.nodes != NOT_RECORDED)
    rows = np.flatnonzero(known)
    hosts = [expand_hosts(text) for text in history.node_lists]
    names = sorted({host for listed in hosts for host in listed}, key=natural)
    number = {name: index for index, name in enumerate(names)}
    numbers = [np.array([number[host] for host in listed], np.int64) for listed in hosts]
    width = np.array([len(listed) for listed in hosts])[history.nodes[rows]]
    job = np.repeat(rows, width)
    node = np.concatenate([numbers[code] for code in history.nodes[rows].tolist()])
    # The log has the total GPUs of all nodes; parts of GPUs are not rounded.
    amount = workload.gpu_amount[rows]
    share = np.where(width == 1, amount, np.ceil(amount / width))
    share = np.repeat(share, width)
    start = history.start[job]
    seen = peaks(node, start, start + workload.run[job], share, len(names))
    kinds = kinds_of_nodes(history, job, node, len(names))
    gpus = completed(names, kinds, np.maximum(np.ceil(seen).astype(int), 1))

    kinds_of_jobs, of_job = job_classes(workload, history)
    owner = components(of_job[job], node, len(kinds_of_jobs))
    pool_of_node = np.full(len(names), -1, np.int64)
    pool_of_node[node] = owner[of_job[job]]
    labels = pool_labels(kinds_of_jobs, owner, workload, history)
    used = np.unique(owner[of_job[rows]])
    several = len(used) > 1
    groups: list[NodeGroup] = []
    for index in range(len(names)):
        group = NodeGroup(
            count=1,
            gpus=int(gpus[index]),
            gpu_type=spelled(kinds[index]),
            pool=labels[pool_of_node[index]] if several else "",
        )
        groups.append(group)
    pool_names = list(dict.fromkeys(group.pool for group in groups)) if several else []
    # A class that never ran on a known node is assigned to the pool with most jobs.
    largest = Counter(owner[of_job[rows]].tolist()).most_common(1)[0][0]
    pool = np.full(len(workload), -1, np.int32)
    if several:
        place = [
            pool_names.index(labels[root if root in used else largest]) for root in owner.tolist()
        ]
        pool = np.array(place, np.int32)[of_job]
    findings = _node_findings(workload, history, rows, seen, gpus, kinds, pool_names)
    return _cluster(groups, pool, findings, numbers)


def _node_findings(
    workload: Workload,
    history: History,
    rows: npt.NDArray[np.int64],
    seen: FloatColumn,
    gpus: npt.NDArray[np.int64],
    kinds: list[tuple[str, ...]],
    pool_names: list[str],
) -> list[Conclusion]:
    start = history.start[rows]
    peak = peak_use(start, start + workload.run[rows], workload.gpu_amount[rows])
    sizes = Counter(gpus.tolist())
    raised = int((gpus > np.ceil(seen)).sum())
    findings = [
        Conclusion(
            what="nodes",
            found=f"{len(gpus):,}: "
            + ", ".join(
                f"{count:,} x {size}" for size, count in sorted(sizes.items(), reverse=True)
            ),
            evidence="lists of nodes; GPUs that jobs held at once on each"
            + (f", {raised} raised to the usual number of their kind" if raised else ""),
            uncertainty="nodes that ran no job are missing; outages are not modelled",
        ),
        Conclusion(
            what="GPUs",
            found=f"{int(gpus.sum()):,}",
            evidence=f"the nodes together; at most {peak:,.0f} were in use at once",
            uncertainty="a lower bound: GPUs that were never used are missing",
        ),
    ]
    named = sorted({name for kind in kinds for name in kind})
    if named:
        unknown = [name for name in named if canonical_name(name) not in GPU_TYPES]
        findings.append(
            Conclusion(
                what="GPU types",
                found=", ".join(named),
                evidence="the types that jobs were allocated (gres/gpu:TYPE) or asked for (gmodel)",
                uncertainty="a job stays on the type it ran on, so that its run time is valid"
                + (
                    f"; {', '.join(unknown)}: not known, so power figures are guesses"
                    * bool(unknown)
                ),
            )
        )
    if len(workload.pool_names) > 1 or pool_names:
        findings.append(
            Conclusion(
                what="pools",
                found=", ".join(pool_names) if pool_names else "one for all partitions",
                evidence=f"{len(workload.pool_names)} partitions; those whose jobs ran on the same "
                "nodes share a pool",
                uncertainty="partitions that share some nodes are assumed to share all",
            )
        )
    return findings


def _cluster(
    groups: list[NodeGroup],
    pool: npt.NDArray[np.int32],
    findings: list[Conclusion],
    nodes: list[npt.NDArray[np.int64]],
) -> InferredCluster:
    cluster = Cluster.from_groups(groups, name=NAME).with_conditions({"gpu_speeds": 0})
    return InferredCluster(cluster, pool, findings, nodes)
