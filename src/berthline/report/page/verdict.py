"""The verdict of a report: the result of a comparison in sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.evaluate.compare.judge import JCT_TOLERANCE, TRADE
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.evaluate.metrics.starvation import starves_words
from berthline.evaluate.statistics.multiple_comparisons import LEVEL, corrected_verdicts, holm
from berthline.evaluate.statistics.paired import FEW_WINDOWS, includes_one
from berthline.evaluate.statistics.power import power, power_in_words
from berthline.evaluate.statistics.totals import intervals_words, with_total
from berthline.number_text import duration
from berthline.report.figures.oracle_gap import mean_bound
from berthline.report.run_results import mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.report.run_results import RunResults

BESIDE = ("jct_p99", "bounded_slowdown_mean", "makespan", "utilization")
"""Metrics that are reported with mean JCT: no metric is assessed alone."""
MOST_NAMED = 6


def in_words(run: RunResults, scheduler: str, other: str, metric: str) -> str:
    """Return the verdict on a scheduler against another, corrected for all such comparisons."""
    if metric == "bounded_slowdown_mean" and trades(run, scheduler, other):
        return TRADE
    names = [name for name in run.schedulers if name != other]
    words = corrected_verdicts(
        [run.ratio(name, other, metric) for name in names],
        higher_is_better=METRICS[metric].higher_is_better,
    )
    ratio, total = run.ratio(scheduler, other, metric), run.total(scheduler, other, metric)
    return with_total(words[names.index(scheduler)] or "", ratio.ratio, total)


def trades(run: RunResults, scheduler: str, other: str) -> bool:
    """Whether slowdown is better beyond chance but mean JCT is worse by more than a tolerance."""
    jct = run.ratio(scheduler, other, "jct_mean").ratio
    slowdown = run.ratio(scheduler, other, "bounded_slowdown_mean")
    if jct is None or slowdown.ratio is None:
        return False
    return (slowdown.high or slowdown.ratio) < 1 and jct > JCT_TOLERANCE


def equals_of(run: RunResults, scheduler: str, metric: str) -> list[str]:
    """Return the schedulers not distinguishable from this one; none with a single window."""
    others = [name for name in run.ranked(metric) if name != scheduler]
    ratios = [run.ratio(other, scheduler, metric) for other in others]
    adjusted = holm([ratio.p_value for ratio in ratios])
    return [
        other
        for other, ratio, p in zip(others, ratios, adjusted, strict=True)
        if ratio.low is not None
        and ratio.high is not None
        and (includes_one(ratio.low, ratio.high) or (p is not None and p > LEVEL))
    ]


def sentences(run: RunResults) -> list[str]:
    """Return the verdict, most important first; an evaluation's own verdict comes first."""
    own = [f"{run.run.results['verdict']}."] if run.run.kind == "eval" else []
    return own + _of_cell(run)


def _of_cell(run: RunResults) -> list[str]:
    best = run.ranked("jct_mean")[0]
    time = duration(mean(run.values(best, "jct_mean")))
    starving = starves_words({name: run.starvation(name) for name in run.schedulers})
    starves = [f"{starving}."] if starving else []
    if len(run.schedulers) == 1:
        lone = f"One scheduler ran, {best}: mean JCT is {time}. There is no comparison."
        return [lone, *starves]
    told = [_lead(run, best, time), *starves]
    alike = equals_of(run, best, "jct_mean")
    if alike:
        told.append(
            f"Not distinguishable from it in mean JCT: {_listed(alike)}."
            f"{_about_power(run, alike[0], best)}"
        )
    elif run.judged_on > 1:
        told.append("It is better than every other scheduler here, beyond chance in each case.")
    if best != run.baseline:
        beside = [
            f"{METRICS[metric].label} {in_words(run, best, run.baseline, metric)}"
            for metric in BESIDE
        ]
        told.append(f"Other metrics against {run.baseline}: {'; '.join(beside)}.")
    told += _about_slowdown(run, best)
    told += _about_tails(run, best)
    bound = mean_bound(run)
    if bound:
        left = 1 - bound / mean(run.values(best, "jct_mean"))
        told.append(
            f"No schedule of these jobs can have a mean JCT below {duration(bound)} (proven); "
            f"at most {100 * left:.2g} % of the mean JCT of {best} can still be gained."
        )
    return told


def _lead(run: RunResults, best: str, time: str) -> str:
    if best == run.baseline:
        runner_up = run.ranked("jct_mean")[1]
        words = in_words(run, runner_up, best, "jct_mean")
        return (
            f"The baseline itself, {best}, has the lowest mean JCT, {time}. Next is {runner_up}: "
            f"{words}."
        )
    words = in_words(run, best, run.baseline, "jct_mean")
    return f"{best} has the lowest mean JCT, {time}. Against {run.baseline}: {words}."


def _about_power(run: RunResults, other: str, best: str) -> str:
    """Return how many windows would distinguish the best from the next, in a sentence."""
    if run.windows < 2 or run.cell.get("continuous"):
        return ""
    found = power(run.values(other, "jct_mean"), run.values(best, "jct_mean"))
    return "" if found is None else f" For {other}: {power_in_words(found)}."


def _about_slowdown(run: RunResults, best: str) -> list[str]:
    told = []
    least = run.ranked("bounded_slowdown_mean")[0]
    if run.values(least, "bounded_slowdown_mean") != run.values(best, "bounded_slowdown_mean"):
        words = in_words(run, least, best, "bounded_slowdown_mean")
        jct = in_words(run, least, best, "jct_mean")
        told.append(
            f"The lowest bounded slowdown is that of {least}. Against {best}: {words}, with mean "
            f"JCT {jct}."
        )
    traders = [name for name in run.schedulers if trades(run, name, run.baseline)]
    if traders:
        told.append(
            f"Lower slowdown, but higher mean JCT than {run.baseline} (trades JCT for slowdown): "
            f"{_listed(traders)}."
        )
    return told


def _about_tails(run: RunResults, best: str) -> list[str]:
    shortest = run.ranked("jct_p99")[0]
    if run.values(shortest, "jct_p99") == run.values(best, "jct_p99"):
        return []
    words = in_words(run, shortest, best, "jct_p99")
    return [f"The shortest p99 JCT is that of {shortest}. Against {best}: {words}."]


def cautions(run: RunResults) -> list[str]:
    """Return reasons to doubt the verdict; empty if there are none."""
    told = []
    if all(max(run.values(name, "wait_mean")) == 0 for name in run.schedulers):
        told.append("No job ever waited, so there is nothing to compare: raise the load.")
    if len(run.schedulers) > 1 and run.judged_on == 1:
        told.append("One run without blocks has no interval: differences may be due to chance.")
    elif len(run.schedulers) > 1 and run.judged_on < FEW_WINDOWS:
        told.append(f"Only {run.judged_on} windows: intervals are rough. Use 8 or more.")
    if len(run.schedulers) > 1 and run.judged_on > 1 and "is_log" in run.cell:
        words = intervals_words(is_log=run.cell["is_log"], continuous=run.cell["continuous"])
        told.append(f"About the intervals: {words}.")
    for result in run.cell["schedulers"]:
        jobs = result["jobs"]
        if jobs["unfinished"]:
            told.append(
                f"Under {result['scheduler']}, {jobs['unfinished']:,} jobs did not finish; they "
                "count with the time spent so far, so its times are lower bounds."
            )
    rejected = run.cell["schedulers"][0]["jobs"]["rejected"]
    if rejected:
        told.append(f"{rejected:,} jobs can never fit on the cluster and are not in any figure.")
    if run.run.kind == "eval" and len(run.cells) > 1:
        told.append(
            "This page is about the held-out REPORT jobs, except for the table of cells, and "
            "for timelines and Gantt charts, which show the first VAL run."
        )
    elif len(run.cells) > 1:
        told.append(
            f"The run has {len(run.cells)} cells. The verdict, tables of jobs and logs are for the "
            "first; the others are in the table of cells and in the sweeps."
        )
    return told


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(names[:MOST_NAMED])
    return shown if more <= 0 else f"{shown} and {more} more"
