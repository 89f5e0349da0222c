"""Verdicts: each scheduler of a cell compared with the baseline.

No metric is evaluated alone. All metrics are shown side by side, a gain in slowdown at the cost of
JCT is reported as a trade, and verdicts are corrected for the number of schedulers compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from berthline.evaluate.compare.comparison import (
    AverageMetrics,
    Comparison,
    Judgement,
    PerMetric,
    SchedulerResult,
)
from berthline.evaluate.compare.oracle import oracle
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.distribution import Distribution
from berthline.evaluate.metrics.fairness import Fairness
from berthline.evaluate.metrics.groups import averaged
from berthline.evaluate.metrics.job_table import JobCounts
from berthline.evaluate.metrics.queue_length import QueueLength
from berthline.evaluate.metrics.starvation import over_runs
from berthline.evaluate.metrics.utilization import Utilization
from berthline.evaluate.statistics.blocks import BlockRatio, replicated_block_ratio
from berthline.evaluate.statistics.multiple_comparisons import corrected_verdicts, holm
from berthline.evaluate.statistics.paired import Ratio, paired_ratio
from berthline.evaluate.statistics.power import power
from berthline.evaluate.statistics.totals import disagree, with_total
from berthline.model.speeds import run_time_scaling
from berthline.runs.job_tables import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from berthline.evaluate.bounds import Bound
    from berthline.evaluate.compare.grid import GridResults, RunIndex
    from berthline.evaluate.compare.run_record import RunRecord
    from berthline.evaluate.metrics.measure import Metrics

JCT_TOLERANCE = 1.02
"""A scheduler whose mean JCT is worse by more than this ratio does not win on slowdown."""

TRADE = "trades JCT for slowdown"

_Values = PerMetric[list[float]]
_Record = TypeVar("_Record", Distribution, QueueLength, Utilization)


def comparison_of(results: GridResults, cell: int, baseline: int) -> Comparison:
    """Return the comparison of the schedulers in a cell.

    Args:
        results: all runs.
        cell: which cell.
        baseline: which scheduler the others are compared with.
    """
    grid, place = results.grid, results.grid.cells[cell]
    names = grid.schedulers
    runs = [results.of(cell, number) for number in range(len(names))]
    measured = [_per_window(windows) for windows in runs]
    ratios = _ratios(results, cell, measured, baseline)
    judged = _judge(ratios, measured, baseline, seed=grid.seeds[0])
    bounds = [window[0].bound for window in runs[0] if window[0].bound is not None]
    found = [
        _summarise(
            name,
            runs[i],
            measured[i],
            judged[i],
            by=grid.settings.by,
            bounds=bounds,
            trades=i != baseline and _trades_jct(ratios[i]),
            against=None if i == baseline or grid.continuous else measured[baseline],
            replicated=grid.continuous,
        )
        for i, name in enumerate(names)
    ]
    hindsight = {
        metric: oracle(
            names,
            [getattr(values, metric) for values in measured],
            higher_is_better=METRICS[metric].higher_is_better,
        )
        for metric in METRICS
    }
    return Comparison(
        workload=place.workload,
        part=place.part,
        cluster=place.cluster.name,
        conditions=place.cluster.conditions.changed(),
        load=place.load,
        knowledge=grid.settings.knowledge,
        seed=grid.seeds[0],
        seeds=len(grid.seeds),
        windows=place.windows,
        window_jobs=[results.windows[cell, window].jobs for window in range(place.windows)],
        continuous=grid.continuous,
        jitter=grid.jitter,
        mode=grid.mode,
        is_log="generator" not in place.source.provenance,
        measure=grid.settings.measure,
        baseline=names[baseline],
        schedulers=found,
        bounds=bounds,
        best=PerMetric(**{metric: each.overall for metric, each in hindsight.items()}),
        oracle=PerMetric(**hindsight),
        run_times=run_time_scaling(place.source, place.cluster),
    )


def judge_pair(
    results: GridResults, cell: int, ours: int, theirs: int
) -> tuple[PerMetric[Judgement], bool]:
    """Return the verdicts for a pair of schedulers, and whether the first trades JCT for slowdown.

    Args:
        results: all runs.
        cell: which cell.
        ours: the scheduler that is evaluated.
        theirs: the scheduler it is compared with.
    """
    count = len(results.grid.schedulers)
    measured = [_per_window(results.of(cell, number)) for number in range(count)]
    ratios = _ratios(results, cell, measured, theirs)
    pair = [ratios[theirs], ratios[ours]]
    values = [measured[theirs], measured[ours]]
    seed = results.grid.seeds[0]
    return _judge(pair, values, 0, seed=seed)[1], _trades_jct(ratios[ours])


def _ratios(
    results: GridResults, cell: int, measured: list[_Values], baseline: int
) -> list[dict[str, Ratio]]:
    """Return each scheduler's ratios to the baseline, over windows or over blocks."""
    if results.grid.continuous:
        return _ratios_of_blocks(results, cell, measured, baseline)
    seed = results.grid.seeds[0]
    return [_ratios_of_windows(ours, measured[baseline], seed) for ours in measured]


def _ratios_of_windows(ours: _Values, baseline: _Values, seed: int) -> dict[str, Ratio]:
    return {
        metric: paired_ratio(getattr(ours, metric), getattr(baseline, metric), seed=seed)
        for metric in METRICS
    }


def _ratios_of_blocks(
    results: GridResults, cell: int, measured: list[_Values], baseline: int
) -> list[dict[str, Ratio]]:
    """Return the ratios of continuous runs; makespan and utilisation are of the whole run."""
    grid = results.grid
    replicates = range(grid.cells[cell].windows)
    counted = [_counted(results, cell, number, baseline) for number in replicates]
    fewest = min(int(np.count_nonzero(each)) for each in counted)
    # Jobs that can never fit may leave fewer than there are blocks.
    blocks = grid.blocks if grid.blocks > len(counted[0]) else min(grid.blocks, fewest)
    found = []
    for number, ours in enumerate(measured):
        ratios = _ratios_of_windows(_of_run(ours), _of_run(measured[baseline]), grid.seeds[0])
        for name, metric in METRICS.items():
            if not metric.column or not blocks:
                continue
            ratios[name] = replicated_block_ratio(
                [
                    tuple(
                        getattr(results.jobs[_run(cell, k, one)], metric.column)[counted[k]]
                        for one in (number, baseline)
                    )
                    for k in replicates
                ],
                statistic=metric.statistic,
                blocks=blocks,
                seed=grid.seeds[0],
            )
        found.append(ratios)
    return found


def _of_run(values: _Values) -> _Values:
    """Return one value of each metric: the mean over replicates, which are not windows."""
    return PerMetric(**{metric: [_mean(getattr(values, metric))] for metric in METRICS})


def _counted(results: GridResults, cell: int, window: int, scheduler: int) -> npt.NDArray[np.bool_]:
    """Return which jobs of a window count; which are rejected does not depend on the scheduler."""
    measure = results.grid.settings.measure
    counted: npt.NDArray[np.bool_] = results.jobs[
        _run(cell, window, scheduler)
    ].state != STATES.index("rejected")
    if measure is not None:
        counted &= measure.has(results.columns[cell, window].submit)
    return counted


def _run(cell: int, window: int, scheduler: int) -> RunIndex:
    from berthline.evaluate.compare.grid import RunIndex

    return RunIndex(cell, window, 0, scheduler)


def _judge(
    ratios: list[dict[str, Ratio]], measured: list[_Values], baseline: int, *, seed: int
) -> list[PerMetric[Judgement]]:
    """Return each scheduler's ratios with verdicts, corrected for the number of schedulers."""
    judged: list[dict[str, Judgement]] = [{} for _ in ratios]
    for metric in METRICS:
        others = [None if i == baseline else each[metric] for i, each in enumerate(ratios)]
        words = corrected_verdicts(others, higher_is_better=METRICS[metric].higher_is_better)
        adjusted = holm([None if ratio is None else ratio.p_value for ratio in others])
        for i, each in enumerate(ratios):
            text = words[i] or "the baseline"
            if metric == "bounded_slowdown_mean" and i != baseline and _trades_jct(each):
                text = TRADE
            ratio = each[metric]
            total = _total(measured[i], measured[baseline], metric, ratio, seed)
            judged[i][metric] = Judgement(
                ratio=ratio.ratio,
                low=ratio.low,
                high=ratio.high,
                windows=ratio.windows,
                p_value=ratio.p_value,
                p_adjusted=adjusted[i],
                verdict=with_total(text, ratio.ratio, total.ratio),
                total=total.ratio,
                total_low=total.low,
                total_high=total.high,
                disagrees=disagree(ratio.ratio, total.ratio),
            )
    return [PerMetric(**each) for each in judged]


def _total(ours: _Values, baseline: _Values, metric: str, ratio: Ratio, seed: int) -> Ratio:
    """Return the ratio of the values that the tables show, with an interval over replicates.

    In windows it is the ratio of their means: the windows are already in `ratio`.
    """
    mine, other = getattr(ours, metric), getattr(baseline, metric)
    if isinstance(ratio, BlockRatio):
        return paired_ratio(mine, other, seed=seed)
    return paired_ratio([_mean(mine)], [_mean(other)], seed=seed)


def _trades_jct(ratios: dict[str, Ratio]) -> bool:
    """Whether slowdown is better (beyond its interval, if there is one) and mean JCT is worse."""
    jct, slowdown = ratios["jct_mean"], ratios["bounded_slowdown_mean"]
    if jct.ratio is None or slowdown.ratio is None:
        return False
    return (slowdown.high or slowdown.ratio) < 1 and jct.ratio > JCT_TOLERANCE


def _summarise(
    name: str,
    windows: list[list[RunRecord]],
    per_window: _Values,
    judged: PerMetric[Judgement],
    *,
    by: Sequence[str],
    bounds: list[Bound],
    trades: bool,
    against: _Values | None,
    replicated: bool,
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
        starvation=over_runs([run.starvation for run in runs], same_jobs=replicated),
        per_window=per_window,
        against_baseline=judged,
        trades=trades,
        power=PerMetric(
            **{
                metric: None
                if against is None
                else power(getattr(per_window, metric), getattr(against, metric))
                for metric in METRICS
            }
        ),
        gap_to_bound=_gap(per_window.jct_mean, bounds),
        log_sha256=[run.log_sha256 for run in runs],
        wall_seconds=sum(record.wall_seconds for record in records),
        energy_cost=_mean(costs) if costs else None,
        **{
            f"by_{grouping}": {
                row.group: row for row in averaged([record.groups[grouping] for record in records])
            }
            for grouping in by
        },
    )


def _gap(jct: list[float], bounds: list[Bound]) -> float | None:
    """Return mean JCT / bound - 1, both as means over windows."""
    if len(bounds) != len(jct) or not all(bound.jobs for bound in bounds):
        return None
    return _mean(jct) / _mean([bound.mean for bound in bounds]) - 1


def _per_window(windows: list[list[RunRecord]]) -> _Values:
    """Return one value per window: the mean over its seeds, which are not extra windows."""
    return PerMetric(
        **{
            name: [_mean([metric.of(record.metrics) for record in runs]) for runs in windows]
            for name, metric in METRICS.items()
        }
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
