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
    from berthline.evaluate.compare.grid import GridResults

BASELINE = "fcfs"
USUAL = "fcfs+easy"
"""What most clusters run; against strict FCFS alone every scheduler would look good."""

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
)
CLUSTER = "uniform:16x8:V100"
WORKLOAD, JOBS, LOAD = "diurnal", 80_000, 0.9
SETTINGS = ("run_median=200", "run_sigma=2.5", "run_high=172800", "estimate_error=1")
"""Run times vary as on GPU clusters: two thirds end within ten minutes, one in a hundred runs for
most of a day or longer (in the trace of the Helios cluster Venus one in 25 runs for a day). Users
request more time than they need: twice as much at the median, 7 times for one in 20."""


class Demo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Compare eleven schedulers on the same generated jobs, and tune one live.

    Each runs all jobs in one continuous run.

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
    from berthline.evaluate.compare.run_mode import ASKED_CONTINUOUS
    from berthline.evaluate.compare.run_record import RunSettings

    started = time.monotonic()
    directory = RunDirectory(options.out, verb="demo", force=True)
    settings = Compare(
        workload=(WORKLOAD,),
        cluster=CLUSTER,
        schedulers=",".join(SCHEDULERS),
        baseline=BASELINE,
        continuous=True,
        jobs=JOBS,
        load=LOAD,
        seed=options.seed,
        set=SETTINGS,
    )
    if not options.json:
        print(
            f"{len(SCHEDULERS)} schedulers run the same jobs. They see the users' run-time "
            "estimates, which,\nlike real ones, are too long (twice the run time at the median).\n"
        )
    grid = Grid(
        cells_of(
            settings.workload,
            [CLUSTER],
            [settings.load],
            CellSettings(
                jobs=settings.jobs,
                seed=settings.seed,
                settings=read_settings(settings.set),
            ),
        ),
        SCHEDULERS,
        [options.seed],
        RunSettings(knowledge=settings.knowledge, keeps_jobs=True),
        continuous=True,
        mode=ASKED_CONTINUOUS,
    )
    with progress("demo") as report:
        results = run_grid(grid, workers=None, progress=report)
    comparison = comparison_of(results, 0, SCHEDULERS.index(BASELINE))
    if not options.json:
        show(comparison, grid.cells[0].cluster)
        print(f"\n{verdict_sentence(results, comparison)}\n")
    files = results.tables()
    if not options.tables_only:
        tuned = tune_on(settings, quiet=options.json)
        tuned["whole_run"] = demo_tune.whole_run(
            tuned, grid.cells[0].source, grid.cells[0].cluster, settings.knowledge, options.seed
        )
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
            "next": "berthline compare TRACE.swf --cluster uniform:16x8:V100",
            " ": "berthline whatif ACCOUNTING.txt",
            "  ": "berthline policies",
        }
    )
    return 0


def tune_on(settings: Compare, *, quiet: bool) -> dict[str, Any]:
    """Tune a gate on jobs of the same kind, and return the result."""
    from berthline.model.cluster import Cluster

    return demo_tune.tune(
        WORKLOAD,
        Cluster.parse(CLUSTER),
        load=LOAD,
        settings=read_settings(settings.set),
        knowledge=settings.knowledge,
        seed=settings.seed,
        quiet=quiet,
    )


def report_of(directory: RunDirectory) -> str:
    """Write the report about the results, and return its path."""
    from berthline.cli.report.command import note_lacking
    from berthline.report.page.write_report import write_report

    with progress("report") as shown:
        report = write_report(directory.path, progress=shown)
    note_lacking(report.lacking)
    return str(report.page)


def verdict_sentence(results: GridResults, comparison: Comparison) -> str:
    """Return what the comparison says: the best by two metrics, and who starves."""
    from berthline.evaluate.compare.judge import judge_pair

    names = [result.scheduler for result in comparison.schedulers]

    def against(best: str, metric: str) -> str:
        words = []
        for other in (comparison.baseline, USUAL):
            if other != best:
                judged, _ = judge_pair(results, 0, names.index(best), names.index(other))
                words.append(f"{getattr(judged, metric).verdict} against {other}")
        return " and ".join(words)

    jct, slowdown = comparison.best.jct_mean, comparison.best.bounded_slowdown_mean
    starving = [
        each.scheduler
        for each in comparison.schedulers
        if each.starvation is not None and each.starvation.starves
    ]
    named = ", ".join(starving)
    sentence = (
        f"Verdict: on these jobs {jct} has the lowest mean JCT, {against(jct, 'jct_mean')}; "
        f"{'it also' if slowdown == jct else slowdown} has the lowest bounded slowdown, "
        f"{against(slowdown, 'bounded_slowdown_mean')}. "
        f"{f'Unsafe as they are, because they starve: {named}' if named else 'None starves'}."
    )
    return textwrap.fill(sentence, 79, break_long_words=False, break_on_hyphens=False)
