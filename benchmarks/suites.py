"""What the shipped suites found; `make results RESULTS=suites` runs them and writes the page.

`RESULTS_ARGS="--suites core,online"` runs some of them, and keeps the others as they are in the CSV
file; `--from-csv` runs nothing.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.result_files import RESULTS, fill_page, read_rows, write_rows

from berthline.errors import BerthlineError
from berthline.experiments.suites.run_suite import run_suite
from berthline.experiments.suites.suite_plan import SuitePlan, find_suite
from berthline.report.figures.drawing import save_figure
from berthline.report.figures.layout import settle
from berthline.report.figures.lineup import line_up
from berthline.report.run_results import NotShown
from berthline.report.suites.against_twin import against_twins, recovery_words
from berthline.report.suites.parts_figure import effects
from berthline.report.suites.robustness_figures import draw_twins
from berthline.report.suites.shown_suite import ShownSuite, shown_suite
from berthline.report.suites.suite_sentences import suite_sentences
from berthline.runs.open_run import open_run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.result_files import Row

PAGE = "suites"
STEPS: dict[str, int | None] = {
    "core": None,
    "robustness": None,
    "online": None,
    "ablation": 12_000,
    "ablation-gate": 200_000,
}
"""The suites of the page, and the steps of each training: fewer than theirs, so that the page takes
minutes instead of hours."""

KEYS = ("suite", "table", "scheduler", "item", "ratio", "low", "high", "more", "count", "words")
UNTAUGHT = "at random from the menu"
"""In the suite `online`: what bandits must beat to have learned anything."""

DIPS = ("capacity-dip:50%/1h", "capacity-dip:30%/6h", "capacity-dip:50%/6h")


def main(argv: Sequence[str] | None = None) -> int:
    """Run suites, and write the CSV file, the figure and the page."""
    parser = argparse.ArgumentParser(prog="suites", description=__doc__)
    parser.add_argument("--suites", default=",".join(STEPS), help="which of them to run")
    parser.add_argument("--from-csv", action="store_true", help="write the page; run nothing")
    options = parser.parse_args(argv)
    table = RESULTS / f"{PAGE}.csv"
    names = [] if options.from_csv else options.suites.split(",")
    try:
        rows = read_rows(table) if table.is_file() else []
        for name in names:
            rows = [row for row in rows if row["suite"] != name] + list(measure(name))
            write_rows(table, sorted(rows, key=lambda row: list(STEPS).index(row["suite"])))
        rows = read_rows(table)
        fill_page(PAGE, parts(rows))
        draw(rows, RESULTS / f"{PAGE}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, .png and .md")
    return 0


def plan_of(name: str) -> SuitePlan:
    """Return a suite with the steps of this page."""
    import msgspec

    plan, steps = find_suite(name), STEPS[name]
    if steps is None:
        return plan
    return msgspec.structs.replace(plan, train={**plan.train, "steps": steps})


def measure(name: str) -> Iterator[Row]:
    """Run a suite, and yield what the page says about it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        run_suite(plan_of(name), out=path)
        yield from rows_of(name, shown_suite(open_run(path)))


def rows_of(name: str, suite: ShownSuite) -> Iterator[Row]:
    """Yield the rows of a suite."""
    for sentence in suite_sentences(suite):
        yield row(name, "verdict", words=sentence)
    for scheduler in suite.ranked:
        found, worst = suite.overall[scheduler], suite.worst(scheduler)
        yield row(
            name,
            "overall",
            scheduler,
            "" if worst is None else worst.cell,
            ends_of(found),
            more=None if worst is None else worst.ratio,
            count=suite.best_in(scheduler),
        )
    try:
        twins = against_twins(suite)
    except NotShown:
        twins = []
    for one in twins:
        yield row(
            name,
            "twin",
            one.scheduler,
            one.perturbation,
            ends_of(one.ratio),
            more=one.recovery,
            count=round(one.exploded * one.runs),
            words=str(one.runs),
        )
    for scheduler in suite.ranked if UNTAUGHT in suite.ranked else []:
        if scheduler not in (*suite.rules, UNTAUGHT):
            ratio = ends_of(suite.compared(scheduler, UNTAUGHT, suite.column))
            yield row(name, "taught", scheduler, UNTAUGHT, ratio)
    try:
        found_parts = effects(suite)
    except NotShown:
        found_parts = []
    for part in found_parts:
        ratio = ends_of(part.ratio)
        yield row(
            name, "part", part.group, part.part, ratio, more=part.p_value,
            count=part.ratio.windows, words=part.verdict,
        )  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Ends:
    """A ratio with its interval."""

    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def ends_of(ratio: Any) -> Ends:
    """Return a ratio of the statistics as its three numbers."""
    return Ends(ratio.ratio, ratio.low, ratio.high)


def row(
    suite: str,
    table: str,
    scheduler: str = "",
    item: str = "",
    ends: Ends | None = None,
    *,
    more: float | None = None,
    count: int | None = None,
    words: str = "",
) -> Row:
    """Return a row of the CSV file."""
    ends = ends or Ends()
    numbers = {"ratio": ends.ratio, "low": ends.low, "high": ends.high, "more": more}
    return {
        "suite": suite,
        "table": table,
        "scheduler": scheduler,
        "item": item,
        **{key: "" if value is None else f"{value:.6g}" for key, value in numbers.items()},
        "count": "" if count is None else str(count),
        "words": words,
    }


def of(rows: Sequence[Row], suite: str, table: str) -> list[Row]:
    """Return the rows of a table of a suite."""
    return [one for one in rows if (one["suite"], one["table"]) == (suite, table)]


def parts(rows: Sequence[Row]) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    found = {}
    for name in STEPS:
        if not (sentences := of(rows, name, "verdict")):
            continue
        found[f"{name} verdict"] = [f"- {marked(one['words'])}" for one in sentences]
        found[f"{name} schedulers"] = schedulers(of(rows, name, "overall"))
        if twins := of(rows, name, "twin"):
            found[f"{name} twins"] = matrix(twins, ratio_words)
            found[f"{name} explosions"] = explosions(twins)
            found[f"{name} recovery"] = matrix(
                [one for one in twins if one["item"] in DIPS], recovery_of
            )
        if taught := of(rows, name, "taught"):
            found[f"{name} taught"] = [f"- `{one['scheduler']}`: {interval(one)}" for one in taught]
        if effects_of := of(rows, name, "part"):
            found[f"{name} parts"] = part_lines(effects_of)
    return found


def marked(sentence: str) -> str:
    """Return a sentence in which no star or bar means anything."""
    return sentence.replace("|", "\\|").replace("*", "\\*")


def interval(one: Row) -> str:
    """Return a ratio and its interval."""
    if not one["ratio"]:
        return "-"
    text = f"{float(one['ratio']):.3f}"
    if one["low"]:
        text += f" [{float(one['low']):.3f}, {float(one['high']):.3f}]"
    return text


def schedulers(rows: Sequence[Row]) -> list[str]:
    """Return the table of schedulers over all clean cells."""
    lines = [
        "| scheduler | mean JCT to the best rule | at worst | no rule better in |",
        "| --- | ---: | ---: | ---: |",
    ]
    for one in rows:
        worst = f"{float(one['more']):.3f}" if one["more"] else "-"
        lines.append(f"| `{one['scheduler']}` | {interval(one)} | {worst} | {one['count']} |")
    return lines


def ratio_words(one: Row) -> str:
    """Return a ratio; in italics if it is not distinguishable from 1."""
    if not one["ratio"]:
        return "-"
    text = f"{float(one['ratio']):.2f}"
    is_open = not one["low"] or float(one["low"]) <= 1 <= float(one["high"])
    return f"*{text}*" if is_open else text


def recovery_of(one: Row) -> str:
    """Return a recovery time."""
    return recovery_words(float(one["more"]) if one["more"] else None)


def matrix(rows: Sequence[Row], words: Any) -> list[str]:
    """Return a table of perturbations and schedulers."""
    names = list(dict.fromkeys(one["scheduler"] for one in rows))
    items = list(dict.fromkeys(one["item"] for one in rows))
    lines = [
        f"| perturbation | {' | '.join(f'`{name}`' for name in names)} |",
        f"| --- |{' ---: |' * len(names)}",
    ]
    found = {(one["item"], one["scheduler"]): one for one in rows}
    for item in items:
        cells = [words(found[item, name]) if (item, name) in found else "" for name in names]
        lines.append(f"| `{item}` | {' | '.join(cells)} |")
    return lines


def explosions(rows: Sequence[Row]) -> list[str]:
    """Return the table of shares of runs whose queue exploded, where any did."""
    some = {one["item"] for one in rows if int(one["count"])}
    return matrix(
        [one for one in rows if one["item"] in some],
        lambda one: f"{100 * int(one['count']) / int(one['words']):.0f} %",
    )


def part_lines(rows: Sequence[Row]) -> list[str]:
    """Return the table of parts."""
    lines = [
        "| of | part | mean JCT to the whole | p, corrected | seeds | in words |",
        "| --- | --- | ---: | ---: | ---: | --- |",
    ]
    for one in rows:
        p = "-" if not one["more"] else f"{max(float(one['more']), 0.001):.3f}"
        p = f"<{p}" if one["more"] and float(one["more"]) < 0.001 else p
        lines.append(
            f"| {one['scheduler']} | {one['item']} | {interval(one)} | {p} | {one['count']} "
            f"| {one['words']} |"
        )
    return lines


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw what perturbations cost."""
    import polars as pl

    twins = of(rows, "robustness", "twin")
    names = [one["scheduler"] for one in of(rows, "robustness", "overall")]
    frame = pl.DataFrame(
        [
            {
                "scheduler": one["scheduler"],
                "perturbation": one["item"],
                "ratio": float(one["ratio"]),
                "is_open": ratio_words(one).startswith("*"),
                "higher": False,
            }
            for one in twins
        ]
    )
    figure = draw_twins(frame, line_up(names, names[0], names))
    settle(figure)
    save_figure(figure, path)


if __name__ == "__main__":
    sys.exit(main())
