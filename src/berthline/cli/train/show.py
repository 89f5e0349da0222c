"""The output of `berthline train`: a live panel on a terminal, else lines; then the results."""

from __future__ import annotations

import contextlib
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from berthline.cli.output import (
    NARROWEST,
    counted,
    new_table,
    number,
    print_facts,
    print_table,
    seconds,
)
from berthline.cli.output import progress as progress_bar
from berthline.cli.visible_output import styled
from berthline.evaluate.statistics.paired import FEW_WINDOWS
from berthline.number_text import duration_in_two_units

if TYPE_CHECKING:
    from rich.table import Table

    from berthline.learn.training.trainer import Progress

SECONDS_BETWEEN_LINES = 10.0
_MOST_LOSSES = 8
_LOSSES_WIDTH = 70
"""Columns left beside the label, on a terminal of 80 columns."""
_BEGINS = "running the heuristics on the VAL episodes"
"""Shown before the first progress, which may take many seconds."""


@contextlib.contextmanager
def watching(name: str) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows the progress of a run on stderr."""
    if not sys.stderr.isatty():
        yield _lines(name)
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    first, console = Text(f"{name}: {_BEGINS}"), Console(file=styled(sys.stderr))
    with Live(first, console=console, auto_refresh=False, transient=True) as live:
        live.refresh()
        yield lambda progress: live.update(panel(name, progress), refresh=True)


@contextlib.contextmanager
def watching_all(name: str, count: int) -> Iterator[Callable[[str, Progress], None]]:
    """Yield a function that shows the progress of several runs on stderr."""
    told = _lines(f"{name}, {count} runs")
    steps: dict[str, Progress] = {}
    with progress_bar(f"{name}, {count} runs") as bar:

        def show(path: str, progress: Progress) -> None:
            steps[path] = progress
            total = count * progress.steps
            done = sum(one.step for one in steps.values())
            bar(done, total, f"{len(steps)} begun")
            if not sys.stderr.isatty() and len(steps) == 1:
                told(progress)

        yield show


def panel(name: str, progress: Progress) -> Table:
    """Return what the live panel shows."""
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for label, text in facts(progress).items():
        table.add_row(label, text)
    losses = [
        # A name and its value stay on one line: the space between them does not break.
        f"{key.partition('/')[2]}\N{NO-BREAK SPACE}{value:.4g}"
        for key, value in progress.log.items()
        if key.startswith("losses/")
    ]
    if losses:
        lines = textwrap.wrap(", ".join(losses[:_MOST_LOSSES]), _LOSSES_WIDTH)
        table.add_row("losses", "\n".join(lines).replace("\N{NO-BREAK SPACE}", " "))
    table.title, table.title_justify = name, "left"
    return table


def facts(progress: Progress) -> dict[str, str]:
    """Return the progress of a run, in words."""
    left = max(progress.steps - progress.step, 0) / max(progress.steps_per_second, 1e-9)
    share = progress.step / progress.steps
    return {
        "steps": f"{number(progress.step)} of {number(progress.steps)} ({share:.0%})",
        "speed": f"{number(progress.steps_per_second)} steps/s, {duration_in_two_units(left)} left",
        "return": f"{_value(progress.val)} on VAL, best {_value(progress.best)}",
        "score": progress.against,
    }


def _lines(name: str) -> Callable[[Progress], None]:
    last: Progress | None = None

    def show(progress: Progress) -> None:
        nonlocal last
        is_worth_a_line = (
            last is None
            or progress.val != last.val
            or progress.step >= progress.steps
            or progress.seconds - last.seconds >= SECONDS_BETWEEN_LINES
        )
        if not is_worth_a_line:
            return
        last = progress
        print(f"{name}: " + "; ".join(filter(None, facts(progress).values())), file=sys.stderr)

    return show


def _value(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def show_summary(summary: dict[str, Any]) -> None:
    """Print the results of a run on REPORT."""
    from berthline.evaluate.metrics.compared_metrics import METRICS
    from berthline.learn.training.episode_metrics import EPISODE_METRICS, NAME_IN_EPISODES

    report, about = summary["report"], METRICS[summary["metric"]]
    print(
        f"{summary['algorithm']} on {summary['seat']}, seed {summary['seed']}, "
        f"{number(summary['steps'])} steps, {counted(summary['updates'], 'update')}\n"
        f"the best policy on VAL is {summary['best_checkpoint']}"
    )
    print(f"REPORT, {report['episodes']} held-out episodes:\n")
    key = NAME_IN_EPISODES[summary["metric"]]
    columns = list(dict.fromkeys((key, "mean_jct", "mean_wait")))
    heads = [_head(METRICS[EPISODE_METRICS[name]].label, name) for name in columns]
    has_verdicts = summary["has_verdict"]
    words = [f"{about.label} of the policy is"] if has_verdicts else []
    table = new_table("", *heads, "return", *words)
    policy, means = report["policy"], report["return"]
    cells = [_cell(name, policy[name]) for name in columns]
    table.add_row(summary.get("policy", summary["algorithm"]), *cells, _value(means["policy"]))
    sign = -1 if about.higher_is_better else 1
    for name, found in sorted(report["against"].items(), key=lambda x: sign * x[1][key]["mean"]):
        mark = " (best on VAL)" if has_verdicts and name == summary["best_heuristic"] else ""
        cells = [_cell(column, found[column]["mean"]) for column in columns]
        cells.append(_value(means.get(name)))
        verdict = re.sub(r" \(only \d+ windows\)$", "", found[key]["verdict"])
        table.add_row(name + mark, *cells, *([verdict] if has_verdicts else []))
    print_table(table)
    print()
    facts = {
        "return": f"{_value(means['policy'])} on REPORT, {_value(summary['val_return'])} on VAL",
        "caution": _cautions(summary["remarks"], report["episodes"]),
    }
    print_facts(facts)


def _head(label: str, name: str) -> str:
    if name == "utilization":
        return f"{label}, %"
    return label if name == "mean_bounded_slowdown" else f"{label}, s"


def _cell(name: str, value: float) -> str:
    if name == "utilization":
        return number(100 * value, 1)
    return number(value, 2) if name == "mean_bounded_slowdown" else seconds(value)


def _cautions(remarks: list[str], episodes: int | None = None) -> str:
    """Return the remarks of a summary, one below the other."""
    told = list(remarks)
    if episodes is not None and episodes < FEW_WINDOWS:
        told.append(f"only {episodes} episodes: intervals are rough")
    wide = [
        textwrap.fill(text, NARROWEST - 1, initial_indent=" " * 11, subsequent_indent=" " * 11)
        for text in told
    ]
    return "\n".join(wide).lstrip()


def show_seeds(summary: dict[str, Any]) -> None:
    """Print the combined results of several seeds."""
    from berthline.evaluate.metrics.compared_metrics import METRICS

    seeds, label = summary["seeds"], METRICS[summary["metric"]].label
    print(
        f"{summary['algorithm']} on {summary['seat']}, {len(seeds)} seeds: {seeds[0]} to", end=" "
    )
    print(f"{seeds[-1]}; {label} against others, interquartile mean over seeds and episodes:\n")
    table = new_table("", "ratio", "95 % interval", "worst seed")
    for name, found in summary["metric_against"].items():
        if found["iqm"] is None:
            table.add_row(name, "-", "no ratio: a value is 0", "-")
            continue
        low, high = found["low"], found["high"]
        between = "-" if low is None else f"{low:.3f} to {high:.3f}"
        table.add_row(name, f"{found['iqm']:.3f}", between, f"{found['worst_seed']:.3f}")
    print_table(table)
    if summary["remarks"]:
        print()
        print_facts({"caution": _cautions(summary["remarks"])})


def show_settings(algorithm: str) -> None:
    """Print every setting of an algorithm: default, values, meaning."""
    from berthline.learn.algorithms.algorithm_table import ALGORITHMS
    from berthline.learn.algorithms.settings import setting_rows, value_text
    from berthline.learn.training.defaults import settings_by_seat

    print(f"\nsettings of {algorithm}, each with its default: --config NAME=VALUE\n")
    for row in setting_rows(algorithm, ALGORITHMS[algorithm].config):
        print(f"  {row.name}={row.default}")
        text = f"{row.meaning} ({row.values})"
        print(textwrap.fill(text, 90, initial_indent=" " * 6, subsequent_indent=" " * 6))
    for seat, settings in settings_by_seat(algorithm).items():
        given = ", ".join(f"{name}={value_text(value)}" for name, value in settings.items())
        text = f"defaults on {seat.capitalize()}: {given}"
        print("\n" + textwrap.fill(text, 90, initial_indent="  ", subsequent_indent="      "))


def show_check(found: dict[str, Any]) -> None:
    """Print whether an algorithm has found the optimum."""
    verb = "reached" if found["reached"] else "did NOT reach"
    print(
        f"{found['algorithm']} {verb} the optimum of {found['jobs']} jobs: total JCT "
        f"{number(found['total_jct'], 1)} s, optimum {number(found['optimum'], 1)} s "
        f"(fcfs+easy {number(found['fcfs+easy'], 1)} s, "
        f"sjf+easy {number(found['sjf+easy'], 1)} s); "
        f"{number(found['steps'])} steps, {found['seconds']:.1f} s"
    )
