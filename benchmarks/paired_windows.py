"""Schedulers on the same windows, as a page of docs/results: CSV, tables, losses and a figure.

An experiment has settings; in each, all schedulers run the same windows and are compared with one
of them. The CSV file beside the page has one row for each run, and everything on the page is
computed from it: `--from-csv` redraws without running anything.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result_files import RESULTS, Row, fill_page, read_rows, write_rows

import berthline as bl
from berthline.errors import BerthlineError
from berthline.evaluate.statistics.paired import Ratio, paired_ratio

if TYPE_CHECKING:
    from berthline.evaluate.metrics.measure import Metrics

MEASURES: dict[str, tuple[str, Callable[[Metrics], float]]] = {
    "jct_mean": ("mean JCT", lambda m: m.jct.mean),
    "jct_p99": ("p99 JCT", lambda m: m.jct.p99),
    "jct_max": ("longest JCT", lambda m: m.jct.max),
    "bounded_slowdown": ("mean bounded slowdown", lambda m: m.bounded_slowdown.mean),
    "wait_mean": ("mean wait", lambda m: m.wait.mean),
    "energy_per_job_kwh": ("energy per job", lambda m: m.energy_per_job_kwh),
    "preemptions": ("preemptions", lambda m: float(m.preemptions)),
    "lost_gpu_hours": ("lost GPU-hours", lambda m: m.lost_gpu_hours),
    "fallbacks": ("fallbacks", lambda m: float(m.fallbacks)),
}
"""Column of the CSV file: its name on the page, and its value in a run. Lower is better."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """Schedulers (by their names on the page) on the same windows; the first is the baseline."""

    name: str
    cluster: bl.Cluster
    windows: Sequence[bl.Workload]
    schedulers: Mapping[str, str]
    knowledge: str = "exact"
    conditions: Mapping[str, float] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A page of docs/results.

    Attributes:
        page: its name without `.md`; the CSV file and the figure have the same name.
        settings: makes the settings, given the trace on the command line, if any.
        measures: the compared measures; the first ones are in the figure.
        shown: how many of them are in the figure.
        values: measures that the tables also give as values, with a unit and a divisor.
        more: further computed parts of the page, by name.
    """

    page: str
    settings: Callable[[Path | None], Iterable[Setting]]
    measures: Sequence[str]
    shown: int
    values: Mapping[str, tuple[str, float]]
    more: Callable[[Sequence[Row]], dict[str, list[str]]] = lambda _: {}

    @property
    def csv(self) -> Path:
        return RESULTS / f"{self.page}.csv"


def measure(experiment: Experiment, trace: Path | None) -> Iterator[Row]:
    """Run everything; yield a row for each run."""
    for setting in experiment.settings(trace):
        for number, window in enumerate(setting.windows):
            for name, text in setting.schedulers.items():
                found = bl.simulate(
                    window,
                    setting.cluster,
                    text,
                    knowledge=setting.knowledge,
                    conditions=setting.conditions,
                ).metrics()
                values = {key: f"{read(found):.10g}" for key, (_, read) in MEASURES.items()}
                yield {
                    "setting": setting.name,
                    "scheduler": name,
                    "text": text,
                    "window": str(number),
                    "jobs": str(found.jobs.submitted),
                    **values,
                }


def column(rows: Sequence[Row], setting: str, scheduler: str, key: str) -> list[float]:
    """Return the values of one scheduler in one setting, window by window."""
    chosen = [row for row in rows if (row["setting"], row["scheduler"]) == (setting, scheduler)]
    return [float(row[key]) for row in sorted(chosen, key=lambda row: int(row["window"]))]


def names(rows: Sequence[Row], key: str, **where: str) -> list[str]:
    """Return the distinct entries of a column, in order."""
    chosen = (row for row in rows if all(row[k] == v for k, v in where.items()))
    return list(dict.fromkeys(row[key] for row in chosen))


def ratio(rows: Sequence[Row], setting: str, scheduler: str, key: str) -> Ratio:
    """Return a scheduler's paired ratio to the baseline of its setting."""
    baseline = names(rows, "scheduler", setting=setting)[0]
    return paired_ratio(
        column(rows, setting, scheduler, key), column(rows, setting, baseline, key), seed=0
    )


def versus_heads(*first: str, keys: Sequence[str]) -> list[str]:
    """Return the head of a table with these columns, followed by those of `versus`."""
    heads = [*first, *(f"{MEASURES[key][0]} [95 %]" for key in keys)]
    return [
        f"| {' | '.join(heads)} |",
        "|" + " --- |" * len(first) + " ---: |" * len(keys),
    ]


def versus(
    rows: Sequence[Row], setting: str, scheduler: str, other: str, keys: Iterable[str]
) -> str:
    """Return the cells of a table: paired ratios of a scheduler to another one."""
    cells = []
    for key in keys:
        theirs = column(rows, setting, other, key)
        found = paired_ratio(column(rows, setting, scheduler, key), theirs, seed=0)
        cells.append(in_words(found) if any(theirs) else "there are none")
    return " | ".join(cells)


def in_words(found: Ratio) -> str:
    """Return a ratio as a change in percent with its interval."""
    if found.ratio is None:
        return "-"
    if found.ratio > 2:
        return f"x {found.ratio:.1f} [{found.low:.1f}, {found.high:.1f}]"
    ends = ", ".join(f"{100 * (end - 1):+z.1f}" for end in (found.low, found.high) if end)
    return f"{100 * (found.ratio - 1):+z.1f} % [{ends}]"


def beyond_chance(rows: Sequence[Row], experiment: Experiment, *, better: bool) -> list[str]:
    """List where a scheduler is better or worse than the baseline beyond chance."""
    lines = []
    for setting in names(rows, "setting"):
        baseline, *others = names(rows, "scheduler", setting=setting)
        for other in others:
            found = {key: ratio(rows, setting, other, key) for key in experiment.measures}
            told = [
                f"{MEASURES[key][0]} {in_words(each)}"
                for key, each in found.items()
                if each.low is not None
                and each.high is not None
                and (each.high < 1 if better else each.low > 1)
            ]
            if told:
                lines.append(f"- {setting}: `{other}` against `{baseline}`: {'; '.join(told)}.")
    return lines or ["None that excludes chance."]


def table(rows: Sequence[Row], experiment: Experiment, setting: str) -> list[str]:
    """Return a setting as a Markdown table: values, then changes to the baseline."""
    heads = [f"{MEASURES[key][0]}, {unit}" for key, (unit, _) in experiment.values.items()]
    heads += [f"{MEASURES[key][0]} [95 %]" for key in experiment.measures]
    lines = [
        "| | " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * len(heads),
    ]
    for position, scheduler in enumerate(names(rows, "scheduler", setting=setting)):
        cells = []
        for key, (_, divisor) in experiment.values.items():
            values = column(rows, setting, scheduler, key)
            cells.append(f"{sum(values) / len(values) / divisor:,.2f}")
        for key in experiment.measures:
            found = ratio(rows, setting, scheduler, key)
            cells.append("baseline" if position == 0 else in_words(found))
        lines.append(f"| {scheduler} | " + " | ".join(cells) + " |")
    return lines


def parts(rows: Sequence[Row], experiment: Experiment) -> dict[str, list[str]]:
    """Return the computed parts of the page, by name."""
    found = {
        "losses": beyond_chance(rows, experiment, better=False),
        "gains": beyond_chance(rows, experiment, better=True),
    }
    lines: list[str] = []
    for setting in names(rows, "setting"):
        windows = len(names(rows, "window", setting=setting))
        jobs = names(rows, "jobs", setting=setting)[0]
        lines += [f"**{setting}** ({windows} windows of {int(jobs):,} jobs)", ""]
        lines += [*table(rows, experiment, setting), ""]
    found["schedulers"] = ["| name | scheduler |", "| --- | --- |"]
    for name in names(rows, "scheduler"):
        texts = names(rows, "text", scheduler=name)
        for text in texts:
            # A tuned scheduler differs between settings.
            where = "; ".join(names(rows, "setting", scheduler=name, text=text))
            told = f"{name} ({where})" if len(texts) > 1 else name
            found["schedulers"].append(f"| {told} | `{text}` |")
    found["tables"] = lines[:-1]
    return found | experiment.more(rows)


def main(experiment: Experiment, doc: str, argv: Sequence[str] | None = None) -> int:
    """Run an experiment and write its CSV file, page and figure."""
    parser = argparse.ArgumentParser(prog=experiment.page.replace("-", "_"), description=doc)
    parser.add_argument("trace", type=Path, nargs="?", help="another copy of the trace")
    parser.add_argument("--from-csv", action="store_true", help="redraw; run nothing")
    options = parser.parse_args(argv)
    try:
        if not options.from_csv:
            write_rows(experiment.csv, measure(experiment, options.trace))
        rows = read_rows(experiment.csv)
        fill_page(experiment.page, parts(rows, experiment))
        from benchmarks.paired_windows_figure import draw

        draw(rows, experiment, RESULTS / f"{experiment.page}.png")
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {experiment.page}.csv, .md and .png")
    return 0
