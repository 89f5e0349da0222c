"""What `berthline compare` prints for people: values, differences to the baseline, cautions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from berthline.cli.conditions import header_of
from berthline.cli.energy_rate import cost_of
from berthline.cli.output import (
    BEST,
    counted,
    fold_scheduler,
    job_counts,
    new_table,
    number,
    print_facts,
    print_table,
    seconds,
)

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from berthline.evaluate.comparison import AverageMetrics, Comparison, Judgement
    from berthline.model.cluster import Cluster


def show(comparison: Comparison, cluster: Cluster) -> None:
    """Print a comparison for people: the values, then the differences to the baseline."""
    jobs = comparison.window_jobs
    few = "" if min(jobs) == max(jobs) else f"{min(jobs):,} to "
    seeds = "seed" if comparison.seeds == 1 else f"{comparison.seeds} seeds from"
    print(
        f"{comparison.workload}, {few}{counted(max(jobs), 'job')} x "
        f"{counted(comparison.windows, 'window')}, on {comparison.cluster} "
        f"({counted(cluster.total_gpus, 'GPU')})"
        f"{'' if comparison.load is None else f', at load {comparison.load:g}'}\n"
        f"knowledge {comparison.knowledge}, {seeds} {comparison.seed}; times in seconds, "
        f"means over windows; {BEST} best\n"
        f"{header_of(comparison.conditions)}"
    )
    print_table(_values(comparison))
    if len(comparison.schedulers) > 1:
        interval = ", with 95 % intervals" if comparison.windows > 1 else ""
        print(f"\nagainst {comparison.baseline}{interval}:\n")
        print_table(_differences(comparison))
    print()
    # Without a horizon every job either finishes or is rejected, whatever the scheduler.
    counts = comparison.schedulers[0].jobs
    print_facts(
        {
            "caution": _caution(comparison),
            "jobs": job_counts(counts),
            "rejected": "they can never fit; berthline sim says why" if counts.rejected else "",
        }
    )


def _values(comparison: Comparison) -> Table:
    """Return the table of values, with the best of each column marked."""
    from rich.text import Text

    table = new_table(
        "scheduler",
        "JCT\nmean",
        "JCT\np99",
        "bounded\nslowdown",
        "wait\nmean",
        "GPU\nuse, %",
        "makespan\nhours",
    )
    results = comparison.schedulers
    columns = []
    measured = [
        ([read(result.metrics) for result in results], write, choose)
        for read, write, choose in _COLUMNS
    ]
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
        table.add_row(fold_scheduler(result.scheduler), *(column[row] for column in columns))
    return table


_Column = tuple[
    "Callable[[AverageMetrics], float]", "Callable[[float], str]", "Callable[[list[float]], float]"
]
_COLUMNS: tuple[_Column, ...] = (
    (lambda m: m.jct.mean, seconds, min),
    (lambda m: m.jct.p99, seconds, min),
    (lambda m: m.bounded_slowdown.mean, lambda x: number(x, 2), min),
    (lambda m: m.wait.mean, seconds, min),
    (lambda m: 100 * m.utilization.gpu, lambda x: number(x, 1), max),
    (lambda m: m.makespan / 3600, lambda x: number(x, 1), min),
)


def _differences(comparison: Comparison) -> Table:
    """Return the table of differences to the baseline, in words."""
    table = new_table("scheduler")
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


def _words(judgement: Judgement) -> Text:
    """Return a verdict, coloured; what concerns all rows alike is said once below the table."""
    from rich.text import Text

    text = judgement.verdict.removesuffix(f" (only {judgement.windows} windows)")
    if judgement.windows == 1 and judgement.ratio is not None:
        change = 100 * (judgement.ratio - 1)
        text = f"{abs(change):.1f} % {'higher' if change > 0 else 'lower'}" if change else "equal"
    style = {"better": "green", "worse": "red"}.get(text.partition(" ")[0], "")
    return Text(text, style)


def _caution(comparison: Comparison) -> str:
    """Return how far the comparison can be trusted; empty when it can."""
    from berthline.evaluate.statistics import FEW_WINDOWS

    windows = comparison.windows
    if all(result.metrics.wait.max == 0 for result in comparison.schedulers):
        return (
            "no job ever waited, so there is nothing to compare: raise --load or shrink --cluster"
        )
    if windows == 1:
        return "one window has no interval: use --windows 8 or more to tell chance from gain"
    return (
        f"only {windows} windows: intervals are rough; use --windows 8 or more"
        if windows < FEW_WINDOWS
        else ""
    )
