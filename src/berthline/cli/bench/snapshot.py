"""`berthline bench snapshot`: CPU time of decisions on a state, and of runs that begin with one.

A state is built from columns of jobs, as from the records of a live system, and decided on; then a
run of the simulator is cut in the middle and continued.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.cli.output import new_table, note, print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.cli.bench.snapshot_policy import PolicySpeed
    from berthline.model.snapshot import Snapshot

SEED = 1
NODE_GPUS = 8
CALLS, QUICK_CALLS = 400, 10
LARGE_CALLS, QUICK_LARGE_CALLS = 10, 1
RUN_JOBS, QUICK_RUN_JOBS = 100_000, 2_000
RESUMED = "sjf+easy@best-fit"
RESUME_TARGET_MS = 1.0
TAIL = 3
"""The 99th percentile may be this many times the target of the median."""

SMALL = (64, 200, 128)
LARGE = (1000, 3000, 10_000)
"""Nodes, running jobs, waiting jobs."""
CASES = (
    ("sjf+easy@best-fit", SMALL, 0.5),
    ("sjf+easy@best-fit?express-lane", SMALL, 1.5),
    ("holdback", SMALL, 1.5),
    ("fcfs+conservative", SMALL, 10.0),
    ("sjf+easy@best-fit", LARGE, 1000.0),
    ("fcfs+conservative", LARGE, 1000.0),
)


class DecisionSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time from columns of jobs to a decision, in milliseconds."""

    scheduler: str
    nodes: int
    running: int
    waiting: int
    starts: int
    p50_ms: float
    p99_ms: float
    target_p50_ms: float
    meets_target: bool | None
    """None = too few calls to tell."""


class ResumeSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """CPU time of the rest of a run, against its share: the whole run without its first part."""

    jobs: int
    rows: float
    """The share of the rows of the log that are still to come."""
    take_ms: float
    """Taking the snapshot."""
    whole_ms: float
    first_ms: float
    """The run, stopped at the instant of the snapshot."""
    rest_ms: float
    more_than_share_ms: float
    meets_target: bool | None


class SnapshotReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the benchmark of snapshots."""

    machine: str
    quick: bool
    decisions: list[DecisionSpeed]
    resumed: list[ResumeSpeed]
    policy: PolicySpeed | None


def live_columns(nodes: int, running: int, waiting: int) -> Callable[[], Snapshot]:
    """Return a function that builds the state of a nearly full cluster from columns."""
    import berthline as bl

    rng = np.random.default_rng(SEED)
    cluster = bl.Cluster.uniform(nodes=nodes, gpus_per_node=NODE_GPUS)
    free = np.full(nodes, NODE_GPUS)
    held: dict[int, bl.RunningJob] = {}
    now, gpus = 100_000.0, rng.choice([1, 2, 4, 8], running + waiting, p=[0.5, 0.25, 0.15, 0.1])
    submit = np.sort(rng.uniform(0, now, running + waiting))
    estimate = rng.lognormal(8, 1.5, running + waiting)
    for job in range(running):
        fits = np.flatnonzero(free >= gpus[job])
        if not len(fits):
            gpus[job] = 1
            fits = np.flatnonzero(free >= 1)
        node = int(fits[0])
        free[node] -= gpus[job]
        start = float(rng.uniform(submit[job], now))
        held[job] = bl.RunningJob(start, {node: int(gpus[job])})
    user = rng.integers(0, 20, running + waiting)
    unknown = np.full(running + waiting, np.nan)

    def build() -> Snapshot:
        jobs = bl.Workload.from_columns(
            submit=submit,
            run=unknown,
            gpus=gpus,
            estimate=estimate,
            user=user,
            rebase=False,
            of_snapshot=True,
        )
        return bl.snapshot_of(jobs, cluster, now, running=held)

    return build


def measure_decisions(*, quick: bool) -> list[DecisionSpeed]:
    """Return the CPU time of decisions, from columns of jobs on."""
    import berthline as bl

    found = []
    for scheduler, (nodes, running, waiting), target in CASES:
        build = live_columns(nodes, running, waiting)
        large = (nodes, running, waiting) == LARGE
        calls = (
            (QUICK_LARGE_CALLS if quick else LARGE_CALLS)
            if large
            else (QUICK_CALLS if quick else CALLS)
        )
        starts = len(bl.decide(build(), scheduler).starts)
        seconds = []
        for _ in range(calls):
            began = time.process_time()
            bl.decide(build(), scheduler)
            seconds.append(time.process_time() - began)
        p50, p99 = (1000 * float(value) for value in np.quantile(seconds, [0.5, 0.99]))
        found.append(
            DecisionSpeed(
                scheduler=scheduler,
                nodes=nodes,
                running=running,
                waiting=waiting,
                starts=starts,
                p50_ms=p50,
                p99_ms=p99,
                target_p50_ms=target,
                meets_target=None if quick else p50 <= target and (large or p99 <= TAIL * target),
            )
        )
    return found


def measure_resumed(*, quick: bool) -> list[ResumeSpeed]:
    """Return what the rest of a run costs, for snapshots early and late in it."""
    import berthline as bl
    from berthline.sim.snapshots.take import count_before_decision, take_jobs

    cluster = bl.Cluster.uniform(nodes=64, gpus_per_node=NODE_GPUS)
    count = QUICK_RUN_JOBS if quick else RUN_JOBS
    jobs = bl.generate("synthetic", cluster=cluster, jobs=count, load=0.9, seed=SEED)

    def least(call: Callable[[], object], calls: int = 1 if quick else 15) -> float:
        seconds = []
        for _ in range(calls):
            began = time.process_time()
            call()
            seconds.append(time.process_time() - began)
        return 1000 * min(seconds)

    result = bl.simulate(jobs, cluster, RESUMED)
    whole = least(lambda: bl.simulate(jobs, cluster, RESUMED))
    found = []
    for part in (0.1, 0.5, 0.99):
        at = float(result.log.time[int(part * len(result.log))])
        take = least(partial(result.snapshot, at), 1 if quick else 3)
        snapshot = result.snapshot(at)
        known = snapshot.memory.jobs + snapshot.num_jobs
        later = take_jobs(jobs, np.arange(known, len(jobs)))
        rest = least(partial(bl.resume, snapshot, arrivals=later))
        first = least(partial(bl.simulate, jobs, cluster, RESUMED, horizon=at))
        more = rest - (whole - first)
        found.append(
            ResumeSpeed(
                jobs=count,
                rows=1 - count_before_decision(result.log, at) / len(result.log),
                take_ms=take,
                whole_ms=whole,
                first_ms=first,
                rest_ms=rest,
                more_than_share_ms=more,
                meets_target=None if quick else more <= RESUME_TARGET_MS,
            )
        )
    return found


def measure_question(*, quick: bool) -> PolicySpeed | None:
    """Return what a learned policy takes on the smaller state; None = torch is not installed."""
    from berthline.cli.bench.snapshot_policy import measure_random_policy
    from berthline.errors import MissingExtraError
    from berthline.sim.snapshots.resume import without_run_times

    nodes = SMALL[0]
    try:
        return measure_random_policy(
            without_run_times(live_columns(*SMALL)(), "estimate"),
            f"uniform:{nodes}x{NODE_GPUS}:V100",
            quick=quick,
        )
    except MissingExtraError as error:
        note(f"learned policies are not measured: {error.what}")
        return None


def show_snapshots(report: SnapshotReport) -> None:
    """Print the report as text."""
    print("\nmilliseconds of CPU time from columns of jobs to a decision:\n")
    table = new_table("scheduler", "nodes", "running", "waiting", "p50", "p99", "target p50")
    for one in report.decisions:
        table.add_row(
            one.scheduler,
            f"{one.nodes:,}",
            f"{one.running:,}",
            f"{one.waiting:,}",
            f"{one.p50_ms:,.2f}",
            f"{one.p99_ms:,.2f}",
            f"{one.target_p50_ms:,.3g}{_met(one.meets_target)}",
        )
    print_table(table)
    print(f"\nmilliseconds of CPU time of the rest of a run of {RESUMED}:\n")
    table = new_table(
        "jobs", "rows, %", "snapshot", "whole run", "first", "rest", "more than share"
    )
    for part in report.resumed:
        table.add_row(
            f"{part.jobs:,}",
            f"{100 * part.rows:.0f}",
            f"{part.take_ms:,.1f}",
            f"{part.whole_ms:,.1f}",
            f"{part.first_ms:,.1f}",
            f"{part.rest_ms:,.1f}",
            f"{part.more_than_share_ms:,.1f}{_met(part.meets_target)}",
        )
    print_table(table)
    policy = report.policy
    if policy is not None:
        print(
            f"\na kernel network in the seat Pick: a question takes {policy.question_p50_us:.0f} us"
            f" at the median and {policy.question_p99_us:.0f} us at the 99th percentile, a whole"
            f"\ndecision {policy.decision_p50_ms:.2f} and {policy.decision_p99_ms:.2f} ms"
        )


def _met(meets: object) -> str:
    return "" if meets is None else " (met)" if meets else " (missed)"
