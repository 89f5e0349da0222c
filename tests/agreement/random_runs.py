"""Random workloads, clusters and schedulers on which the two simulators must agree.

One number makes one run. The mix is chosen so that ties, blocked heads, gangs over several nodes,
CPU and memory limits, pools, GPU types, rejected jobs and overdue estimates all happen often. A few
runs in a hundred reach what small ones cannot: more than 64 nodes (several words of the native
core's bitmaps), gangs of 64 GPUs and more, queues longer than a block of the formula evaluator, and
clocks so large that a run time vanishes in rounding.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from tests.agreement.random_formulas import random_formula

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.workload import Workload
from berthline.policies.orders import ORDERS
from berthline.policies.rules import DISCIPLINES
from berthline.policies.scheduler import Scheduler
from berthline.policies.vocabulary import VOCABULARY

POOLS = ("red", "blue")
TYPE_SETS = ("P100", "H100", "H100|P100", "T4")
RAN_ON = ("h100", "unheard-of")
"""GPU types that run times were recorded on; one of them is not known."""

GATES = (
    "express-lane:T=50:r=0.25",
    "[free_gpus - gpus - 2]",
    "[where(queued_work > 500, 1, wait - 5)]",
    "[can_start - 0.5]",
    "[where(can_start, 1, wait - 30)]",
    "[pool_queued_gpus - 2 * user_jobs]",
    "[pool_free_gpus - gpus - 0.2 * pool_total_gpus]",
    "[running_jobs - gpus]",
    "[0.8 - user_share * num_users]",
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
    "[-user_share * gpus + user_jobs]",
    "[where(priority > 1, 0/0, priority)]",
    "[floor(random * 3) * (arrival_rate * 3600 - 5)]",
    "[where(queued_work > 300, gpus, -gpus) * estimate]",
    "[abs(pool_queued_gpus - 7) * where(queue_len > 4, 1, -1) * gpus]",
    "[(fragmentation - 0.4) * (gpus + random)]",
    "[(gpus - free_gpus / 3) * (gpus - free_gpus / 3)]",
    "[gpus * (free_gpus - total_gpus / 2)]",
    "[submit * where(running_jobs > 3, 1, -1)]",
    "[random * (queue_len - 3.5)]",
    "[estimate * (busy_gpus - pool_total_gpus / 3)]",
    "[gpus * (num_users - 2.5)]",
    "[(gpus - 3) * 0]",
    "[(gpus - 3) * 0 * wait]",
    # The sign hangs on a late bit of a sum: the order of the additions matters.
    "[random * (floor(queued_work * 1e12) - 2 * floor(queued_work * 5e11) - 0.5)]",
    "[gpus * (floor(user_usage * 1e12) - 2 * floor(user_usage * 5e11) - 0.5)]",
)
# Named orderings as they are when the tests are collected, whatever a test registers later.
NAMED_ORDERS = tuple(ORDERS)
# Words of jobs twice: an order that is the same for all jobs tests little.
WORDS = tuple(
    word.name
    for scopes in (("job", "cluster"), ("job",))
    for word in VOCABULARY.values()
    if word.scope in scopes
)
# The others are slow in the reference on wide clusters; random_model_runs.py has them all.
RULES = ("first-fit", "best-fit", "worst-fit", "random", "scatter")

SMALL, WIDE, LARGE_NODES, LONG, BURST, LATE = range(6)
SHARES = (0.78, 0.08, 0.05, 0.04, 0.01, 0.04)


@dataclasses.dataclass(frozen=True)
class Run:
    """The arguments of one `simulate` call."""

    workload: Workload
    cluster: Cluster
    scheduler: str
    knowledge: str
    seed: int
    horizon: float | None


def random_cluster(rng: np.random.Generator, shape: int = SMALL) -> Cluster:
    kind = rng.integers(5)
    if shape == BURST:  # few GPUs, so that the queue stays long
        return Cluster.uniform(nodes=int(rng.integers(1, 4)), gpus_per_node=8)
    if shape == LARGE_NODES:
        sizes, groups, most = [12, 20, 64, 65, 130], int(rng.integers(1, 4)), 9
    elif shape == WIDE:
        sizes, groups, most = [1, 2, 4, 8], int(rng.integers(3, 6)), 41
        kind = max(kind, 2)
    else:
        sizes, groups, most = [1, 2, 4, 8], int(rng.integers(1, 6)), 9
    if kind == 0:
        return Cluster.uniform(nodes=1, gpus_per_node=int(rng.integers(1, 40)))
    if kind == 1:
        return Cluster.uniform(
            nodes=int(rng.integers(2, 30)), gpus_per_node=int(rng.integers(1, 9))
        )
    limited = kind == 4
    return Cluster.from_groups(
        [
            NodeGroup(
                count=int(rng.integers(1, most)),
                gpus=int(rng.choice(sizes)),
                gpu_type=str(rng.choice(["P100", "H100"])),
                pool=str(rng.choice(["", *POOLS])) if kind >= 3 else "",
                cpus=int(rng.choice([0, 8, 16])) if limited else 0,
                memory_mib=int(rng.choice([0, 64, 128])) if limited else 0,
            )
            for _ in range(groups)
        ],
        name="mixed",
    )


def random_workload(rng: np.random.Generator, cluster: Cluster, shape: int = SMALL) -> Workload:
    fewest, most = {WIDE: (5, 30), LONG: (257, 700), BURST: (257, 400)}.get(shape, (1, 60))
    jobs = int(rng.integers(fewest, most))
    widest = max(1, min(cluster.total_gpus, int(rng.choice([2, 8, 20, 40]))))
    if shape in (WIDE, LARGE_NODES):
        widest = max(widest, cluster.total_gpus // int(rng.choice([2, 4, 10])))
    run = rng.integers(1, 120, jobs).astype(float)
    gpus = rng.integers(1, widest + 1 + int(rng.integers(2)), jobs)
    if shape == LARGE_NODES and rng.integers(2):  # sizes that differ by 64
        gpus = np.minimum(rng.choice([1, 2, 12, 20, 63, 64, 65, 76, 84], jobs), cluster.total_gpus)
    if rng.random() < 0.3:
        # Some can never run: they are rejected, but their arrival makes a decision point.
        gpus[rng.random(jobs) < rng.choice([0.1, 0.5])] = cluster.total_gpus + 1
    load = rng.choice([0.2, 0.35, 0.5]) if shape == LONG else rng.choice([0.5, 1.0, 2.0])
    mean_gap = float((run * gpus).mean()) / cluster.total_gpus / load
    if shape == BURST:
        mean_gap = 1e-3
    gaps = rng.exponential(mean_gap, jobs)
    if rng.integers(2):  # whole seconds give many ties
        gaps = np.rint(gaps)
    else:
        run = run + rng.random(jobs)
    if shape == LATE:
        gaps[0] = 1e16  # where neighbouring numbers are 2 s apart
    submit = np.cumsum(gaps)
    bias, spread = float(rng.choice([0.0, 0.0, -1.5])), float(rng.choice([0.0, 0.3, 0.7, 1.5]))
    estimate = np.maximum(1.0, np.rint(run * rng.lognormal(bias, spread, jobs)))
    if rng.random() < 0.2:  # some users state none
        estimate[1:][rng.random(jobs - 1) < 0.4] = np.nan
    return Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        estimate=estimate,
        cpus=rng.choice([0, 1, 2, 4, 9, 30], jobs) if rng.integers(2) else 0,
        memory_mib=rng.choice([0, 3, 16, 70, 300], jobs) if rng.integers(2) else 0,
        priority=rng.integers(-1, 4, jobs) * float(rng.choice([1.0, 0.3])),
        deadline=np.where(rng.random(jobs) < 0.3, np.inf, submit + run * 2),
        user=rng.integers(0, 5, jobs) * int(rng.integers(1, 4)),
        pool=[-1, 0, rng.integers(-1, len(POOLS), jobs)][rng.choice(3, p=[0.4, 0.2, 0.4])],
        gpu_types=[-1, 2, rng.integers(-1, len(TYPE_SETS), jobs)][rng.choice(3, p=[0.6, 0.1, 0.3])],
        pool_names=POOLS,
        gpu_type_sets=TYPE_SETS,
        **recorded_on(rng, jobs, ["V100", "V100", "recorded"]),
        rebase=shape != LATE and bool(rng.integers(2)),
    )


def recorded_on(rng: np.random.Generator, jobs: int, types: list[str]) -> dict[str, Any]:
    """Return the GPU types of run times, without a draw from `rng` that would change others."""
    own = rng.spawn(1)[0]
    return {
        "ran_on": own.integers(-1, len(RAN_ON), jobs) if own.random() < 0.3 else -1,
        "ran_on_types": RAN_ON,
        "reference_type": str(own.choice(types)),
    }


def random_scheduler(rng: np.random.Generator, shape: int = SMALL) -> str:
    """Return a scheduler; the slowest combinations are left out where jobs or nodes are many."""
    kind = rng.random()
    if shape == LONG or (kind < 0.5 and shape != BURST):
        order = str(rng.choice(NAMED_ORDERS))
    elif kind < 0.75:
        order = str(rng.choice(FORMULAS))
    else:
        order = f"[{random_formula(rng, WORDS, depth=int(rng.integers(1, 5)))}]"
    gate = ""
    if rng.random() < 0.3 and shape not in (LONG, BURST):
        gate = str(rng.choice(GATES))
        if rng.random() < 0.4:
            gate = f"[{random_formula(rng, WORDS, depth=int(rng.integers(1, 4)))}]"
    disciplines = [*DISCIPLINES][: 3 if shape in (LONG, BURST) else 4]
    return f"{order}+{rng.choice(disciplines)}@{rng.choice(RULES)}{'?' if gate else ''}{gate}"


def random_run(number: int) -> Run:
    """Return run `number`; the same number always gives the same run."""
    rng = np.random.default_rng([number, 0xA9])
    shape = int(rng.choice(len(SHARES), p=SHARES))
    cluster = random_cluster(rng, shape)
    workload = random_workload(rng, cluster, shape)
    scheduler = random_scheduler(rng, shape)
    knowledge = str(rng.choice(["estimate", "predicted", "exact", "none"]))
    if knowledge == "none" and rng.random() < 0.9 and Scheduler.parse(scheduler).needs_run_times:
        knowledge = "predicted"  # most of those would be refused
    horizon = None
    if rng.random() < 0.15 or shape == BURST:
        # Just past an event, or exactly at one.
        event = workload.submit[rng.integers(len(workload))] + rng.choice([0.0, workload.run[0]])
        horizon = float(event + rng.choice([0, 1, 200]) + 0.5 * rng.integers(2)) or None
    return Run(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        knowledge=knowledge,
        seed=int(rng.integers(1000)),
        horizon=horizon,
    )


def overdue_run(number: int) -> Run:
    """Return run `number` of another kind: reservations are overdue, most arrivals rejected.

    So there are instants at which nothing has changed but the time, and they matter.
    """
    rng = np.random.default_rng([number, 0x0D])
    node_gpus = int(rng.integers(3, 9))
    cluster = Cluster.uniform(nodes=int(rng.integers(1, 3)), gpus_per_node=node_gpus)
    jobs = int(rng.integers(6, 30))
    run = rng.integers(50, 120, jobs).astype(float)
    gpus = rng.integers(1, node_gpus + 1, jobs)
    mean_gap = float((run * gpus).mean()) / cluster.total_gpus / 4
    gpus[rng.random(jobs) < 0.5] = cluster.total_gpus + 1
    workload = Workload.from_columns(
        submit=np.cumsum(np.rint(rng.exponential(mean_gap, jobs))),
        run=run,
        gpus=gpus,
        estimate=np.maximum(1.0, np.rint(run * rng.uniform(0.02, 0.3, jobs))),
    )
    order = str(rng.choice(["fcfs", "sjf", "lcfs", "wfp3"]))
    discipline = str(rng.choice(["easy", "easy", "easy", "conservative"]))
    scheduler = f"{order}+{discipline}@{rng.choice(RULES)}"
    return Run(workload, cluster, scheduler, "estimate", int(rng.integers(1000)), None)


TIME_WORDS = (
    *("wait", "wait", "slack", "now", "estimate", "gpus", "submit", "work", "priority"),
    *("random", "deadline", "nodes_min", "predicted"),
)
"""Words of orders that change with time alone: the core keeps long queues sorted by them."""
QUEUE_FORMULAS = (
    "[-(wait / estimate) ** 3 * gpus]",
    "[-((wait + 1) / estimate) ** 2 * gpus]",
    "[floor(wait / 20) * where(priority > 0, -1, 1)]",
    "[abs(slack - 100) - sqrt(wait) * gpus]",
    "[log2(1 + wait) * (gpus - 3) + floor(estimate / 9)]",
    "[(wait / estimate) ** (gpus - 2)]",
    "[where(wait > 40, -estimate, estimate)]",
    "[max(slack, 1) / (priority + 2)]",
    "[tanh(wait / 50) * min(gpus, 4) - exp(-wait / estimate)]",
    "[sqrt(wait - 20)]",
)

STATE_WORDS = (
    *("free_gpus", "pool_free_gpus", "queue_len", "queued_gpus", "queued_work", "running_jobs"),
    *("fragmentation", "arrival_rate", "arrival_burstiness", "total_gpus", "utilization"),
)
QUEUE_GATES = (
    "[free_gpus - gpus - 2]",
    "[where(estimate > 30, pool_free_gpus - gpus - total_gpus * clip(0.4 + 0.1 * log2(estimate)"
    " - 0.3 * log2(1 + wait / estimate) - 0.05 * fragmentation, 0, 0.9), 0)]",
    "[wait - 3 * queue_len]",
    "[where(queued_work > 3000, 1, wait - 5)]",
    "[(wait + 1) / estimate - queued_gpus / 50]",
    "[wait - estimate * (1 - free_gpus / total_gpus)]",
)


def long_queue_run(number: int) -> Run:
    """Return run `number` of a kind whose queue becomes long, and short again.

    Jobs need whole GPUs of any node, so that the core finds those that can start by an index.
    """
    rng = np.random.default_rng([number, 0x10])
    nodes = int(rng.choice([1, 1, 2, 5, 12]))
    cluster = Cluster.uniform(nodes=nodes, gpus_per_node=int(rng.integers(2, 9)))
    if nodes == 1 and rng.integers(2):
        cluster = Cluster.uniform(nodes=1, gpus_per_node=int(rng.integers(8, 130)))
    discipline = str(rng.choice(["strict", "skip", "easy", "easy", "conservative"]))
    jobs = int(rng.integers(40, 80) if discipline == "conservative" else rng.integers(150, 260))
    widest = min(cluster.total_gpus, int(rng.choice([3, 8, 100])))
    gpus = rng.integers(1, widest + 1, jobs)
    if rng.integers(2):  # most jobs are small
        gpus = np.minimum(gpus, rng.integers(1, widest + 1, jobs))
    run = np.ceil(rng.lognormal(3, float(rng.choice([0.3, 1.0, 2.0])), jobs))
    estimate = run
    if rng.integers(3) == 0:
        estimate = np.maximum(1, np.rint(run * rng.lognormal(0, 0.5, jobs)))
    elif rng.integers(2):  # few values
        estimate = np.exp2(np.ceil(np.log2(run)))
    mean_gap = float((run * gpus).mean()) / cluster.total_gpus / float(rng.choice([2, 5, 30]))
    gaps = rng.exponential(mean_gap, jobs)
    gaps[rng.random(jobs) < float(rng.choice([0, 0.7]))] = 0  # many come together
    workload = Workload.from_columns(
        submit=np.cumsum(np.rint(gaps) if rng.integers(3) else gaps),
        run=run,
        gpus=gpus,
        estimate=estimate,
        priority=rng.integers(-1, 4, jobs),
        deadline=np.where(rng.random(jobs) < 0.3, np.inf, 20.0 * rng.integers(1, 60, jobs)),
        user=rng.integers(0, 5, jobs),
    )
    kind = int(rng.integers(4))
    if kind == 0:
        order = str(rng.choice(["fcfs", "sjf", "lcfs", "smallest-area", "las", "srpt", "random"]))
    elif kind == 1:
        order = str(rng.choice(["wfp3", "hrrn", "sexp", "unicep", "dynamic-heuristic"]))
    elif kind == 2:
        order = str(rng.choice(QUEUE_FORMULAS))
    else:
        order = f"[{random_formula(rng, TIME_WORDS, depth=int(rng.integers(1, 5)))}]"
    gate = ""
    if rng.integers(3) == 0:
        words = (*TIME_WORDS, *STATE_WORDS)
        formula = f"[{random_formula(rng, words, depth=int(rng.integers(1, 5)))}]"
        gate = f"?{rng.choice((*QUEUE_GATES, formula))}"
    scheduler = f"{order}+{discipline}@{rng.choice((*RULES, 'fgd'))}{gate}"
    knowledge = str(rng.choice(["estimate", "exact", "predicted"], p=[0.6, 0.3, 0.1]))
    return Run(workload, cluster, scheduler, knowledge, int(rng.integers(1000)), None)
