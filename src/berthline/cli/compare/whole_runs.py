"""What `berthline compare` and `eval` print about whole runs: totals, starvation, intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.cli.output import fold_scheduler, new_table, number
from berthline.evaluate.metrics.starvation import starves_words, wait_words
from berthline.evaluate.statistics.change_in_words import signed_change
from berthline.evaluate.statistics.totals import intervals_words

if TYPE_CHECKING:
    from rich.table import Table

    from berthline.evaluate.compare.comparison import Comparison, Judgement

STARVED = (
    "starved: waited more than 10 x run time and a day; left behind: also two weeks,\n"
    "and 10 x as long as jobs submitted meanwhile"
)


def whole_runs_table(comparison: Comparison) -> Table:
    """Return the table of totals, longest waits and starved jobs."""
    from rich.text import Text

    table = new_table(
        "scheduler",
        "mean\nJCT, %",
        "p99\nJCT, %",
        "bounded\nslowdown, %",
        "longest\nwait",
        "starved\njobs",
        "left\nbehind",
    )
    table.columns[0].no_wrap = True
    for result in comparison.schedulers:
        against, found = result.against_baseline, result.starvation
        is_baseline = result.scheduler == comparison.baseline
        totals = (
            "" if is_baseline else _total(each)
            for each in (against.jct_mean, against.jct_p99, against.bounded_slowdown_mean)
        )
        waits = ("-", "-", "-")
        if found is not None:
            waits = (wait_words(found.wait), number(found.starved), number(found.left_behind))
        style = "red" if found is not None and found.starves else ""
        table.add_row(
            fold_scheduler(result.scheduler, 20), *totals, *(Text(text, style) for text in waits)
        )
    return table


def _total(judged: Judgement) -> str:
    if judged.total is None:
        return "-"
    mark = " !" if judged.disagrees else ""
    return signed_change(judged.total) + mark


def starving(comparison: Comparison) -> str:
    """Return which schedulers starve, in words; empty if none does."""
    return starves_words({each.scheduler: each.starvation for each in comparison.schedulers})


def disagreements(comparison: Comparison) -> str:
    """Return what the marks in the table of totals mean; empty if there are none."""
    judged = [
        each
        for result in comparison.schedulers
        for each in (
            result.against_baseline.jct_mean,
            result.against_baseline.jct_p99,
            result.against_baseline.bounded_slowdown_mean,
        )
    ]
    if not any(each.disagrees for each in judged):
        return ""
    what = "blocks" if comparison.continuous else "windows"
    return (
        f"! = over {what} the change has the other sign: most {what} and most of the time spent "
        "say different things, so there is no simple answer"
    )


def replicates_of(comparison: Comparison) -> str:
    """Return what the jittered replicates show about mean JCT; empty without any."""
    from berthline.evaluate.compare.jitter import jitter_words

    if not comparison.jitter:
        return ""
    spans = ", ".join(
        f"{result.scheduler} {signed_change(judged.total)} "
        f"[{signed_change(judged.total_low)}, {signed_change(judged.total_high)}]"
        for result in comparison.schedulers
        if result.scheduler != comparison.baseline
        and (judged := result.against_baseline.jct_mean).total is not None
        and judged.total_low is not None
        and judged.total_high is not None
    )
    return f"{jitter_words(comparison.jitter)}. Mean JCT of all jobs over them, %: {spans}"


def intervals_of(comparison: Comparison) -> str:
    """Return what the intervals are about; empty if there are none."""
    if comparison.schedulers[0].against_baseline.jct_mean.windows == 1:
        return ""
    return intervals_words(is_log=comparison.is_log, continuous=comparison.continuous)
