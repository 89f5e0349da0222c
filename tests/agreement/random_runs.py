"""Random workloads, clusters and schedulers on which the two simulators must agree.

One number makes one run. The mix is chosen so that ties, blocked heads, gangs over several nodes,
CPU and memory limits, pools, GPU types, rejected jobs and overdue estimates all happen often.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.workload import Workload
from berthline.policies.orders import ORDERS
from berthline.policies.rules import DISCIPLINES, PLACEMENTS

POOLS = ("red", "blue")
TYPE_SETS = ("V100", "A100", "A100|V100", "T4")

GATES = (
    "?express-lane:T=50:r=0.25",
    "?[free_gpus - gpus - 2]",
    "?[where(queued_work > 500, 1, wait - 5)]",
    "?[can_start - 0.5]",
    "?[pool_queued_gpus - 2 * user_jobs]",
)
FORMULAS = (
    "[-wait * nodes_min + random]",
    "[user_usage / 100 + queue_len - 3 * running_jobs * gpus]",
    "[where(can_start, estimate, 1000 + estimate)]",
    "[min(work, 200) * fragmentation - utilization * priority]",
    "[tanh(slack / 100) + arrival_rate * gpus + ln(queued_gpus)]",
    "[sqrt(submit - 40) / (busy_gpus - free_gpus) + exp(memory_mib) ** 0.5]",
    "[floor(wait / 7) * (cpus >= 4) - abs(pool_free_gpus - gpus) + (pool_total_gpus != gpus)]",
    "[clip(max_node_gpus - gpus, 0, 3) + max_node_cpus / (1 + max_node_memory_mib) + queued_work]",
    "[gpus ** -1 + log2(estimate) * log10(now + 1) - num_users + max_priority]",
)


@dataclasses.dataclass(frozen=True)
class Run:
    """The arguments of one `simulate` call."""

    workload: Workload
    cluster: Cluster
    scheduler: str
    knowledge: str
    seed: int
    horizon: float | None


def random_cluster(rng: np.random.Generator) -> Cluster:
    kind = rng.integers(5)
    if kind == 0:
        return Cluster.uniform(nodes=1, gpus_per_node=int(rng.integers(1, 40)))
    if kind == 1:
        return Cluster.uniform(
            nodes=int(rng.integers(2, 30)), gpus_per_node=int(rng.integers(1, 9))
        )
    limited = kind == 4
    groups = [
        NodeGroup(
            count=int(rng.integers(1, 9)),
            gpus=int(rng.choice([1, 2, 4, 8])),
            gpu_type=str(rng.choice(["V100", "A100"])),
            pool=str(rng.choice(["", *POOLS])) if kind >= 3 else "",
            cpus=int(rng.choice([0, 8, 16])) if limited else 0,
            memory_mib=int(rng.choice([0, 64, 128])) if limited else 0,
        )
        for _ in range(int(rng.integers(1, 6)))
    ]
    return Cluster.from_groups(groups, name="mixed")


def random_workload(rng: np.random.Generator, cluster: Cluster) -> Workload:
    jobs = int(rng.integers(1, 60))
    widest = max(1, min(cluster.total_gpus, int(rng.choice([2, 8, 20, 40]))))
    run = rng.integers(1, 120, jobs).astype(float)
    gpus = rng.integers(1, widest + 1 + int(rng.integers(2)), jobs)
    mean_gap = float((run * gpus).mean()) / cluster.total_gpus / rng.choice([0.5, 1.0, 2.0])
    gaps = rng.exponential(mean_gap, jobs)
    if rng.integers(2):  # whole seconds give many ties
        gaps = np.rint(gaps)
    else:
        run = run + rng.random(jobs)
    return Workload.from_columns(
        submit=np.cumsum(gaps),
        run=run,
        gpus=gpus,
        estimate=np.maximum(1.0, np.rint(run * rng.lognormal(0.0, 0.7, jobs))),
        cpus=rng.choice([0, 1, 2, 4, 9, 30], jobs) if rng.integers(2) else 0,
        memory_mib=rng.choice([0, 3, 16, 70, 300], jobs) if rng.integers(2) else 0,
        priority=rng.integers(0, 4, jobs).astype(float),
        deadline=np.where(rng.random(jobs) < 0.3, np.inf, np.cumsum(gaps) + run * 2),
        user=rng.integers(0, 5, jobs),
        pool=rng.integers(-1, len(POOLS), jobs) if rng.integers(2) else -1,
        gpu_types=rng.integers(-1, len(TYPE_SETS), jobs) if rng.integers(3) == 0 else -1,
        pool_names=POOLS,
        gpu_type_sets=TYPE_SETS,
        rebase=bool(rng.integers(2)),
    )


def random_run(number: int) -> Run:
    """Return run `number`; the same number always gives the same run."""
    rng = np.random.default_rng([number, 0xA9])
    cluster = random_cluster(rng)
    workload = random_workload(rng, cluster)
    order = str(rng.choice([*ORDERS, *FORMULAS]))
    gate = str(rng.choice(GATES)) if rng.random() < 0.3 else ""
    discipline = str(rng.choice([*DISCIPLINES]))
    placement = str(rng.choice([*PLACEMENTS]))
    return Run(
        workload=workload,
        cluster=cluster,
        scheduler=f"{order}+{discipline}@{placement}{gate}",
        knowledge=str(rng.choice(["estimate", "predicted", "exact", "none"])),
        seed=int(rng.integers(1000)),
        horizon=float(rng.integers(1, 400)) if rng.random() < 0.15 else None,
    )
