"""compare: several schedulers on the same windows of jobs, against one of them as the baseline.

Every scheduler runs every window from an empty cluster, with the same knowledge and seed, so that
differences are the schedulers' own. No metric is judged alone: a gain in slowdown that is paid
for in JCT is named as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from berthline.errors import ConfigError
from berthline.evaluate.comparison import (
    AverageMetrics,
    Comparison,
    Judgement,
    PerMetric,
    SchedulerResult,
)
from berthline.evaluate.distribution import Distribution
from berthline.evaluate.fairness import Fairness
from berthline.evaluate.groups import averaged, check_grouping
from berthline.evaluate.job_table import JobCounts
from berthline.evaluate.queue_length import QueueLength
from berthline.evaluate.statistics import Ratio, paired_ratio, verdict
from berthline.evaluate.utilization import Utilization
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from berthline.evaluate.energy_rate import EnergyRate
    from berthline.evaluate.groups import GroupMetrics
    from berthline.evaluate.metrics import Metrics
    from berthline.model.cluster import Cluster

Progress = Callable[[int, int, str], None]
"""Called after each run with (runs done, runs in all, what has just run)."""

JCT_TOLERANCE = 1.02
"""A scheduler whose mean JCT is worse by more than this ratio does not win on slowdown."""

TRADE = "trades JCT for slowdown"

_Record = TypeVar("_Record", Distribution, QueueLength, Utilization)


def compare(
    workload: Workload | Sequence[Workload],
    cluster: Cluster | str,
    schedulers: Sequence[str],
    *,
    baseline: str | None = None,
    knowledge: str = "estimate",
    seed: int = 0,
    windows: int = 1,
    conditions: Mapping[str, float] | None = None,
    simulator: str = "native",
    energy_rate: EnergyRate | None = None,
    by: Sequence[str] = (),
    progress: Progress | None = None,
) -> Comparison:
    """Run every scheduler on the same windows and compare each with the baseline.

    Args:
        workload: the jobs; several workloads (one per generator seed, say) are a window each.
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"`.
        schedulers: their texts, such as `["fcfs", "sjf+easy@best-fit"]`.
        baseline: one of them, or another that is then run first; None = the first.
        knowledge: what the schedulers know of run times: none, estimate, predicted or exact.
        seed: for whatever is random in a scheduler, and for the intervals.
        windows: cut each workload into this many consecutive windows of equally many jobs (one
            more or less where it does not divide), each on an empty cluster from time 0.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        simulator: `native` or `reference`.
        energy_rate: price or carbon per kWh over time, on the clock of each workload; windows cut
            from one keep their time in it.
        by: also compare groups of jobs: `user`, `pool`, `size`, `priority`.
        progress: called after each run with (done, total, label).

    Raises:
        ConfigError: no or duplicate schedulers, more windows than jobs, or no such grouping.
        BerthlineError: a scheduler does not go with the workload, cluster or knowledge.
    """
    from berthline.model.cluster import Cluster
    from berthline.sim.simulate import simulate

    workloads = [workload] if isinstance(workload, Workload) else list(workload)
    _check_windows(workloads, windows)
    names, reference = _with_baseline(schedulers, baseline)
    if isinstance(cluster, str):
        cluster = Cluster.parse(cluster)
    if conditions:
        cluster = cluster.with_conditions(conditions)

    for grouping in by:
        check_grouping(grouping)
    measured: list[list[Metrics]] = [[] for _ in names]
    costs: list[list[float]] = [[] for _ in names]
    groups: list[dict[str, list[list[GroupMetrics]]]] = [{g: [] for g in by} for _ in names]
    wall_seconds = [0.0] * len(names)
    window_jobs: list[int] = []
    total = len(workloads) * windows * len(names)
    for window, begins in _cut(workloads, windows):
        window_jobs.append(len(window))
        for index, name in enumerate(names):
            result = simulate(
                window, cluster, name, knowledge=knowledge, seed=seed, simulator=simulator
            )
            measured[index].append(result.metrics())
            if energy_rate is not None:
                costs[index].append(result.energy_cost(energy_rate.shifted(begins)))
            for grouping in by:
                groups[index][grouping].append(result.by(grouping))
            wall_seconds[index] += result.wall_seconds
            if progress is not None:
                progress(sum(map(len, measured)), total, f"{name} on {window.name}")

    results = [
        msgspec.structs.replace(
            _summarise(
                name, runs, measured[reference], seconds, seed=seed, is_baseline=i == reference
            ),
            energy_cost=_mean(costs[i]) if costs[i] else None,
            **{
                f"by_{grouping}": {row.group: row for row in averaged(tables)}
                for grouping, tables in groups[i].items()
            },
        )
        for i, (name, runs, seconds) in enumerate(zip(names, measured, wall_seconds, strict=True))
    ]
    return Comparison(
        workload=workloads[0].name,
        cluster=cluster.name,
        conditions=cluster.conditions.changed(),
        knowledge=knowledge,
        seed=seed,
        windows=len(window_jobs),
        window_jobs=window_jobs,
        baseline=names[reference],
        schedulers=results,
        best=_best(results),
    )


def _check_windows(workloads: list[Workload], windows: int) -> None:
    if not workloads:
        raise ConfigError("no workload to compare on", expected="one workload or more")
    fewest = min(map(len, workloads))
    if not 1 <= windows <= fewest:
        raise ConfigError(
            f"--windows is {windows}", expected=f"1 to {fewest}: every window needs a job"
        )


def _cut(workloads: list[Workload], windows: int) -> Iterator[tuple[Workload, float]]:
    """Yield the windows and their zeros, one at a time, so that only one is in memory."""
    for workload in workloads:
        if windows == 1:
            yield workload, 0.0
            continue
        for index in range(windows):
            first, last = (len(workload) * i // windows for i in (index, index + 1))
            yield workload.window(first, last), float(workload.submit[first])


def _with_baseline(schedulers: Sequence[str], baseline: str | None) -> tuple[list[str], int]:
    """Return the schedulers to run and which of them is the baseline.

    Two texts are the same scheduler when they are written out alike, as `sjf` and `sjf+strict`.
    """
    from berthline.policies.scheduler import Scheduler

    if isinstance(schedulers, str) or not schedulers:
        raise ConfigError(
            f"schedulers is {schedulers!r}",
            expected="a list of schedulers, such as ['fcfs', 'sjf+easy']",
        )
    names = list(schedulers)
    in_full = [str(Scheduler.parse(name)) for name in names]
    for index, text in enumerate(in_full):
        if text in in_full[:index]:
            earlier = names[in_full.index(text)]
            raise ConfigError(
                f"scheduler {names[index]!r} is listed twice",
                where="" if earlier == names[index] else f"as {earlier!r} before",
                expected="each scheduler once",
            )
    if baseline is None:
        return names, 0
    wanted = str(Scheduler.parse(baseline))
    if wanted in in_full:
        return names, in_full.index(wanted)
    return [baseline, *names], 0


def _summarise(
    name: str,
    runs: list[Metrics],
    baseline_runs: list[Metrics],
    wall_seconds: float,
    *,
    seed: int,
    is_baseline: bool,
) -> SchedulerResult:
    per_window = _per_window(runs)
    return SchedulerResult(
        scheduler=name,
        jobs=JobCounts(
            submitted=sum(run.jobs.submitted for run in runs),
            completed=sum(run.jobs.completed for run in runs),
            rejected=sum(run.jobs.rejected for run in runs),
            unfinished=sum(run.jobs.unfinished for run in runs),
        ),
        metrics=_average(runs),
        per_window=per_window,
        against_baseline=_judge(
            per_window, _per_window(baseline_runs), seed=seed, is_baseline=is_baseline
        ),
        log_sha256=[run.log_sha256 for run in runs],
        wall_seconds=wall_seconds,
    )


def _per_window(runs: list[Metrics]) -> PerMetric[list[float]]:
    return PerMetric(
        jct_mean=[run.jct.mean for run in runs],
        jct_p99=[run.jct.p99 for run in runs],
        bounded_slowdown_mean=[run.bounded_slowdown.mean for run in runs],
        wait_mean=[run.wait.mean for run in runs],
        makespan=[run.makespan for run in runs],
        utilization=[run.utilization.gpu for run in runs],
    )


def _average(runs: list[Metrics]) -> AverageMetrics:
    rates = [run.deadline_miss_rate for run in runs if run.deadline_miss_rate is not None]
    return AverageMetrics(
        jct=_average_record([run.jct for run in runs]),
        wait=_average_record([run.wait for run in runs]),
        slowdown=_average_record([run.slowdown for run in runs]),
        bounded_slowdown=_average_record([run.bounded_slowdown for run in runs]),
        makespan=_mean([run.makespan for run in runs]),
        utilization=_average_record([run.utilization for run in runs]),
        energy_kwh=_mean([run.energy_kwh for run in runs]),
        energy_per_job_kwh=_mean([run.energy_per_job_kwh for run in runs]),
        fairness=Fairness(
            jain=_mean([run.fairness.jain for run in runs]),
            rho=_average_record([run.fairness.rho for run in runs]),
        ),
        queue=_average_record([run.queue for run in runs]),
        preemptions=_mean([run.preemptions for run in runs]),
        lost_gpu_hours=_mean([run.lost_gpu_hours for run in runs]),
        deadline_miss_rate=_mean(rates) if rates else None,
        load_imbalance=_mean([run.load_imbalance for run in runs]),
    )


def _average_record(records: list[_Record]) -> _Record:
    kind = type(records[0])
    return kind(
        **{field: _mean([getattr(r, field) for r in records]) for field in kind.__struct_fields__}
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _judge(
    ours: PerMetric[list[float]],
    baseline: PerMetric[list[float]],
    *,
    seed: int,
    is_baseline: bool,
) -> PerMetric[Judgement]:
    ratios = {
        metric: paired_ratio(getattr(ours, metric), getattr(baseline, metric), seed=seed)
        for metric in PerMetric.__struct_fields__
    }
    words = {
        metric: "the baseline"
        if is_baseline
        else verdict(ratio, higher_is_better=metric == "utilization")
        for metric, ratio in ratios.items()
    }
    if _trades_jct(ratios["jct_mean"], ratios["bounded_slowdown_mean"]):
        words["bounded_slowdown_mean"] = TRADE
    return PerMetric(
        **{
            metric: Judgement(**msgspec.structs.asdict(ratio), verdict=words[metric])
            for metric, ratio in ratios.items()
        }
    )


def _trades_jct(jct: Ratio, slowdown: Ratio) -> bool:
    """Whether slowdown is better (beyond its interval, if there is one) and mean JCT is worse."""
    if jct.ratio is None or slowdown.ratio is None:
        return False
    return (slowdown.high or slowdown.ratio) < 1 and jct.ratio > JCT_TOLERANCE


def _best(results: list[SchedulerResult]) -> PerMetric[str]:
    best = {}
    for metric in PerMetric.__struct_fields__:
        choose = max if metric == "utilization" else min
        best[metric] = choose(
            results, key=lambda result: _mean(getattr(result.per_window, metric))
        ).scheduler
    return PerMetric(**best)
