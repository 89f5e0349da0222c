"""`berthline bench model`: speed of the model beyond plain queueing, with targets.

It measures preemption, GPU types that differ in speed, fragmentation gradient descent and the
mixed-integer program. As in `speed.py`, a figure is the best of several rounds in CPU seconds of
this process.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from berthline.cli.bench.speed import SEED, cpu_seconds
from berthline.cli.output import new_table, print_table

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

JOBS, QUICK_JOBS = 100_000, 10_000
GPUS = 512
ROUNDS = 3
MIXED_NODES = (("P100", 16), ("V100", 32), ("H100", 16))
"""GPU types of the mixed cluster, and the number of 8-GPU nodes of each."""
POD_RUN_SECONDS = 3600.0
MILP_JOBS, MILP_NODES, MILP_QUEUES = 32, 64, 20
_NO_LIMIT = 60.0  # seconds; a busy machine must not end the measured program

Unit = Literal["jobs per CPU-second", "placements per CPU-second", "CPU milliseconds"]


@dataclasses.dataclass(frozen=True)
class Case:
    """A simulation to measure.

    Attributes:
        name: what the table calls it.
        scheduler: its text.
        nodes: the cluster: one pool, nodes of 8 GPUs, nodes of several GPU types, or the nodes of
            the openb trace.
        load: work submitted / work that all GPUs, each at its speed, could do in the same time.
        target: wanted number per CPU-second.
        unit: unit of the figure.
    """

    name: str
    scheduler: str
    nodes: Literal["pool", "nodes of 8", "mixed", "openb"]
    load: float
    target: float
    unit: Unit = "jobs per CPU-second"


CASES: tuple[Case, ...] = (
    Case("SRPT", "srpt+skip!srpt", "pool", 0.8, 500_000),
    Case("SRPT", "srpt+skip!srpt", "pool", 0.9, 500_000),
    Case("SRPT", "srpt+skip!srpt", "nodes of 8", 0.8, 500_000),
    Case("SRPT", "srpt+skip!srpt", "nodes of 8", 0.9, 500_000),
    Case("LAS", "las+skip!las", "pool", 0.8, 500_000),
    Case("LAS", "las+skip!las", "pool", 0.9, 500_000),
    Case("LAS", "las+skip!las", "nodes of 8", 0.8, 500_000),
    Case("LAS", "las+skip!las", "nodes of 8", 0.9, 500_000),
    Case("best-fit", "fcfs+strict@best-fit", "mixed", 0.9, 1_500_000),
    Case("best-fit", "fcfs+skip@best-fit", "mixed", 0.9, 1_500_000),
    Case("FGD", "fcfs+skip@fgd", "openb", 0.9, 50_000, "placements per CPU-second"),
)
MILP_TARGET_MS = 100.0


class ModelSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """Speed of one case."""

    case: str
    scheduler: str
    cluster: str
    jobs: int
    load: float | None
    figure: float
    unit: Unit
    target: float
    meets_target: bool | None
    """None = too few jobs to tell."""
    detail: str


def measure_model(
    *, quick: bool, jobs: int | None, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[ModelSpeed]:
    """Yield the speed of every case.

    Args:
        quick: fewer jobs, one round.
        jobs: number of jobs; None = as many as the targets are for, or fewer if `quick`.
        report: called with (done, total, name) before each case.
    """
    count = jobs or (QUICK_JOBS if quick else JOBS)
    total = len(CASES) + 1
    for done, case in enumerate(CASES):
        report(done, total, f"{case.name}, {case.nodes}")
        yield _measure_case(case, count, rounds=1 if quick else ROUNDS)
    if importlib.util.find_spec("highspy"):
        report(total - 1, total, "MILP")
        yield _measure_milp(rounds=1 if quick else ROUNDS)


def _measure_case(case: Case, jobs: int, *, rounds: int) -> ModelSpeed:
    from berthline.model.schedule import PREEMPT
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import simulate

    cluster, workload = _inputs(case, jobs)
    scheduler = Scheduler.parse(case.scheduler)
    best = np.inf
    for _ in range(rounds):
        taken, result = cpu_seconds(partial(simulate, workload, cluster, scheduler))
        best = min(best, taken)
    starts, preemptions = result.log.is_start.sum(), (result.log.kind == PREEMPT).sum()
    count = jobs if case.unit == "jobs per CPU-second" else int(starts)
    return ModelSpeed(
        case=case.name,
        scheduler=case.scheduler,
        cluster=cluster.name,
        jobs=jobs,
        load=case.load,
        figure=count / best,
        unit=case.unit,
        target=case.target,
        meets_target=count / best >= case.target if jobs >= JOBS else None,
        detail=f"{preemptions:,} preempted" if scheduler.preemption else f"{starts:,} starts",
    )


def _inputs(case: Case, jobs: int) -> tuple[Cluster, Workload]:
    from berthline.model.cluster import Cluster, NodeGroup
    from berthline.traces.generators.synthetic import generate

    if case.nodes == "openb":
        return _pods(case, jobs)
    if case.nodes == "pool":
        cluster = Cluster.uniform(nodes=1, gpus_per_node=GPUS)
    elif case.nodes == "mixed":
        groups = [NodeGroup(count=count, gpus=8, gpu_type=kind) for kind, count in MIXED_NODES]
        cluster = Cluster.from_groups(groups, name="mixed:" + "+".join(k for k, _ in MIXED_NODES))
    else:
        cluster = Cluster.uniform(nodes=GPUS // 8, gpus_per_node=8)
    # The generator counts GPUs; here faster ones do more than one GPU's work.
    speed = np.mean(np.array([kind.speed for kind in cluster.types])[cluster.gpu_type])
    load = case.load * float(speed)
    return cluster, generate("synthetic", cluster=cluster, jobs=jobs, load=load, seed=SEED)


def _pods(case: Case, jobs: int) -> tuple[Cluster, Workload]:
    """Return the cluster of openb, and pods that come and go."""
    from berthline.experiments.openb_pods import generate_pods, packing_cluster

    cluster = packing_cluster()
    pods = generate_pods(jobs, SEED)
    generator = np.random.Generator(np.random.Philox(SEED))
    run = generator.exponential(POD_RUN_SECONDS, jobs)
    per_second = case.load * cluster.total_gpus / (pods.gpu_amount.mean() * POD_RUN_SECONDS)
    submit = np.cumsum(generator.exponential(1 / per_second, jobs))
    return cluster, pods.workload(np.arange(jobs), submit=submit, run=run)


def _measure_milp(*, rounds: int) -> ModelSpeed:
    """Return the CPU time of the slowest of several programs, each at its best round."""
    from berthline.policies.milp import FreeNodes, Gangs, plan

    generator = np.random.Generator(np.random.Philox(SEED))
    slowest, unsolved = 0.0, 0
    for _ in range(MILP_QUEUES):
        free = generator.integers(0, 9, MILP_NODES)
        gpus = generator.choice(
            (1, 2, 4, 8, 16, 32), MILP_JOBS, p=(0.5, 0.15, 0.1, 0.15, 0.07, 0.03)
        )
        gangs = Gangs(gpus, np.maximum(1, gpus // 8), np.minimum(free, gpus[:, None]))
        nodes = FreeNodes(free, np.full(MILP_NODES, 8))
        solve = partial(plan, gangs, nodes, most_jobs=MILP_JOBS, time_limit=_NO_LIMIT)
        best = np.inf
        for _ in range(rounds):
            taken, found = cpu_seconds(solve)
            best = min(best, taken)
        slowest, unsolved = max(slowest, best), unsolved + (found is None)
    return ModelSpeed(
        case="MILP",
        scheduler=f"{MILP_JOBS} jobs at once",
        cluster=f"uniform:{MILP_NODES}x8",
        jobs=MILP_JOBS,
        load=None,
        figure=1000 * slowest,
        unit="CPU milliseconds",
        target=MILP_TARGET_MS,
        meets_target=1000 * slowest < MILP_TARGET_MS and not unsolved,
        detail=f"{unsolved} without a plan" if unsolved else f"worst of {MILP_QUEUES}",
    )


def show_model(speeds: list[ModelSpeed]) -> None:
    """Print the measurements as text."""
    jobs = max(speed.jobs for speed in speeds)
    print(f"\n{jobs:,} jobs; per CPU-second, only the call of simulate; MILP in CPU ms:\n")
    table = new_table("case", "load", "figure", "target", "", "")
    for speed in speeds:
        in_time = speed.unit == "CPU milliseconds"
        table.add_row(
            f"{speed.scheduler}\n  {speed.cluster}",
            "-" if speed.load is None else f"{speed.load:g}",
            f"{speed.figure:,.0f}",
            f"{'<' if in_time else '>='} {speed.target:,.0f}",
            {True: "met", False: "missed", None: ""}[speed.meets_target],
            speed.detail,
        )
    print_table(table)
    judged = [speed.meets_target for speed in speeds if speed.meets_target is not None]
    if len(judged) < len(speeds):
        print(f"\ntargets of jobs per second are for {JOBS:,} jobs or more: not checked")
    elif all(judged):
        print("\nall targets met")
    else:
        print(f"\n{judged.count(False)} of {len(judged)} targets missed")
