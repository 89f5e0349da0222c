"""The summary of a suite: every scheduler against the best fixed rule of each cell in hindsight."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.counted import counted
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.statistics.paired import log_ratios, paired_ratio, ratio_of_logs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.experiments.suites.suite_tables import SuiteResults

RESAMPLES = 2_000
"""There is an interval for each scheduler in each cell, and two digits are shown."""


class SuiteScheduler(msgspec.Struct, frozen=True, kw_only=True):
    """One scheduler over the clean cells of a suite.

    Attributes:
        scheduler: its name.
        part: the name of its part; empty = it is none.
        mean_ratio: geometric mean over cells of the ratio to the best rule; None = there is none.
        low: of its interval over cells.
        high: of its interval over cells.
        worst_ratio: in the cell where it is worst.
        worst_cell: that cell.
        best_in: number of cells in which no rule has a better mean.
        as_good_in: number of cells in which the interval of the ratio is not wholly worse than 1.
        cells: number of cells that count: all of its runs and a rule have finished there.
    """

    scheduler: str
    part: str
    mean_ratio: float | None
    low: float | None
    high: float | None
    worst_ratio: float | None
    worst_cell: str
    best_in: int
    as_good_in: int
    cells: int


class SuiteSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What `berthline suite --json` prints.

    Attributes:
        suite: its name.
        about: what it is.
        runs: number of runs, those on VAL included.
        failed: number of them that failed.
        cells: number of cells.
        incomplete_cells: those with a run that failed.
        only: what was chosen of the plan; empty = all.
        limit: the limit on runs that was given; None = none.
        metric: what the ratios are about.
        knowledge: of run times.
        seeds: number of seeds.
        schedulers: one by one, in the order of the plan.
        chosen_on_val: the rule that was best on VAL in each cell; None = nothing is chosen.
        verdict: in a sentence.
    """

    suite: str
    about: str
    runs: int
    failed: int
    cells: int
    incomplete_cells: list[str]
    only: str
    limit: int | None
    metric: str
    knowledge: str
    seeds: int
    schedulers: list[SuiteScheduler]
    chosen_on_val: dict[str, str | None] | None
    verdict: str


def summary_of(results: SuiteResults) -> SuiteSummary:
    """Return the summary of a suite whose runs are all made."""
    planned = results.planned
    plan = planned.plan
    values, incomplete = _values(results)
    rules = set(plan.schedulers) or {part.name for part in plan.parts if part.scheduler}
    names = list(dict.fromkeys(name for of in values.values() for name in of))
    schedulers = [_one(name, plan.metric, values, rules, _part_of(name, results)) for name in names]
    return SuiteSummary(
        suite=plan.name,
        about=plan.about,
        runs=results.work.total,
        failed=len(results.work.failures),
        cells=len(planned.cells),
        incomplete_cells=incomplete,
        only=plan.only,
        limit=plan.limit,
        metric=plan.metric,
        knowledge=plan.knowledge,
        seeds=plan.seeds,
        schedulers=schedulers,
        chosen_on_val=results.chosen_names(),
        verdict=_verdict(schedulers, plan.metric, incomplete),
    )


_Values = dict[str, dict[str, list[float]]]
"""The metric by clean cell and by scheduler, in the order of seeds; a part counts by its name."""


def _values(results: SuiteResults) -> tuple[_Values, list[str]]:
    """Return the values of the clean cells, and the names of all cells with failed runs."""
    metric = METRICS[results.planned.plan.metric]
    found: _Values = {}
    incomplete: dict[str, None] = {}
    for row in results.rows():
        cell = row.unit.cells[row.cell]
        record = results.record(row)
        if record is None:
            incomplete[cell.name] = None
        if cell.is_clean:
            label = row.scheduler if row.planned is None else row.planned.part or row.scheduler
            value = math.nan if record is None else float(metric.of(record.metrics))
            found.setdefault(cell.name, {}).setdefault(label, []).append(value)
    return found, list(incomplete)


def _part_of(name: str, results: SuiteResults) -> str:
    return name if name in {part.name for part in results.planned.plan.parts} else ""


def _one(
    name: str,
    metric: str,
    values: Mapping[str, Mapping[str, Sequence[float]]],
    rules: set[str],
    part: str,
) -> SuiteScheduler:
    higher = METRICS[metric].higher_is_better
    sign = -1.0 if higher else 1.0
    logs: dict[str, float] = {}
    best_in = as_good = 0
    for cell, of in values.items():
        ours = of.get(name, [])
        finished = {
            rule: each for rule, each in of.items() if rule in rules and np.isfinite(each).all()
        }
        if not finished or not ours or not np.isfinite(ours).all():
            continue
        best = min(finished.values(), key=lambda each: sign * float(np.mean(each)))
        # A part that was trained several times has several values for each seed.
        rival = np.repeat(best, len(ours) // len(best)) if len(ours) % len(best) == 0 else best
        if len(rival) != len(ours) or (of_windows := log_ratios(ours, list(rival))) is None:
            continue
        logs[cell] = float(of_windows.mean())
        best_in += sign * float(np.mean(ours)) <= sign * float(np.mean(best))
        as_good += _is_as_good(ours, list(rival), higher=higher)
    total = ratio_of_logs(np.array(list(logs.values())), resamples=RESAMPLES) if logs else None
    worst = max(logs, key=lambda cell: sign * logs[cell]) if logs else ""
    return SuiteScheduler(
        scheduler=name,
        part=part,
        mean_ratio=None if total is None else total.ratio,
        low=None if total is None else total.low,
        high=None if total is None else total.high,
        worst_ratio=math.exp(logs[worst]) if logs else None,
        worst_cell=worst,
        best_in=best_in,
        as_good_in=as_good,
        cells=len(logs),
    )


def _is_as_good(ours: Sequence[float], best: Sequence[float], *, higher: bool) -> bool:
    found = paired_ratio(ours, best, resamples=RESAMPLES)
    if found.ratio is None:
        return False
    if found.low is None or found.high is None:
        return found.ratio == 1
    return found.high >= 1 if higher else found.low <= 1


def _verdict(schedulers: Sequence[SuiteScheduler], metric: str, incomplete: Sequence[str]) -> str:
    """Return the verdict: who is nearest to the best rule of each cell."""
    label, higher = METRICS[metric].label, METRICS[metric].higher_is_better
    known = [one for one in schedulers if one.mean_ratio is not None]
    caution = f"; {counted(len(incomplete), 'cell')} incomplete" if incomplete else ""
    if not known:
        return f"no scheduler has finished in a whole cell{caution}"
    choose = max if higher else min
    best = choose(known, key=lambda one: round(one.mean_ratio or 0.0, 9))
    interval = "" if best.low is None else f" [{best.low:.3f}, {best.high:.3f}]"
    return (
        f"{best.scheduler} is nearest to the best rule of each cell in hindsight: {label} "
        f"{best.mean_ratio:.3f} times its{interval}, at worst {best.worst_ratio:.3f} times "
        f"({best.worst_cell}), over {counted(best.cells, 'cell')}{caution}"
    )


def plain_summary(summary: SuiteSummary) -> dict[str, Any]:
    """Return a summary as plain data."""
    found: dict[str, Any] = msgspec.to_builtins(summary)
    return found
