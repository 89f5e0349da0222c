"""`berthline demo`: the main task in one command, on a bundled workload."""

from __future__ import annotations

import functools
import shlex
import textwrap
import time
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import arg

from berthline.cli.compare.command import Compare
from berthline.cli.compare.show import show
from berthline.cli.demo import tune as demo_tune
from berthline.cli.options import Json, Seed, parse_options, read_settings
from berthline.cli.output import print_facts, print_json, progress
from berthline.runs.growing_files import write_json
from berthline.runs.run_directory import RunDirectory
from berthline.runs.run_layout import TUNING

if TYPE_CHECKING:
    from berthline.evaluate.compare.comparison import Comparison
    from berthline.model.workload import Workload

BASELINE = "fcfs"
USUAL = "fcfs+easy"
"""What most clusters run; against strict FCFS alone every scheduler would look good."""

SHIPPED = "holdback"
SCHEDULERS = (
    BASELINE,
    "random+skip",
    USUAL,
    "largest-first+easy",
    "smallest-first+easy",
    "f1+easy",
    "wfp3+easy",
    "sjf+easy",
    "sqrt-area+easy",
    "smallest-area+easy",
    "smallest-area+easy@best-fit?express-lane",
    SHIPPED,
)
CLUSTER = "uniform:16x8:V100"
WORKLOAD, JOBS, LOAD, WINDOWS = "diurnal", 10_000, 0.9, 8
SETTINGS = ("run_median=200", "run_sigma=2.5", "run_high=172800", "estimate_error=1")
"""Run times vary as on GPU clusters: two thirds end within ten minutes, one in a hundred runs for
most of a day or longer (in the trace of the Helios cluster Venus one in 25 runs for a day). Users
request more time than they need: twice as much at the median, 7 times for one in 20."""


class Demo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compare twelve schedulers on the same generated jobs, and tune one live.

    One of them is a shipped policy, tuned beforehand: see berthline policies.

    Takes less than a minute, and needs no files, network or GPU.

    It ends with a report: one page with verdict, tables and figures.

    Example:
      berthline demo
    """

    seed: Seed = 42
    json: Json = False
    out: Annotated[str, arg(metavar="DIR")] = "runs/demo"
    """Where the results go; an earlier demo there is replaced."""
    tables_only: Annotated[bool, arg(help_behavior_hint="")] = False
    """Omit the tuning and the report."""


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Demo, argv, verb="demo")
    from berthline.evaluate.compare.cells import CellSettings, cells_of
    from berthline.evaluate.compare.grid import Grid, run_grid
    from berthline.evaluate.compare.judge import comparison_of
    from berthline.evaluate.compare.run_record import RunSettings

    started = time.monotonic()
    directory = RunDirectory(options.out, verb="demo", force=True)
    settings = Compare(
        workload=(WORKLOAD,),
        cluster=CLUSTER,
        schedulers=",".join(SCHEDULERS),
        baseline=BASELINE,
        windows=WINDOWS,
        jobs=JOBS,
        load=LOAD,
        seed=options.seed,
        set=SETTINGS,
    )
    if not options.json:
        print(
            f"{len(SCHEDULERS)} schedulers run the same jobs. They see the users' run-time "
            "estimates, which,\nlike real ones, are too long (twice the run time at the median).\n"
            f"{SHIPPED} was tuned on other jobs of this kind: berthline policies shipped\n"
        )
    grid = Grid(
        cells_of(
            settings.workload,
            [settings.cluster],
            [settings.load],
            CellSettings(
                windows=settings.windows,
                jobs=settings.jobs,
                seed=settings.seed,
                settings=read_settings(settings.set),
            ),
        ),
        SCHEDULERS,
        [options.seed],
        RunSettings(knowledge=settings.knowledge, keeps_jobs=True),
    )
    with progress("demo") as report:
        results = run_grid(grid, workers=None, progress=report)
    comparison = comparison_of(results, 0, SCHEDULERS.index(BASELINE))
    if not options.json:
        show(comparison, grid.cells[0].cluster)
        print(f"\n{verdict_sentence(comparison)}\n\n{shipped_sentence(comparison)}\n")
    files = results.tables()
    if not options.tables_only:
        tuned = tune_on(settings, quiet=options.json)
        files = {**files, TUNING: functools.partial(write_json, value=tuned)}
        if not options.json:
            print(f"{demo_tune.tuned_sentence(tuned)}\n")
    directory.write(
        command=shlex.join(["berthline", "demo", *argv]),
        config={**msgspec.structs.asdict(settings), "out": options.out, "json": options.json},
        seed=options.seed,
        summary=comparison,
        metrics=results.lines(),
        workload=grid.cells[0].source,
        files=files,
    )
    page = "" if options.tables_only else report_of(directory)
    if options.json:
        print_json(comparison)
        return 0
    print_facts(
        {
            "took": f"{time.monotonic() - started:.1f} s",
            "results": str(directory.path),
            "report": f"{page} (open it in a browser)" if page else "",
            "next": f"berthline sim synthetic --scheduler {SHIPPED}",
            " ": "berthline compare TRACE.swf --cluster uniform:16x8:V100 --windows 8",
            "  ": "berthline policies",
        }
    )
    return 0


def tune_on(settings: Compare, *, quiet: bool) -> dict[str, Any]:
    """Tune a gate on jobs of the same kind, and return the result."""
    from berthline.model.cluster import Cluster
    from berthline.traces.generators.synthetic import generate

    dials = read_settings(settings.set)
    cluster = Cluster.parse(settings.cluster)

    def make(seed: int) -> Workload:
        return generate(
            WORKLOAD, cluster=cluster, jobs=demo_tune.WINDOW_JOBS, load=LOAD, seed=seed, **dials
        )

    return demo_tune.tune(make, cluster, settings.knowledge, settings.seed, quiet=quiet)


def report_of(directory: RunDirectory) -> str:
    """Write the report about the results, and return its path."""
    from berthline.cli.report.command import note_lacking
    from berthline.report.page.write_report import write_report

    with progress("report") as shown:
        report = write_report(directory.path, progress=shown)
    note_lacking(report.lacking)
    return str(report.page)


def verdict_sentence(comparison: Comparison) -> str:
    """Return what the comparison says, in one sentence."""
    from berthline.evaluate.statistics.paired import paired_ratio, verdict

    results = {result.scheduler: result for result in comparison.schedulers}

    def against(best: str, metric: str) -> str:
        values = getattr(results[best].per_window, metric)
        words = []
        for other in (comparison.baseline, USUAL):
            if other != best:
                theirs = getattr(results[other].per_window, metric)
                ratio = paired_ratio(values, theirs, seed=comparison.seed)
                words.append(f"{verdict(ratio)} against {other}")
        return " and ".join(words)

    jct, slowdown = comparison.best.jct_mean, comparison.best.bounded_slowdown_mean
    sentence = (
        f"Verdict: on these jobs {jct} has the lowest mean JCT, {against(jct, 'jct_mean')}; "
        f"{'it also' if slowdown == jct else slowdown} has the lowest bounded slowdown, "
        f"{against(slowdown, 'bounded_slowdown_mean')}."
    )
    return textwrap.fill(sentence, 79, break_long_words=False, break_on_hyphens=False)


def shipped_sentence(comparison: Comparison) -> str:
    """Return what the shipped policy gains over the best of the others, and what it costs."""
    from berthline.evaluate.statistics.paired import paired_ratio, verdict

    results = {result.scheduler: result for result in comparison.schedulers}
    others = {name: found for name, found in results.items() if name != SHIPPED}

    def against(metric: str) -> str:
        best = min(others, key=lambda name: sum(getattr(others[name].per_window, metric)))
        ratio = paired_ratio(
            getattr(results[SHIPPED].per_window, metric),
            getattr(results[best].per_window, metric),
            seed=comparison.seed,
        )
        return f"{verdict(ratio)} against {best}"

    sentence = (
        f"The shipped policy {SHIPPED}: bounded slowdown {against('bounded_slowdown_mean')}, the"
        f" lowest of the others; mean JCT {against('jct_mean')}, also the lowest."
    )
    return textwrap.fill(sentence, 79, break_long_words=False, break_on_hyphens=False)
