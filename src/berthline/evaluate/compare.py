"""compare: several schedulers on the same windows of jobs, against one of them as the baseline.

Every scheduler runs every window from an empty cluster, with the same knowledge and seed, so that
differences are the schedulers' own. No metric is judged alone: a gain in slowdown that is paid
for in JCT is named as that.
"""

from __future__ import annotations

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
from berthline.evaluate.grid import Cell, Grid, GridResults, Progress, run_grid
from berthline.evaluate.groups import averaged, check_grouping
from berthline.evaluate.job_table import JobCounts
from berthline.evaluate.queue_length import QueueLength
from berthline.evaluate.run_record import RunRecord, RunSettings
from berthline.evaluate.statistics import Ratio, paired_ratio, verdict
from berthline.evaluate.utilization import Utilization
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from berthline.evaluate.energy_rate import EnergyRate
    from berthline.evaluate.metrics import Metrics
    from berthline.model.cluster import Cluster

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
    workers: int | None = 1,
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
        workers: how many processes make the runs; 1 = this one alone, None = as many as pay. The
            results are the same.
        progress: called after each run with (done, total, label).

    Raises:
        ConfigError: no or duplicate schedulers, more windows than jobs, or no such grouping.
        BerthlineError: a scheduler does not go with the workload, cluster or knowledge.
    """
    from berthline.model.cluster import Cluster

    workloads = [workload] if isinstance(workload, Workload) else list(workload)
    names, reference = with_baseline(schedulers, baseline)
    if isinstance(cluster, str):
        cluster = Cluster.parse(cluster)
    if conditions:
        cluster = cluster.with_conditions(conditions)
    for grouping in by:
        check_grouping(grouping)
    grid = Grid(
        [cell_of(workloads, cluster, windows=windows, energy_rate=energy_rate)],
        names,
        [seed],
        RunSettings(knowledge=knowledge, simulator=simulator, by=tuple(by)),
    )
    return comparison_of(run_grid(grid, workers=workers, progress=progress), 0, reference)


def cell_of(
    workloads: Sequence[Workload],
    cluster: Cluster,
    *,
    windows: int = 1,
    load: float | None = None,
    energy_rate: EnergyRate | None = None,
) -> Cell:
    """Return the cell whose windows are these workloads, each cut into so many.

    Raises:
        ConfigError: no workload, or more windows than jobs.
    """
    if not workloads:
        raise ConfigError("no workload to compare on", expected="one workload or more")
    fewest = min(map(len, workloads))
    if not 1 <= windows <= fewest:
        raise ConfigError(
            f"--windows is {windows}", expected=f"1 to {fewest}: every window needs a job"
        )

    def window(number: int) -> tuple[Workload, float]:
        workload, part = workloads[number // windows], number % windows
        if windows == 1:
            return workload, 0.0
        first, last = (len(workload) * i // windows for i in (part, part + 1))
        return workload.window(first, last), float(workload.submit[first])

    return Cell(
        workload=workloads[0].name,
        source=workloads[0],
        cluster=cluster,
        load=load,
        windows=len(workloads) * windows,
        window=window,
        energy_rate=energy_rate,
    )


def comparison_of(results: GridResults, cell: int, baseline: int) -> Comparison:
    """Return what the runs of a cell say.

    Args:
        results: all runs.
        cell: which cell.
        baseline: which scheduler the others are compared with.
    """
    grid = results.grid
    place = grid.cells[cell]
    runs = [results.of(cell, number) for number in range(len(grid.schedulers))]
    measured = [_per_window(windows) for windows in runs]
    found = [
        _summarise(name, runs[i], measured[i], measured[baseline], grid, is_baseline=i == baseline)
        for i, name in enumerate(grid.schedulers)
    ]
    return Comparison(
        workload=place.workload,
        cluster=place.cluster.name,
        conditions=place.cluster.conditions.changed(),
        load=place.load,
        knowledge=grid.settings.knowledge,
        seed=grid.seeds[0],
        seeds=len(grid.seeds),
        windows=place.windows,
        window_jobs=[results.windows[cell, window].jobs for window in range(place.windows)],
        baseline=grid.schedulers[baseline],
        schedulers=found,
        best=_best(found),
    )


def with_baseline(schedulers: Sequence[str], baseline: str | None) -> tuple[list[str], int]:
    """Return the schedulers to run and which of them is the baseline.

    Two texts are the same scheduler when they are written out alike, as `sjf` and `sjf+strict`.

    Raises:
        ConfigError: there is none, or one is there twice.
        PolicyError: one is none.
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
    windows: list[list[RunRecord]],
    per_window: PerMetric[list[float]],
    of_baseline: PerMetric[list[float]],
    grid: Grid,
    *,
    is_baseline: bool,
) -> SchedulerResult:
    records = [record for runs in windows for record in runs]
    runs = [record.metrics for record in records]
    costs = [record.energy_cost for record in records if record.energy_cost is not None]
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
            per_window, of_baseline, seed=grid.seeds[0], is_baseline=is_baseline
        ),
        log_sha256=[run.log_sha256 for run in runs],
        wall_seconds=sum(record.wall_seconds for record in records),
        energy_cost=_mean(costs) if costs else None,
        **{
            f"by_{grouping}": {
                row.group: row for row in averaged([record.groups[grouping] for record in records])
            }
            for grouping in grid.settings.by
        },
    )


def _per_window(windows: list[list[RunRecord]]) -> PerMetric[list[float]]:
    """Return a value for each window; the mean over its seeds, which are no samples of windows."""

    def of(read: Callable[[Metrics], float]) -> list[float]:
        return [_mean([read(record.metrics) for record in runs]) for runs in windows]

    return PerMetric(
        jct_mean=of(lambda run: run.jct.mean),
        jct_p99=of(lambda run: run.jct.p99),
        bounded_slowdown_mean=of(lambda run: run.bounded_slowdown.mean),
        wait_mean=of(lambda run: run.wait.mean),
        makespan=of(lambda run: run.makespan),
        utilization=of(lambda run: run.utilization.gpu),
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
