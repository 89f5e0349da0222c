"""The output of `berthline train es`: progress, and the results of the tuned scheduler."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from berthline.cli.output import new_table, number, print_table, seconds
from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from berthline.learn.tuning.search import SearchProgress

SECONDS_BETWEEN_LINES = 5.0


def lines(name: str) -> Callable[[SearchProgress], None]:
    """Return a function that prints the progress of a search to stderr."""
    shown = {"at": -SECONDS_BETWEEN_LINES}

    def tell(progress: SearchProgress) -> None:
        if progress.seconds - shown["at"] < SECONDS_BETWEEN_LINES:
            return
        shown["at"] = progress.seconds
        print(
            f"{name}: {progress.seconds:.0f} s, {number(progress.evaluations)} candidates;"
            f" VAL {_change(progress.val_loss)}, {progress.rival} {_change(progress.rival_loss)}",
            file=sys.stderr,
        )

    return tell


def show(summary: dict[str, Any]) -> None:
    """Print the tuned scheduler and its results on REPORT."""
    report, val = summary["report"], summary["val"]
    print(
        f"{summary['search']} on {summary['space']}: {number(summary['evaluations'])} candidates in"
        f" {summary['seconds']:.0f} s, goal {summary['goal']['name']}\n"
    )
    print(f"  {summary['scheduler']}\n")
    print(
        f"VAL, {val['windows']} windows: loss {_change(val['loss'])}; at the start"
        f" {_change(val['start_loss'])}, of the rival {_change(val['rival_loss'])}"
    )
    print(f"REPORT, {report['windows']} held-out windows:\n")
    table = new_table("", "slowdown", "mean JCT, s", "p99 JCT, s", "slowdown of tuned is")
    own = report["policy"]
    table.add_row("tuned", *_figures(own["mean_bounded_slowdown"], own["mean_jct"], own["p99_jct"]))
    for role, found in report["against"].items():
        figures = _figures(
            *(found[m]["mean"] for m in ("mean_bounded_slowdown", "mean_jct", "p99_jct"))
        )
        table.add_row(role, *figures, found["mean_bounded_slowdown"]["verdict"])
    print_table(table)
    print()
    for role, found in report["against"].items():
        name = "" if role == "start" else f" ({found['scheduler']})"
        print(f"against the {role}{name}:\n  {report['joint'][role]}")
    print()


def show_side_by_side(summaries: list[dict[str, Any]]) -> None:
    """Print the results of searches with the same space and budget."""
    print("loss, as a change against the reference, with the rivals:\n")
    table = new_table("", "candidates", "VAL", "REPORT", "rival on REPORT", "lane on REPORT")
    for one in summaries:
        report = one["report"]
        lane = report["lane_loss"]
        table.add_row(
            one["search"],
            number(one["evaluations"]),
            _change(one["val"]["loss"]),
            _change(report["loss"]),
            _change(report["rival_loss"]),
            "-" if lane is None else _change(lane),
        )
    print_table(table)
    print()


def _figures(slowdown: float, jct: float, p99: float) -> tuple[str, str, str]:
    return f"{slowdown:.3f}", seconds(jct), seconds(p99)


def _change(loss: float) -> str:
    """Return a loss, which is a logarithm, as a change in percent."""
    return f"{signed_percent(math.expm1(loss), 1)} %"
