"""Packing until the cluster is full, as in the paper on FGD (Weng et al., ATC 2023).

Pods arrive one after another, in a random order, and never end. A pod that does not fit fails and
is not tried again. The whole list arrives once, shuffled; then pods are drawn from it at random,
until all arrivals together would take 130 % of the cluster's GPUs. The measure is the share of GPUs
that stay unallocated; lower is better. Seeds decide the order; every placement gets the same seeds.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.errors import ConfigError, unknown_name
from berthline.evaluate.statistics.paired import Ratio, paired_ratio
from berthline.experiments.openb_pods import packing_cluster
from berthline.model.schedule import START
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from berthline.experiments.openb_pods import Pods
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

ARRIVES = 1.3
"""GPUs asked for by all pods that arrive, as a share of the cluster's."""
LEVELS = tuple(range(round(100 * ARRIVES) + 1))
"""Percentages of the cluster's GPUs that have been asked for, at which a curve has a point."""

DOT = "gpus * node_free_gpus / max_node_gpus ** 2 + cpus * node_free_cpus / max_node_cpus ** 2"
PLACEMENTS: dict[str, str] = {
    "fgd": "fgd",
    "fgd-gangs": "fgd-gangs",
    "best-fit": "best-fit",
    "best-fit, GPUs + CPUs": ("[node_free_gpus / max_node_gpus + node_free_cpus / max_node_cpus]"),
    "dot-product, largest": "dot-product",
    "dot-product, smallest": f"[{DOT}]",
    "random": "random",
    "first-fit": "first-fit",
    "worst-fit": "worst-fit",
    "defrag": "defrag",
    "balance": "balance",
}
"""The compared placements by their names here."""

PUBLISHED: dict[str, float] = {
    "fgd": 4.61,
    "best-fit, GPUs + CPUs": 6.92,
    "dot-product, smallest": 9.15,
    "random": 12.53,
}
"""Unallocated GPUs in % at the end, means of the authors' ten seeds (42 to 51).

From the results they publish beside their simulator (experiments/analysis/expected_results of
hkust-adsl/kubernetes-scheduler-simulator, openb_pod_list_default), for the rules that are the same:
their best-fit weighs free CPUs and GPUs alike, their dot-product takes the smallest product.
"""
PUBLISHED_ONLY: dict[str, float] = {"GpuPacking": 8.00, "GpuClustering": 8.12}
"""The same for the authors' rules that have no counterpart here."""
PUBLISHED_FEWER = 0.49
"""How many fewer GPUs FGD leaves unallocated than others, at most, from the abstract of the
paper."""
PUBLISHED_MORE_GPUS = 290
"""How many more GPUs it can use as a result."""

NODE_ORDERS = ("listed", "large-first", "shuffled")
"""How the ids of nodes follow each other, which decides ties: as the cluster lists them, nodes with
many GPUs first, or in another random order for each seed."""

_FAILS_AT_ONCE = "[-wait]"  # a gate that is open only at the pod's arrival


class Packed(msgspec.Struct, frozen=True, kw_only=True):
    """What one placement left unallocated, in % of the cluster's GPUs."""

    placement: str
    scheduler: str
    at_100: float
    """When the pods that have arrived ask for as many GPUs as there are; mean over seeds."""
    at_end: float
    """When no more pods arrive; mean over seeds."""
    low: float | None
    """At the end, 95 % interval of the (geometric) mean; None with one seed."""
    high: float | None
    of_fgd: Ratio
    """At the end, as a ratio to what FGD leaves on the same orders."""
    failed_pods: float
    published: float | None
    curve: list[float]
    """Mean over seeds at each of LEVELS."""


class Packing(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the experiment; the best placement first."""

    pods: str
    nodes: int
    gpus: int
    seeds: int
    node_order: str
    placements: list[Packed]

    @property
    def fgd(self) -> Packed:
        """The result of FGD."""
        return next(packed for packed in self.placements if packed.placement == "fgd")

    @property
    def published_rivals(self) -> list[Packed]:
        """The packing rules that FGD was published against: those with a figure, except random."""
        rivals = PUBLISHED.keys() - {"fgd", "random"}
        return [packed for packed in self.placements if packed.placement in rivals]

    def against(self, rival: Packed) -> tuple[float, float]:
        """Return how many fewer GPUs FGD leaves than a rival at the end: as a share and in GPUs."""
        fewer = 1 - self.fgd.at_end / rival.at_end
        return fewer, (rival.at_end - self.fgd.at_end) / 100 * self.gpus

    @property
    def fgd_wins(self) -> bool:
        """Whether FGD leaves fewer GPUs than all variants of best-fit, dot-product and random."""
        rivals = ("best-fit", "dot-product", "random")
        return all(
            packed.at_end > self.fgd.at_end
            for packed in self.placements
            if packed.placement.startswith(rivals)
        )

    @property
    def is_as_published(self) -> bool:
        """Whether the published ranking is found again.

        With nodes in another order than listed, other ties are a result, and no error.
        """
        return self.fgd_wins or self.node_order != "listed"


def arrivals(pods: Pods, total_gpus: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the rows of the pods that arrive, in order.

    Raises:
        ConfigError: no pod asks for a GPU.
    """
    if not pods.gpu_amount.any():
        raise ConfigError(
            f"no pod of {pods.source} asks for a GPU", expected="a pod list with GPU requests"
        )
    generator = np.random.Generator(np.random.Philox(seed))
    chunks = [generator.permutation(len(pods))]
    asked = pods.gpu_amount[chunks[0]].sum()
    while asked <= ARRIVES * total_gpus:
        chunks.append(generator.integers(0, len(pods), len(pods)))
        asked += pods.gpu_amount[chunks[-1]].sum()
    rows = np.concatenate(chunks)
    last = np.searchsorted(np.cumsum(pods.gpu_amount[rows]), ARRIVES * total_gpus, side="right")
    return rows[:last]


def in_node_order(cluster: Cluster, order: str, seed: int) -> Cluster:
    """Return the cluster with its nodes in one of NODE_ORDERS.

    Raises:
        ConfigError: there is no such order.
    """
    if order not in NODE_ORDERS:
        what, expected, hint = unknown_name("node order", order, NODE_ORDERS)
        raise ConfigError(what, expected=expected, hint=hint)
    if order == "listed":
        return cluster
    rows = np.argsort(-cluster.gpus, kind="stable")
    if order == "shuffled":
        rows = np.random.Generator(np.random.Philox(seed)).permutation(cluster.num_nodes)
    columns = ("gpus", "cpus", "memory_mib", "gpu_type", "pool", "rack", "mtbf", "mttr")
    return dataclasses.replace(cluster, **{name: getattr(cluster, name)[rows] for name in columns})


def pack(
    workload: Workload, cluster: Cluster, placement: str, seed: int
) -> tuple[npt.NDArray[np.float64], int]:
    """Return the unallocated GPUs in % at each of LEVELS, and how many pods failed.

    Args:
        workload: the pods, as `Pods.workload` returns them.
        cluster: from `packing_cluster`.
        placement: the placement of the scheduler.
        seed: seed of the placement `random`.
    """
    result = simulate(
        workload,
        cluster,
        f"fcfs+skip@{placement}?{_FAILS_AT_ONCE}",
        knowledge="none",
        seed=seed,
        horizon=float(workload.submit[-1]) + 1.0,
    )
    started = np.zeros(len(workload), np.bool_)
    started[result.log.job[result.log.kind == START]] = True
    amount = workload.gpu_amount
    asked = np.cumsum(amount)
    allocated = np.concatenate([[0.0], np.cumsum(np.where(started, amount, 0.0))])
    # A point counts the pods that arrived while at most that level was asked for.
    arrived = np.searchsorted(asked, np.array(LEVELS) / 100 * cluster.total_gpus, side="right")
    arrived[-1] = len(workload)
    unallocated = 100 * (1 - allocated[arrived] / cluster.total_gpus)
    return unallocated, len(workload) - int(started.sum())


def run_packing(
    pods: Pods,
    *,
    seeds: int,
    placements: Mapping[str, str] | None = None,
    cluster: Cluster | None = None,
    node_order: str = "listed",
    report: Callable[[int, int, str], None] = lambda *_: None,
) -> Packing:
    """Pack the cluster with every placement and seed.

    Args:
        pods: what arrives.
        seeds: number of orders of arrival, from seed 0.
        placements: as PLACEMENTS, the default; `fgd` must be among them.
        cluster: what to fill, with CPUs in thousandths; None = that of the trace.
        node_order: one of NODE_ORDERS.
        report: called with (done, total, name) before each placement and seed.
    """
    placements = PLACEMENTS if placements is None else placements
    cluster = packing_cluster() if cluster is None else cluster
    curves: dict[str, list[npt.NDArray[np.float64]]] = {name: [] for name in placements}
    failed = dict.fromkeys(placements, 0)
    done, total = 0, seeds * len(placements)
    for seed in range(seeds):
        workload = pods.workload(arrivals(pods, cluster.total_gpus, seed))
        nodes = in_node_order(cluster, node_order, seed)
        for name, placement in placements.items():
            report(done, total, f"{name}, seed {seed}")
            done += 1
            curve, failures = pack(workload, nodes, placement, seed)
            curves[name].append(curve)
            failed[name] += failures
    ends = {name: [float(curve[-1]) for curve in found] for name, found in curves.items()}
    packed = [
        _packed(name, placements[name], curves[name], ends[name], ends["fgd"], failed[name])
        for name in placements
    ]
    return Packing(
        pods=pods.source,
        nodes=cluster.num_nodes,
        gpus=cluster.total_gpus,
        seeds=seeds,
        node_order=node_order,
        placements=sorted(packed, key=lambda found: found.at_end),
    )


def gain_of_fgd(found: Packing) -> str:
    """Return what FGD gains over the worst of the packing rules that its paper compares with."""
    most = max(found.published_rivals, key=lambda packed: packed.at_end)
    fewer, more = found.against(most)
    return (
        f"fgd leaves {100 * fewer:.0f} % fewer than {most.placement}: {more:,.0f} more GPUs in use"
    )


def markdown_table(found: Packing) -> list[str]:
    """Return the ranking as lines of a Markdown table, as in docs/results/packing.md."""
    lines = [
        "| placement | at 100 % | at 130 % [95 %] | ratio to `fgd` [95 %] | published |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for packed in found.placements:
        ratio = packed.of_fgd
        lines.append(
            f"| {packed.placement} | {packed.at_100:.2f} | {packed.at_end:.2f} "
            f"[{packed.low:.2f}, {packed.high:.2f}] | {ratio.ratio:.2f} "
            f"[{ratio.low:.2f}, {ratio.high:.2f}] | "
            + ("-" if packed.published is None else f"{packed.published:.2f}")
            + " |"
        )
    lines += [f"| {name} | - | - | - | {share:.2f} |" for name, share in PUBLISHED_ONLY.items()]
    return lines


def orders_table(found: Sequence[Packing]) -> list[str]:
    """Return what each placement leaves in several node orders, as a Markdown table."""
    lines = [
        "| placement | " + " | ".join(packing.node_order for packing in found) + " |",
        "| --- |" + " ---: |" * len(found),
    ]
    for first in found[0].placements:
        same = [
            next(other for other in packing.placements if other.placement == first.placement)
            for packing in found
        ]
        shares = (f"{packed.at_end:.2f} [{packed.low:.2f}, {packed.high:.2f}]" for packed in same)
        lines.append(f"| {first.placement} | " + " | ".join(shares) + " |")
    return lines


def _packed(
    name: str,
    placement: str,
    curves: Sequence[npt.NDArray[np.float64]],
    ends: Sequence[float],
    ends_of_fgd: Sequence[float],
    failed: int,
) -> Packed:
    curve = np.mean(curves, axis=0)
    interval = paired_ratio(ends, [1.0] * len(ends))
    return Packed(
        placement=name,
        scheduler=placement,
        at_100=float(curve[100]),
        at_end=float(curve[-1]),
        low=interval.low,
        high=interval.high,
        of_fgd=paired_ratio(ends, ends_of_fgd),
        failed_pods=failed / len(ends),
        published=PUBLISHED.get(name),
        curve=curve.tolist(),
    )
