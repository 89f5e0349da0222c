"""Comparison: the result of `compare`, under the names that `berthline compare --json` prints."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from berthline.evaluate.bounds import Bound
from berthline.evaluate.compare.oracle import Oracle
from berthline.evaluate.metrics.distribution import Distribution
from berthline.evaluate.metrics.fairness import Fairness
from berthline.evaluate.metrics.groups import GroupMetrics
from berthline.evaluate.metrics.job_table import JobCounts
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.evaluate.metrics.queue_length import QueueLength
from berthline.evaluate.metrics.starvation import Starvation
from berthline.evaluate.metrics.utilization import Utilization
from berthline.evaluate.statistics.paired import Ratio
from berthline.evaluate.statistics.power import Power
from berthline.model.speeds import RunTimeScaling

_T = TypeVar("_T")


class PerMetric(msgspec.Struct, Generic[_T], frozen=True, kw_only=True):
    """One value for each of METRICS (metrics/compared_metrics.py)."""

    jct_mean: _T
    jct_p99: _T
    bounded_slowdown_mean: _T
    wait_mean: _T
    makespan: _T
    utilization: _T


class Judgement(Ratio, frozen=True, kw_only=True):
    """A ratio to the baseline and its verdict in words.

    Attributes:
        p_adjusted: the p-value, corrected for the number of schedulers compared (Holm).
        verdict: better, worse or not distinguishable, and by how much, after that correction; it
            says so if `total` disagrees.
        total: ratio of the values of the whole run, or of the means over windows; `ratio` is the
            geometric mean over blocks or windows, each of which counts the same. With jittered
            replicates, the geometric mean over them.
        total_low: lower end of the 95 % interval of `total` over replicates; None without any.
        total_high: upper end.
        disagrees: `ratio` and `total` point in opposite directions, one by more than 2 %.
    """

    p_adjusted: float | None
    verdict: str
    total: float | None = None
    total_low: float | None = None
    total_high: float | None = None
    disagrees: bool = False


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
        scheduler: its text, as given.
        jobs: counts summed over runs.
        metrics: means over runs.
        starvation: the longest wait of all runs, and the starved jobs of all (of replicates, of the
            worst one); None = no job counts.
        per_window: one value per window, in order.
        against_baseline: paired ratios; below 1 = smaller than the baseline's.
        trades: slowdown is better and JCT worse than the baseline's by more than the tolerance.
        power: number of windows that would detect the difference; None if it cannot be computed.
        gap_to_bound: mean JCT / lower bound - 1; at most this share is left to gain.
        log_sha256: hash of each run's log: windows in order, and within a window its seeds.
        wall_seconds: total simulation time of all runs.
        energy_cost: at the energy rate, if one was given; the mean over runs.
        by_user, by_pool, by_size, by_priority: the groupings asked for; see `groups.averaged`.
    """

    scheduler: str
    jobs: JobCounts
    metrics: AverageMetrics
    starvation: Starvation | None
    per_window: PerMetric[list[float]]
    against_baseline: PerMetric[Judgement]
    trades: bool
    power: PerMetric[Power | None]
    gap_to_bound: float | None
    log_sha256: list[str]
    wall_seconds: float
    energy_cost: float | None = None
    by_user: dict[str, GroupMetrics] | None = None
    by_pool: dict[str, GroupMetrics] | None = None
    by_size: dict[str, GroupMetrics] | None = None
    by_priority: dict[str, GroupMetrics] | None = None


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `compare`.

    Attributes:
        workload: name of the workload (of the first, when there are several).
        part: which part of a protocol this is, such as `VAL` or `REPORT`; empty = no part.
        cluster: name of the cluster.
        conditions: the conditions of the cluster that differ from the defaults.
        run_times: how the runs scale the run times of the (first) workload; None = not at all.
        load: the requested offered load; None = the load of the workload, or its default.
        knowledge: what all schedulers knew about run times.
        seed: of all runs (the first, when there are several) and of the intervals.
        seeds: number of seeds that each window was run with; a window's values are means over them.
        windows: number of windows that each scheduler ran, or 1 + the jittered replicates of a
            continuous run.
        window_jobs: jobs in each of them.
        continuous: one run, evaluated in blocks of jobs; `windows` of a verdict then counts blocks.
        jitter: number of jittered replicates of a continuous run, besides the workload as it is.
        mode: why the run was continuous, or why not.
        is_log: the jobs are recorded; intervals then speak of the recorded period only.
        measure: the part of each run that counts, in seconds; None = all of it.
        baseline: the scheduler that the others are compared with.
        schedulers: one result each, in the order given.
        bounds: for each window, a lower bound on the total JCT of any scheduler.
        best: the best fixed scheduler in hindsight, by the mean over windows of each metric; in a
            tie, the first.
        oracle: the same with its mean, and the best of each window.
    """

    workload: str
    part: str
    cluster: str
    conditions: dict[str, float]
    load: float | None
    knowledge: str
    seed: int
    seeds: int
    windows: int
    window_jobs: list[int]
    continuous: bool
    jitter: int
    mode: str
    is_log: bool
    measure: MeasurementWindow | None
    baseline: str
    schedulers: list[SchedulerResult]
    bounds: list[Bound]
    best: PerMetric[str]
    oracle: PerMetric[Oracle]
    run_times: RunTimeScaling | None = None
