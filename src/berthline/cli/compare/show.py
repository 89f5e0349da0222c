"""The text that `berthline compare` prints: values, differences from the baseline, cautions."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from typing import TYPE_CHECKING

from berthline.cli.compare.whole_runs import (
    STARVED,
    disagreements,
    intervals_of,
    replicates_of,
    starving,
    whole_runs_table,
)
from berthline.cli.conditions import header_of
from berthline.cli.energy_rate import cost_of
from berthline.cli.output import (
    BEST,
    NARROWEST,
    counted,
    fold_scheduler,
    job_counts,
    new_table,
    number,
    print_facts,
    print_table,
    seconds,
)
from berthline.evaluate.statistics.change_in_words import (
    PERCENT,
    WithEnds,
    column_of_changes,
    is_factor,
    size_in_words,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from berthline.evaluate.compare.comparison import AverageMetrics, Comparison, Judgement
    from berthline.evaluate.compare.overall import Overall
    from berthline.evaluate.statistics.interval import Interval
    from berthline.model.cluster import Cluster


def show(comparison: Comparison, cluster: Cluster) -> None:
    """Print a comparison as text: the values, then the differences from the baseline."""
    jobs = comparison.window_jobs
    few = "" if min(jobs) == max(jobs) else f"{min(jobs):,} to "
    length = (
        "in one run"
        if comparison.continuous or comparison.windows == 1
        else f"x {counted(comparison.windows, 'window')}"
    )
    seeds = "seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds from"
    means = "means over windows; " if comparison.windows > 1 and not comparison.continuous else ""
    print(
        f"{comparison.workload}, {few}{counted(max(jobs), 'job')} {length}, "
        f"on {comparison.cluster} ({counted(cluster.total_gpus, 'GPU')})"
        f"{'' if comparison.load is None else f', at load {comparison.load:g}'}\n"
        f"knowledge {comparison.knowledge}, {seeds} {comparison.seed}; times in seconds, "
        f"{means}{BEST} best\n"
        f"{header_of(comparison.conditions, comparison.run_times)}"
    )
    print_table(values_table(comparison))
    if len(comparison.schedulers) > 1:
        parts = parts_of(comparison)
        interval = ", with 95 % intervals" if parts > 1 else ""
        over = f" over {parts} blocks of jobs" if comparison.continuous else ""
        print(f"\nagainst {comparison.baseline}{interval}{over}:\n")
        print_table(_differences(comparison))
        print()
        print_table(_further_differences(comparison))
    over = means.partition(";")[0] or "all jobs together"
    print(f"\n{over}, against {comparison.baseline}\n{STARVED}\n")
    print_table(whole_runs_table(comparison))
    print()
    # Without a horizon every job either finishes or is rejected, under any scheduler.
    counts = comparison.schedulers[0].jobs
    left = {result.scheduler: result.jobs.unfinished for result in comparison.schedulers}
    print_facts(
        {
            "measured": ""
            if comparison.measure is None
            else wrapped(comparison.measure.in_words()),
            "starves": wrapped(starving(comparison)),
            "runs": wrapped(comparison.mode),
            "replicates": wrapped(replicates_of(comparison)),
            "totals": wrapped(disagreements(comparison)),
            "intervals": wrapped(intervals_of(comparison)),
            "caution": wrapped(caution_of(comparison)),
            "correction": _correction(comparison),
            "power": wrapped(_power(comparison)),
            "bound": bound_in_words(comparison),
            "oracle": wrapped(_oracle(comparison)),
            "jobs": job_counts(counts)
            if not any(left.values())
            else wrapped(
                f"{number(counts.submitted)} submitted; at the horizon, with the time spent so "
                "far, unfinished: "
                + ", ".join(f"{number(count)} under {name}" for name, count in left.items())
            ),
            "rejected": "they can never fit; berthline sim says why" if counts.rejected else "",
        }
    )


def values_table(comparison: Comparison) -> Table:
    """Return the table of values, with the best of each column marked."""
    from rich.text import Text

    table = new_table(
        "scheduler",
        "JCT\nmean",
        "JCT\np99",
        "bounded\nslowdown",
        "wait\nmean",
        "GPU\nuse %",
        "make-\nspan h",
        "% over\nbound",
    )
    table.columns[0].no_wrap = True
    results = comparison.schedulers
    columns = []
    measured = [
        ([read(result.metrics) for result in results], write, choose)
        for read, write, choose in _COLUMNS
    ]
    flops = [100 * result.metrics.utilization.flops for result in results]
    plain = [100 * result.metrics.utilization.gpu for result in results]
    if any(abs(f - p) > 0.05 for f, p in zip(flops, plain, strict=True)):
        # The same as GPU use where all GPUs are of one speed.
        table.add_column("FLOPS\nuse, %", justify="right", no_wrap=True, vertical="bottom")
    else:
        flops = []
    gaps = [100 * (math.nan if r.gap_to_bound is None else r.gap_to_bound) for r in results]
    measured.append((gaps, lambda x: number(x, 0 if x >= 100 else 1), min))
    if flops:
        measured.append((flops, lambda x: number(x, 1), max))
    costs = [result.energy_cost for result in results if result.energy_cost is not None]
    if costs:
        table.add_column("energy\ncost", justify="right", no_wrap=True, vertical="bottom")
        measured.append((costs, cost_of, min))
    for values, write, choose in measured:
        best = choose(values)
        columns.append(
            [
                Text(BEST + write(value), "bold green") if value == best else Text(write(value))
                for value in values
            ]
        )
    for row, result in enumerate(results):
        table.add_row(fold_scheduler(result.scheduler, 20), *(column[row] for column in columns))
    return table


def _short_seconds(value: float) -> str:
    """Return seconds; from a million on, thousands of them: the table must fit 80 columns."""
    return f"{value / 1000:,.0f}k" if value >= 1_000_000 else seconds(value)


_Column = tuple[
    "Callable[[AverageMetrics], float]", "Callable[[float], str]", "Callable[[list[float]], float]"
]
_COLUMNS: tuple[_Column, ...] = (
    (lambda m: m.jct.mean, _short_seconds, min),
    (lambda m: m.jct.p99, _short_seconds, min),
    (lambda m: m.bounded_slowdown.mean, lambda x: number(x, 2 if x < 1000 else 0), min),
    (lambda m: m.wait.mean, _short_seconds, min),
    (lambda m: 100 * m.utilization.gpu, lambda x: number(x, 1), max),
    (lambda m: m.makespan / 3600, lambda x: number(x, 1 if x < 1000 else 0), min),
)


def _differences(comparison: Comparison) -> Table:
    """Return the table of differences from the baseline, in words."""
    table = new_table("scheduler")
    table.columns[0].no_wrap = True
    table.add_column("mean JCT")
    table.add_column("bounded slowdown")
    for result in comparison.schedulers:
        if result.scheduler != comparison.baseline:
            against = result.against_baseline
            table.add_row(
                fold_scheduler(result.scheduler),
                _words(against.jct_mean),
                _words(against.bounded_slowdown_mean),
            )
    return table


def _further_differences(comparison: Comparison) -> Table:
    """Return the table of the metrics that a gain must not worsen."""
    rivals = [each for each in comparison.schedulers if each.scheduler != comparison.baseline]
    columns = {
        "JCT p99": [each.against_baseline.jct_p99 for each in rivals],
        "makespan": [each.against_baseline.makespan for each in rivals],
        "GPU use": [each.against_baseline.utilization for each in rivals],
    }
    changes = {
        label: column_of_changes([(each.ratio, each.low, each.high) for each in column])
        for label, column in columns.items()
    }
    table = new_table("scheduler", *(f"{label}, {found.unit}" for label, found in changes.items()))
    table.columns[0].no_wrap = True
    for row, each in enumerate(rivals):
        table.add_row(
            fold_scheduler(each.scheduler, 22), *(found.texts[row] for found in changes.values())
        )
    return table


_UNCORRECTED = ", but not after correction for "


def _words(judgement: Judgement) -> Text:
    """Return a verdict, coloured; text common to all rows is printed once below the table."""
    from rich.text import Text

    text, uncorrected, _ = judgement.verdict.partition(_UNCORRECTED)
    text = text.removesuffix(f" (only {judgement.windows} windows)")
    if uncorrected:
        return Text(f"{text} ?")
    if judgement.windows == 1 and judgement.ratio is not None:
        change = 100 * (judgement.ratio - 1)
        text = f"{abs(change):.1f} % {'higher' if change > 0 else 'lower'}" if change else "equal"
        text = size_in_words(judgement.ratio) if is_factor(judgement.ratio) else text
    style = {"better": "green", "worse": "red"}.get(text.partition(" ")[0].strip(","), "")
    return Text(text, style)


def parts_of(comparison: Comparison) -> int:
    """Return the number of windows, or blocks, behind the differences."""
    return comparison.schedulers[0].against_baseline.jct_mean.windows


def _correction(comparison: Comparison) -> str:
    """Return what the question marks of the table mean; empty if there are none."""
    for result in comparison.schedulers:
        against = result.against_baseline
        for judgement in (against.jct_mean, against.bounded_slowdown_mean):
            _, uncorrected, number_of = judgement.verdict.partition(_UNCORRECTED)
            if uncorrected:
                return f"? = by itself only, not after correction for {number_of} (Holm)"
    return ""


def _power(comparison: Comparison) -> str:
    """Return how many windows would distinguish the nearest undistinguished scheduler."""
    from berthline.evaluate.statistics.power import power_in_words

    unknown = [
        (result.power.jct_mean, result.scheduler)
        for result in comparison.schedulers
        if result.against_baseline.jct_mean.verdict.startswith("not distinguishable")
        and result.power.jct_mean is not None
    ]
    if not unknown:
        return ""
    found, name = min(unknown, key=lambda each: each[0].needed or math.inf)
    return f"mean JCT of {name}: {power_in_words(found)}"


def bound_in_words(comparison: Comparison) -> str:
    """Return the lower bound of mean JCT, in words; empty if there are no jobs."""
    means = [bound.mean for bound in comparison.bounds if bound.jobs]
    if not means:
        return ""
    return f"no scheduler can have a mean JCT below {seconds(sum(means) / len(means))} s here"


def _oracle(comparison: Comparison) -> str:
    """Return the best fixed scheduler in hindsight; empty if there is no choice."""
    if comparison.continuous or comparison.windows == 1 or len(comparison.schedulers) == 1:
        return ""
    best = comparison.oracle.jct_mean
    return (
        f"best in hindsight by mean JCT: {best.overall} ({seconds(best.overall_mean)} s); the best "
        f"of each window: {seconds(best.per_window_mean)} s"
    )


def wrapped(text: str) -> str:
    """Return the text of a fact, wrapped and indented for `print_facts`."""
    return textwrap.fill(
        text,
        NARROWEST - 1,
        initial_indent=" " * 11,
        subsequent_indent=" " * 11,
        break_long_words=False,
        break_on_hyphens=False,
    ).lstrip()


def caution_of(comparison: Comparison) -> str:
    """Return a caution about a comparison; empty if it can be trusted."""
    from berthline.evaluate.statistics.paired import FEW_WINDOWS

    parts, what = parts_of(comparison), "blocks" if comparison.continuous else "windows"
    if all(result.metrics.wait.max == 0 for result in comparison.schedulers):
        return (
            "no job ever waited, so there is nothing to compare: raise --load or shrink --cluster"
        )
    if parts == 1:
        return (
            "one run without blocks has no interval: use more jobs, or --continuous, or --windows 8"
        )
    return (
        f"only {parts} {what}: intervals are rough; use --{what} 8 or more"
        if parts < FEW_WINDOWS
        else ""
    )


def show_overall(overall: Overall) -> None:
    """Print the combined result of several comparisons."""
    rivals = [each for each in overall.schedulers if each.scheduler != overall.baseline]
    columns = {
        "mean JCT": [_ends(each.ratio.jct_mean) for each in rivals],
        "bounded\nslowdown": [_value(each.ratio.bounded_slowdown_mean) for each in rivals],
        "JCT\np99": [_value(each.ratio.jct_p99) for each in rivals],
        "make-\nspan": [_value(each.ratio.makespan) for each in rivals],
        "GPU\nuse": [_value(each.ratio.utilization) for each in rivals],
    }
    changes = {label: column_of_changes(column) for label, column in columns.items()}
    print(
        f"all {overall.cells} together, {counted(overall.windows, 'window')}: changes against "
        f"{overall.baseline} in %, interquartile\nmeans; wins = windows with a better mean JCT, "
        "in %\n"
    )
    heads = [
        label if found.unit == PERCENT else f"{label},\n{found.unit}"
        for label, found in changes.items()
    ]
    table = new_table("scheduler", heads[0], "wins", *heads[1:])
    table.columns[0].no_wrap = True
    for row, each in enumerate(rivals):
        jct, slowdown, *rest = (found.texts[row] for found in changes.values())
        table.add_row(
            fold_scheduler(each.scheduler, 20),
            jct,
            number(100 * each.improvement.jct_mean.value),
            slowdown + (" !" if each.trades else ""),
            *rest,
        )
    print_table(table)
    if any(result.trades for result in overall.schedulers):
        print("\n! = trades JCT for slowdown in some of them")


def _ends(interval: Interval | None) -> WithEnds:
    return (None, None, None) if interval is None else (interval.value, interval.low, interval.high)


def _value(interval: Interval | None) -> WithEnds:
    return (None if interval is None else interval.value, None, None)
