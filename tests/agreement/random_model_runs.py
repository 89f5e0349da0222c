"""Random runs of the full cluster model, on which the two simulators must agree.

One number makes one run. Speeds, racks, parts of GPUs, jobs without GPUs, quotas, borrowing,
preemption, moves, rounds, failures, sleeping nodes, delays, ticks and refusals are mixed at random,
each often enough to meet the others, on clusters so small that they collide.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from tests.agreement.random_formulas import random_formula
from tests.agreement.random_runs import (
    FORMULAS,
    GATES,
    NAMED_ORDERS,
    POOLS,
    TYPE_SETS,
    Run,
    recorded_on,
)

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.limits import Outage, PoolRules, Quota
from berthline.model.workload import Workload
from berthline.policies.formulas import ASK_FOR_A_PLACE
from berthline.policies.rules import PLACEMENTS
from berthline.policies.scheduler import Scheduler
from berthline.policies.vocabulary import VOCABULARY

JOB_WORDS = tuple(word.name for word in VOCABULARY.values() if word.scope == "job")
WORDS = tuple(word.name for word in VOCABULARY.values() if word.scope != "node") + JOB_WORDS
NODE_WORDS = tuple(word for word in VOCABULARY if word not in ASK_FOR_A_PLACE)

PREEMPTIONS = (
    "srpt",
    "priority",
    "las:q1=60:q2=400:every=7",
    "las:q1=60:q2=400:promote=0.5:every=11",
    "gittins:every=13",
    "index:margin=0.5:every=9",
    "index:a=1:s=0.7:w=0.9:margin=0:every=5:min_run=4",
    "index:c=900:s=1.2:margin=1:every=7:min_run=2",
    "fair-share:every=10",
    "fair-share:every=0",
    "reclaim",
    "defrag",
    "defrag:moves=2:min_run=5:max_restarts=2",
    "srpt:margin=20:max_restarts=1",
    "priority:min_run=15",
    "[attained]:margin=30",
    "[remaining * gpus]:every=6",
    "[-wait]:min_run=10:max_restarts=3:every=8",
    "[restarts - running]",
    "[where(running, 5, gpus)]",
    "[0/0]",
)
MILP = "milp"


def random_model_cluster(rng: np.random.Generator) -> Cluster:
    """Return a small cluster with racks, pools, quotas, outages and conditions of all kinds."""
    limited, pooled = rng.random() < 0.4, rng.random() < 0.5
    wide = rng.random() < 0.15  # enough nodes for bitmaps
    groups = [
        NodeGroup(
            count=int(rng.integers(6, 30) if wide else rng.integers(1, 5)),
            gpus=int(rng.choice([1, 2, 4, 8])),
            gpu_type=str(rng.choice(["P100", "V100", "H100"])),
            pool=str(rng.choice(["", *POOLS])) if pooled else "",
            cpus=int(rng.choice([0, 8, 16])) if limited else 0,
            memory_mib=int(rng.choice([0, 64, 128])) if limited else 0,
            nodes_per_rack=int(rng.choice([0, 1, 2, 3])),
            mtbf=float(rng.choice([0, 0, 200])),
            mttr=float(rng.choice([0, 30])),
        )
        for _ in range(int(rng.integers(1, 4)))
    ]
    cluster = Cluster.from_groups(groups, name="model")
    conditions: dict[str, float] = {"gpu_speeds": float(rng.random() < 0.7)}

    def sometimes(name: str, share: float, values: list[float]) -> None:
        if rng.random() < share:
            conditions[name] = float(rng.choice(values))

    sometimes("across_nodes", 0.4, [0.5, 0.8])
    sometimes("across_racks", 0.4, [0.6, 0.9])
    sometimes("interference", 0.5, [0.1, 0.5, 1.0])
    sometimes("checkpoint", 0.9, [0.0, 10.0, 30.0, np.inf])
    sometimes("restart", 1.0, [0.0, 3.0, 20.0])
    sometimes("start_delay", 0.2, [1.0, 2.5])
    sometimes("requeue_delay", 0.25, [1.0, 12.0])
    sometimes("tick", 0.15, [1.0, 7.0, 0.3])
    sometimes("refusal_rate", 0.2, [0.1, 0.5])
    sometimes("retry_delay", 0.8, [1.0, 5.5])
    sometimes("sleep_after", 0.25, [0.0, 5.0, 40.0])
    sometimes("wake_delay", 0.8, [0.0, 4.0])
    sometimes("mtbf", 0.2, [100.0, 400.0])
    sometimes("mttr", 0.5, [10.0, 60.0])
    sometimes("rack_mtbf", 0.1, [150.0, 500.0])
    sometimes("rack_mttr", 0.5, [10.0, 60.0])
    apart = rng.spawn(1)[0]  # what is drawn from here on stays as it is
    if apart.random() < 0.1:
        conditions["max_nodes"] = float(apart.choice([1.0, 2.0]))
    outages = []
    for _ in range(int(rng.integers(0, 4)) if rng.random() < 0.3 else 0):
        nodes = rng.choice(
            cluster.num_nodes, min(cluster.num_nodes, int(rng.integers(1, 4))), False
        )
        down = float(rng.integers(0, 200))
        up = down + float(rng.choice([1, 20, 300, np.inf], p=[0.3, 0.3, 0.3, 0.1]))
        outages.append(Outage(down=down, up=up, nodes=tuple(sorted(nodes.tolist()))))
    num_quotas = int(rng.integers(1, 4)) if rng.random() < 0.35 else 0
    quotas = [
        Quota(
            gpus=float(rng.choice([0.5, 1, 2, 4, 6, 12])),
            user=str(rng.choice(["", "*", "user1"])),
            pool=str(rng.choice(["", *cluster.pool_names])),
            gpu_type=str(rng.choice(["", "", *(kind.name for kind in cluster.types)])),
        )
        for _ in range(num_quotas)
    ]
    rules = {
        name: PoolRules(borrow=bool(rng.integers(2)), lend=bool(rng.integers(2)))
        for name in cluster.pool_names
        if rng.random() < 0.8
    }
    return dataclasses.replace(
        cluster,
        conditions=cluster.conditions.replace(conditions),
        outages=tuple(outages),
        quotas=tuple(quotas),
        pool_rules=rules,
    )


def random_model_workload(rng: np.random.Generator, cluster: Cluster) -> Workload:
    """Return a few dozen jobs: gangs, parts of GPUs, jobs without GPUs."""
    jobs = int(rng.integers(2, 45))
    widest = max(1, min(cluster.total_gpus, int(rng.choice([2, 4, 8, 16]))))
    gpus = rng.integers(1, widest + 1, jobs)
    milli = np.full(jobs, 1000)
    if rng.random() < 0.5:
        part = rng.random(jobs) < rng.choice([0.3, 0.9])
        gpus[part] = 1
        milli[part] = rng.choice([100, 250, 500, 600, 999, 1000], int(part.sum()))
    cpus = rng.choice([0, 1, 2, 4, 9], jobs) if rng.integers(2) else np.zeros(jobs, int)
    memory = rng.choice([0, 3, 16, 70], jobs) if rng.integers(2) else np.zeros(jobs, int)
    if rng.random() < 0.25:
        without = rng.random(jobs) < 0.3
        gpus[without], milli[without] = 0, 1000
        cpus[without] = np.maximum(cpus[without], 1)
    run = rng.integers(1, 120, jobs).astype(float)
    if rng.integers(2):
        run += rng.random(jobs)
    load = float(rng.choice([0.5, 1.0, 2.0]))
    gaps = rng.exponential(float((run * gpus).mean()) / cluster.total_gpus / load, jobs)
    submit = np.cumsum(np.rint(gaps) if rng.integers(2) else gaps)
    spread = float(rng.choice([0.0, 0.3, 1.0]))
    pooled = bool(cluster.pool_names) and rng.random() < 0.8
    return Workload.from_columns(
        submit=submit,
        run=run,
        gpus=gpus,
        gpu_milli=milli,
        estimate=np.maximum(1.0, np.rint(run * rng.lognormal(0, spread, jobs))),
        cpus=cpus,
        memory_mib=memory,
        priority=rng.integers(0, 4, jobs).astype(float),
        deadline=submit + 2 * run,
        user=rng.integers(0, 4, jobs),
        pool=rng.integers(-1, len(POOLS), jobs) if pooled else -1,
        gpu_types=rng.integers(-1, len(TYPE_SETS), jobs) if rng.random() < 0.25 else -1,
        pool_names=POOLS,
        gpu_type_sets=TYPE_SETS,
        **recorded_on(rng, jobs, ["V100", "P100", "recorded"]),
    )


def random_model_scheduler(rng: np.random.Generator) -> str:
    """Return a scheduler: any order, discipline, placement, gate and preemption rule."""
    kind = rng.random()
    if kind < 0.5:
        order = str(rng.choice(NAMED_ORDERS))
    elif kind < 0.7:
        order = str(rng.choice(FORMULAS))
    else:
        order = f"[{random_formula(rng, WORDS, depth=int(rng.integers(1, 4)))}]"
    discipline = str(
        rng.choice(["strict", "skip", "easy", "conservative", "rounds:T=30", "rounds:T=23"])
    )
    placement = str(rng.choice([name for name in PLACEMENTS if name != MILP]))
    if rng.random() < 0.15:
        placement = f"[{random_formula(rng, NODE_WORDS, depth=int(rng.integers(1, 4)))}]"
    gate = ""
    if rng.random() < 0.2:
        gate = "?" + str(rng.choice(GATES))
    preemption = ""
    if rng.random() < 0.6 and not discipline.startswith("rounds"):
        preemption = "!" + str(rng.choice(PREEMPTIONS))
        if rng.random() < 0.2:
            formula = random_formula(rng, WORDS, depth=int(rng.integers(1, 4)))
            preemption = f"![{formula}]:every={rng.choice([0, 6])}"
    return f"{order}+{discipline}@{placement}{gate}{preemption}"


def random_model_run(number: int) -> Run:
    """Return run `number`; the same number always gives the same run."""
    rng = np.random.default_rng([number, 0x4F])
    cluster = random_model_cluster(rng)
    workload = random_model_workload(rng, cluster)
    scheduler = random_model_scheduler(rng)
    knowledge = str(rng.choice(["estimate", "predicted", "exact", "none"]))
    if knowledge == "none" and Scheduler.parse(scheduler).needs_run_times:
        knowledge = "exact"
    # Jobs that are preempted before they save anything would run forever.
    horizon = float(rng.integers(50, 400)) if rng.random() < 0.1 else 1500.0
    return Run(workload, cluster, scheduler, knowledge, int(rng.integers(1000)), horizon)


def random_reservation_run(number: int) -> Run:
    """Return a run under conservative in which spanning nodes or racks slows gangs down.

    How long a reservation lasts depends on the nodes that the placement may use.
    """
    rng = np.random.default_rng([number, 0x50])
    run = random_model_run(number)
    conditions = {
        "across_nodes": float(rng.choice([0.3, 0.5, 1.0])),
        "across_racks": float(rng.choice([0.3, 0.5])),
    }
    order = str(rng.choice(["fcfs", "sjf", "[-gpus]"]))
    placement = str(rng.choice([name for name in PLACEMENTS if name != MILP]))
    return dataclasses.replace(
        run,
        cluster=run.cluster.with_conditions(conditions),
        scheduler=f"{order}+conservative@{placement}",
        knowledge=str(rng.choice(["estimate", "exact"])),
    )


def random_round_run(number: int) -> Run:
    """Return a run in rounds whose nodes fail between checkpoints."""
    rng = np.random.default_rng([number, 0x51])
    run = random_model_run(number)
    conditions = {
        "checkpoint": float(rng.choice([25.0, 100.0, np.inf])),
        "restart": float(rng.choice([0.0, 3.0])),
        "start_delay": 0.0,
        "mtbf": float(rng.choice([60.0, 150.0])),
        "mttr": 10.0,
    }
    order = str(rng.choice(["[attained]", "[-wait]", "fcfs", "[restarts]"]))
    placement = str(rng.choice(["first-fit", "best-fit", "scatter"]))
    return dataclasses.replace(
        run,
        cluster=run.cluster.with_conditions(conditions),
        scheduler=f"{order}+rounds:T={rng.choice([17, 30])}@{placement}",
        knowledge="exact",
    )
