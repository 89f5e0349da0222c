"""Twelve schedulers on the common workload, at four loads; `make results` runs it.

Everything on the page comes from one run directory of `berthline compare`, by the functions that
`berthline report` uses; the CSV file beside the page has one row for each run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.result_files import RESULTS, fill_page, write_rows

from berthline.cli.main import main as berthline
from berthline.errors import BerthlineError, SimulationError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.number_text import duration
from berthline.report.figures.figure_table import COMPARISON_FIGURES
from berthline.report.figures.oracle_gap import mean_bound
from berthline.report.page import losses
from berthline.report.page.verdict import in_words, sentences
from berthline.report.run_results import mean, results_of
from berthline.runs.open_run import open_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.report.run_results import RunResults

PAGE = "common-workload"
BASELINE = "fcfs+easy"
"""What most clusters run: everything looks good against strict FCFS."""
SCHEDULERS = (
    BASELINE,
    "fcfs",
    "fcfs+conservative",
    "random+skip",
    "largest-first+easy",
    "smallest-first+easy",
    "f1+easy",
    "wfp3+easy",
    "sjf+easy",
    "sjf+easy@best-fit",
    "smallest-area+easy",
    "smallest-area+easy@best-fit?express-lane",
)
CLUSTER, JOBS, WINDOWS = "uniform:16x8:V100", 5000, 20
LOADS = ("0.9", "0.6", "0.75", "1.05")
"""The tables are about the first one."""
ARGUMENTS = (
    "compare", "synthetic", "--schedulers", ",".join(SCHEDULERS), "--cluster", CLUSTER,
    "--loads", ",".join(LOADS), "--windows", str(WINDOWS), "--jobs", str(JOBS),
    "--set", "estimate_error=1",
)  # fmt: skip
FIGURES = ("ratios", "load", "sizes", "oracle")
COLUMNS = {
    "jct_mean": lambda line: line["jct"]["mean"],
    "jct_p99": lambda line: line["jct"]["p99"],
    "bounded_slowdown_mean": lambda line: line["bounded_slowdown"]["mean"],
    "wait_mean": lambda line: line["wait"]["mean"],
    "makespan": lambda line: line["makespan"],
    "utilization": lambda line: line["utilization"]["gpu"],
}


def rows_of(directory: Path) -> list[dict[str, str]]:
    """Return a row for each run."""
    found = []
    for text in (directory / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        row = {key: str(line[key]) for key in ("load", "scheduler", "window", "seed")}
        row |= {name: f"{read(line):.10g}" for name, read in COLUMNS.items()}
        found.append(row)
    return found


def table(run: RunResults) -> list[str]:
    """Return the values and verdicts of the first load."""
    bound = mean_bound(run) or float("nan")
    lines = [
        "| scheduler | mean JCT | p99 JCT | bounded slowdown | makespan | GPU use | above the "
        "bound | mean JCT against the baseline |",
        "| --- |" + " ---: |" * 6 + " --- |",
    ]
    for name in run.ranked("jct_mean"):
        of = {metric: mean(run.values(name, metric)) for metric in METRICS}
        words = "the baseline"
        if name != run.baseline:
            words = in_words(run, name, run.baseline, "jct_mean")
        lines.append(
            f"| `{name}` | {duration(of['jct_mean'])} | {duration(of['jct_p99'])} | "
            f"{of['bounded_slowdown_mean']:.2f} | {duration(of['makespan'])} | "
            f"{100 * of['utilization']:.1f} % | {100 * (of['jct_mean'] / bound - 1):.0f} % | "
            f"{words} |"
        )
    return lines


def lost(run: RunResults) -> list[str]:
    """Return the job sizes and metrics in which schedulers lose against the baseline."""
    lines = []
    found = losses.data(run).to_dicts()
    for name in run.schedulers:
        rows = [
            row
            for row in found
            if (row["scheduler"], row["against"]) == (name, run.baseline)
            and row["kind"] in ("metric", "size")
        ]
        told = []
        for row in rows:
            ratio, low, high = (f"{100 * (end - 1):+z.1f}" for end in losses.as_seen(row))
            told.append(f"{row['where']} {ratio} % [{low}, {high}]")
        if told:
            lines.append(f"- `{name}`: {'; '.join(told)}.")
    return lines


def loads(run: RunResults) -> list[str]:
    """Return the best scheduler at each load."""
    lines = ["| load | lowest mean JCT | its mean JCT | that of the baseline | bound |"]
    lines.append("| ---: | --- | ---: | ---: | ---: |")
    for cell in sorted(run.cells, key=lambda cell: cell["load"]):
        means = {name: mean(run.values(name, "jct_mean", cell)) for name in run.schedulers}
        best = min(means, key=lambda name: means[name])
        bound = mean([each["mean"] for each in cell["bounds"]])
        lines.append(
            f"| {cell['load']:g} | `{best}` | {duration(means[best])} | "
            f"{duration(means[run.baseline])} | {duration(bound)} |"
        )
    return lines


def write_page(directory: Path) -> None:
    """Write the CSV file, the figures and the computed parts of the page."""
    from berthline.report.figures.drawing import save_figure

    run = results_of(open_run(directory))
    write_rows(RESULTS / f"{PAGE}.csv", rows_of(directory))
    for name in FIGURES:
        kind = COMPARISON_FIGURES[name]
        save_figure(kind.draw(kind.data(run), run.lineup), RESULTS / f"{PAGE}-{name}.png")
    computed = {
        "verdict": [f"- {text}" for text in sentences(run)],
        "table": table(run),
        "losses": lost(run),
        "loads": loads(run),
    }
    fill_page(PAGE, computed)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the comparison and write its page."""
    parser = argparse.ArgumentParser(prog="common_workload", description=__doc__)
    parser.add_argument("directory", type=Path, nargs="?", help="redraw from this run directory")
    options = parser.parse_args(argv)
    try:
        with tempfile.TemporaryDirectory() as folder:
            directory = options.directory or Path(folder) / "run"
            if options.directory is None and berthline([*ARGUMENTS, "--out", str(directory)]):
                raise SimulationError("the comparison failed")
            write_page(directory)
    except BerthlineError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    print(f"written: {PAGE}.csv, .md and {len(FIGURES)} figures")
    return 0


if __name__ == "__main__":
    sys.exit(main())
