"""Comparison: what `compare` found, under the names that `berthline compare --json` prints."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from berthline.evaluate.distribution import Distribution
from berthline.evaluate.fairness import Fairness
from berthline.evaluate.groups import GroupMetrics
from berthline.evaluate.job_table import JobCounts
from berthline.evaluate.queue_length import QueueLength
from berthline.evaluate.statistics import Ratio
from berthline.evaluate.utilization import Utilization

_T = TypeVar("_T")


class PerMetric(msgspec.Struct, Generic[_T], frozen=True, kw_only=True):
    """One thing for each metric that schedulers are judged by."""

    jct_mean: _T
    jct_p99: _T
    bounded_slowdown_mean: _T
    wait_mean: _T
    makespan: _T
    utilization: _T


class Judgement(Ratio, frozen=True, kw_only=True):
    """A ratio to the baseline and what it says, in words."""

    verdict: str


class AverageMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The metrics of one scheduler, each the mean of its values in the windows."""

    jct: Distribution
    wait: Distribution
    slowdown: Distribution
    bounded_slowdown: Distribution
    makespan: float
    utilization: Utilization
    energy_kwh: float
    energy_per_job_kwh: float
    fairness: Fairness
    queue: QueueLength
    preemptions: float
    lost_gpu_hours: float
    deadline_miss_rate: float | None
    load_imbalance: float


class SchedulerResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One scheduler over all windows.

    Attributes:
        scheduler: its text, as it was given.
        jobs: counts summed over runs.
        metrics: means over runs.
        per_window: one value per window, in order.
        against_baseline: paired ratios; below 1 = smaller than the baseline's.
        log_sha256: of each run's log: windows in order, and in each its seeds.
        wall_seconds: simulation time of all runs together.
        energy_cost: at the energy rate, if one was given; the mean over runs.
        by_user, by_pool, by_size, by_priority: the groupings asked for; see `groups.averaged`.
    """

    scheduler: str
    jobs: JobCounts
    metrics: AverageMetrics
    per_window: PerMetric[list[float]]
    against_baseline: PerMetric[Judgement]
    log_sha256: list[str]
    wall_seconds: float
    energy_cost: float | None = None
    by_user: dict[str, GroupMetrics] | None = None
    by_pool: dict[str, GroupMetrics] | None = None
    by_size: dict[str, GroupMetrics] | None = None
    by_priority: dict[str, GroupMetrics] | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `compare` found.

    Attributes:
        workload: name of the workload (of the first, when there are several).
        cluster: name of the cluster.
        conditions: how jobs ran there, as far as it differs from the defaults.
        load: the offered load asked for; None = as the workload is, or its default.
        knowledge: what all schedulers knew about run times.
        seed: of all runs (the first, when there are several) and of the intervals.
        seeds: how many seeds each window was run with; a window's values are means over them.
        windows: how many windows each scheduler ran.
        window_jobs: jobs in each of them.
        baseline: the scheduler that the others are compared with.
        schedulers: one result each, in the order given.
        best: the best fixed scheduler in hindsight, by the mean over windows of each metric; of
            equals the first.
    """

    workload: str
    cluster: str
    conditions: dict[str, float]
    load: float | None
    knowledge: str
    seed: int
    seeds: int
    windows: int
    window_jobs: list[int]
    baseline: str
    schedulers: list[SchedulerResult]
    best: PerMetric[str]
