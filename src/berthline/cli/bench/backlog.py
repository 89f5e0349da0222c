"""`berthline bench sim`, second part: what a run costs while very many jobs wait.

More work arrives than the cluster can do, so the queue grows with the number of jobs. The exponent
says how the time of a run grows with it: 1 = in proportion, 2 = every decision passes over the
whole queue.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from berthline.cli.bench.speed import SEED, cpu_seconds
from berthline.cli.output import new_table, number, print_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOAD, GPUS = 1.5, 512
POOL, NODES = f"uniform:1x{GPUS}", f"uniform:{GPUS // 8}x8"
SCHEDULERS: dict[str, str] = {
    "fcfs+easy": POOL,
    "fcfs+skip": POOL,
    "sjf+easy": POOL,
    "sjf+skip": POOL,
    "wfp3+easy": POOL,
    "wfp3+skip": POOL,
    "las": POOL,
    "srpt": POOL,
    "holdback": POOL,
    "fcfs+easy@best-fit": NODES,
    "fcfs+easy@fgd": NODES,
    "fcfs+conservative": POOL,
}
"""Scheduler and cluster of each."""

SIZES, QUICK_SIZES, LONG_SIZES = (10_000, 100_000), (1_000, 10_000), (100_000, 1_000_000)
NOT_LONG = frozenset({"fcfs+conservative"})
"""Has a place for every waiting job, and so takes minutes with 300,000 of them."""


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one run while many jobs wait."""

    scheduler: str
    cluster: str
    jobs: int
    most_waiting: int
    cpu_seconds: float
    us_per_job: float
    exponent: float | None
    """Of the number of jobs, from the next smaller run to this one; None = it is the smallest."""


def measure_backlogs(
    *, quick: bool, long: bool, report: Callable[[int, int, str], None] = lambda *_: None
) -> Iterator[Backlog]:
    """Yield the cost of every scheduler for two numbers of jobs.

    Args:
        quick: fewer jobs.
        long: a million jobs, where that takes seconds.
        report: called as `speed.measure_speeds` does.
    """
    from berthline.evaluate.metrics.queue_length import max_queue_length
    from berthline.model.cluster import Cluster
    from berthline.sim.simulate import simulate
    from berthline.traces.generators.synthetic import generate

    for done, (scheduler, text) in enumerate(SCHEDULERS.items()):
        cluster = Cluster.parse(text)
        sizes = QUICK_SIZES if quick else SIZES
        if long and scheduler not in NOT_LONG:
            sizes = LONG_SIZES
        before: tuple[int, float] | None = None
        for jobs in sizes:
            report(done, len(SCHEDULERS), f"{scheduler}, {jobs:,} jobs, many wait")
            workload = generate("synthetic", cluster=cluster, jobs=jobs, load=LOAD, seed=SEED)
            seconds = math.inf
            for _ in range(1 if jobs > SIZES[-1] else 3):
                taken, result = cpu_seconds(
                    partial(simulate, workload, cluster, scheduler, knowledge="exact")
                )
                seconds = min(seconds, taken)
            yield Backlog(
                scheduler=scheduler,
                cluster=text,
                jobs=jobs,
                most_waiting=max_queue_length(result.log),
                cpu_seconds=seconds,
                us_per_job=1e6 * seconds / jobs,
                exponent=before and math.log(seconds / before[1]) / math.log(jobs / before[0]),
            )
            before = (jobs, seconds)


def show_backlogs(backlogs: list[Backlog]) -> None:
    """Print the measurements as text."""
    print(f"\nWhile many jobs wait, at load {LOAD:g} with {GPUS} GPUs:\n")
    table = new_table("scheduler", "cluster", "jobs", "most waiting", "us per job", "exponent")
    for row in backlogs:
        table.add_row(
            row.scheduler,
            row.cluster,
            number(row.jobs),
            number(row.most_waiting),
            f"{row.us_per_job:.2f}",
            "" if row.exponent is None else f"{row.exponent:.2f}",
        )
    print_table(table)
