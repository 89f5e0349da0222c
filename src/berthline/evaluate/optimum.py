"""Optimum: the least total JCT of a handful of gang jobs on one node, by branch and bound.

It shows how far heuristics, and the bounds of bounds.py, are from the optimum where the optimum can
be computed. Jobs are not preempted, and everything about them is known in advance.

Why the search finds an optimum although start times are real numbers: take any optimal schedule,
and while some job could start earlier with all others unchanged, start it earlier. This raises no
JCT and ends, because a job then starts at its submission or at the finish of another, which leaves
finitely many schedules. Sort the jobs of the result by their starts. Given the jobs before it, each
job starts at the first instant, not before the start of the previous job, at which enough GPUs are
free: it could start there with the later jobs unchanged too, because whatever it then holds beyond
its old start, it held before. Therefore this schedule is among those in which jobs are taken in
some order and each starts as early as that order allows, and the search covers all orders.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.errors import ConfigError
from berthline.evaluate.bounds import rejected_jobs, srpt_total_jct
from berthline.model.workload import WHOLE_GPU
from berthline.traces.cluster_argument import resolve_cluster

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath

MOST_JOBS = 10
"""This many take seconds; every two more take twenty times as long."""


class Optimum(msgspec.Struct, frozen=True, kw_only=True):
    """The least total JCT without preemption, in seconds, and a schedule that attains it.

    Attributes:
        total: sum of JCTs.
        mean: total / jobs; NaN without jobs.
        start: when each job starts, by job; NaN for rejected jobs.
        visited: number of partial schedules examined.
    """

    total: float
    mean: float
    start: list[float]
    visited: int


def jct_optimum(workload: Workload, cluster: Cluster | TextOrPath) -> Optimum:
    """Return the least total JCT of all schedules without preemption on a cluster of one node.

    Formula: min over schedules of the sum of finish - submit, in seconds. A scheduler that preempts
    may be below it.

    Args:
        workload: up to 10 jobs on whole GPUs.
        cluster: a Cluster or a CLUSTER argument: one node, without CPU or memory limits, quotas,
            failures or delays.

    Raises:
        ConfigError: there are more jobs, or something other than GPUs limits them.

    Example:
        >>> import berthline as bl
        >>> jobs = bl.Workload.from_columns(submit=[0, 1], run=[10, 1], gpus=[2, 2])
        >>> jct_optimum(jobs, "uniform:1x2").start
        [2.0, 1.0]
    """
    cluster = resolve_cluster(cluster)
    _check(workload, cluster)
    from berthline.model.speeds import relative_speed, speeds

    rejected = rejected_jobs(workload, cluster)
    node_speed, reference = speeds(workload, cluster)
    hold = workload.run / relative_speed(node_speed[0], reference)
    ids = np.flatnonzero(~rejected)
    search = _Search(
        submit=workload.submit[ids].tolist(),
        hold=hold[ids].tolist(),
        gpus=workload.gpus[ids].tolist(),
        total_gpus=cluster.total_gpus,
    )
    search.run()
    start = np.full(len(workload), np.nan)
    start[ids] = search.best_start
    return Optimum(
        total=search.best,
        mean=search.best / len(ids) if len(ids) else np.nan,
        start=start.tolist(),
        visited=search.visited,
    )


def _check(workload: Workload, cluster: Cluster) -> None:
    if len(workload) > MOST_JOBS:
        raise ConfigError(f"an optimum of {len(workload)} jobs", expected=f"up to {MOST_JOBS} jobs")
    limits = {
        "more than one node": cluster.num_nodes > 1,
        "jobs on part of a GPU, or without one": bool(
            (workload.gpu_milli < WHOLE_GPU).any() or (workload.gpus == 0).any()
        ),
        "CPU or memory limits": bool(cluster.cpus.any() or cluster.memory_mib.any()),
        "quotas": bool(cluster.quotas),
        "failures": bool(
            cluster.outages
            or cluster.mtbf.any()
            or np.isfinite((cluster.conditions.mtbf, cluster.conditions.rack_mtbf)).any()
        ),
        "delays or refused starts": any(
            getattr(cluster.conditions, name) > 0
            for name in ("start_delay", "tick", "refusal_rate", "wake_delay")
        ),
    }
    for what, is_so in limits.items():
        if is_so:
            raise ConfigError(
                f"an optimum with {what}",
                where=f"workload {workload.name!r} on cluster {cluster.name!r}",
                expected="whole GPUs of one node and nothing else, such as uniform:1x8",
            )


@dataclasses.dataclass
class _Search:
    """Depth-first search over orders; times of jobs by their position."""

    submit: list[float]
    hold: list[float]
    gpus: list[int]
    total_gpus: int
    best: float = math.inf
    best_start: list[float] = dataclasses.field(default_factory=list)
    visited: int = 0

    def run(self) -> None:
        """Find the best schedule."""
        count = len(self.submit)
        self.start = [math.nan] * count
        # The lowest cost found so far of reaching each state.
        self.seen: dict[tuple[int, float, tuple[tuple[float, int], ...]], float] = {}
        # Short jobs first: good schedules found early prune more.
        self.order = sorted(range(count), key=lambda job: (self.hold[job] * self.gpus[job], job))
        self.extend((1 << count) - 1, 0.0, (), 0.0)

    def extend(
        self, left: int, clock: float, running: tuple[tuple[float, int], ...], cost: float
    ) -> None:
        """Try every job as the next to start.

        Args:
            left: set of the remaining jobs, as bits.
            clock: start of the last job.
            running: (finish, GPUs) of the jobs that run then, ascending.
            cost: total JCT of the jobs started so far.
        """
        self.visited += 1
        if not left:
            if cost < self.best:
                self.best, self.best_start = cost, self.start.copy()
            return
        jobs = [job for job in self.order if left >> job & 1]
        if cost + self.least(jobs, clock) >= self.best:
            return
        state = (left, clock, running)
        if self.seen.get(state, math.inf) <= cost:
            return
        self.seen[state] = cost
        tried: set[tuple[float, float, int]] = set()
        for job in jobs:
            begin = self.first_fit(job, clock, running)
            # Among jobs that are equal from now on, the first submitted goes first.
            alike = (max(self.submit[job], clock), self.hold[job], self.gpus[job])
            if alike in tried:
                continue
            tried.add(alike)
            finish = begin + self.hold[job]
            still = [part for part in running if part[0] > begin]
            self.start[job] = begin
            self.extend(
                left & ~(1 << job),
                begin,
                tuple(sorted([*still, (finish, self.gpus[job])])),
                cost + finish - self.submit[job],
            )

    def first_fit(self, job: int, clock: float, running: tuple[tuple[float, int], ...]) -> float:
        """Return when enough GPUs are free; no other job starts after `clock`."""
        begin = earliest = max(self.submit[job], clock)
        free = self.total_gpus - sum(gpus for finish, gpus in running if finish > earliest)
        for finish, gpus in running:
            if free >= self.gpus[job]:
                break
            if finish > earliest:  # not `begin`: several jobs may finish at one instant
                free += gpus
                begin = finish
        return begin

    def least(self, jobs: list[int], clock: float) -> float:
        """Return a lower bound on the remaining jobs' cost: see bounds.py, here from `clock` on."""
        release = np.array([max(self.submit[job], clock) for job in jobs])
        hold = np.array([self.hold[job] for job in jobs])
        gpus = np.array([self.gpus[job] for job in jobs])
        waited = float(release.sum()) - sum(self.submit[job] for job in jobs)
        order = np.argsort(release, kind="stable")
        srpt = srpt_total_jct(release[order], (hold * gpus / self.total_gpus)[order])
        return waited + max(float(hold.sum()), srpt) * (1 - _ROUNDING)


_ROUNDING = 1e-12
"""So that rounding never prunes an optimum."""
