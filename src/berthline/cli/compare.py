"""`berthline compare`: several schedulers on the same jobs, against one of them."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import arg

from berthline.cli.compare_cells import cells_of
from berthline.cli.compare_show import show, show_overall
from berthline.cli.conditions import ConditionOption, json_of
from berthline.cli.energy_rate import EnergyPeriod, EnergyRateFile, check_energy_rate
from berthline.cli.groups import By, read_groupings, show_compared_groups
from berthline.cli.options import (
    Blocks,
    Force,
    Format,
    Jobs,
    Json,
    Knowledge,
    Load,
    Measure,
    Out,
    Resume,
    Seed,
    Settings,
    Workers,
    WorkloadNames,
    check_choice,
    command_line,
    parse_options,
    read_settings,
    whole,
)
from berthline.cli.output import (
    note,
    note_dropped_rows,
    print_facts,
    print_json,
    progress,
    trace_facts,
)
from berthline.cli.run_directory import RunDirectory, open_directory
from berthline.cli.run_tables import tables_of
from berthline.cli.traces_file import Map
from berthline.errors import BerthlineError, ConfigError
from berthline.evaluate.measurement_window import MeasurementWindow

if TYPE_CHECKING:
    from berthline.evaluate.comparison import Comparison
    from berthline.evaluate.grid import Grid, GridResults
    from berthline.evaluate.overall import Overall

SCHEDULERS = "fcfs,fcfs+easy,sjf+easy,smallest-area+easy"
"""What is compared when nothing is said."""


class Compare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run the same jobs under several schedulers, and compare them with one of them.

    With --windows 8 or more, differences come with 95 % intervals.

    Several workloads, clusters or loads are compared one by one, and then together.

    Examples:
      berthline compare synthetic --schedulers fcfs,fcfs+easy,sjf+easy --windows 8
      berthline compare trace.swf --cluster my.toml --windows 10 --out runs/compare
      berthline compare trace.swf --cluster my.toml --continuous
      berthline compare synthetic bursty --loads 0.7,0.8,0.9 --windows 8
      berthline compare synthetic --by size --energy-rate tariff.csv
      berthline compare synthetic --jobs 5000 --measure 86400:172800
    """

    workload: WorkloadNames
    cluster: Annotated[
        str,
        arg(
            metavar="CLUSTER[,B]",
            help="uniform:NODESxGPUS[:TYPE], a preset (berthline traces list clusters), a TOML"
            " file with [[nodes]] groups, or a publisher's node list; several with commas.",
        ),
    ] = "uniform:8x8:V100"
    schedulers: Annotated[str, arg(metavar="A,B,C")] = SCHEDULERS
    """Schedulers, with commas between them; berthline policies lists the names."""
    baseline: Annotated[
        str | None, arg(metavar="A", help_behavior_hint="(default: the first scheduler)")
    ] = None
    """The scheduler that the others are compared with."""
    windows: Annotated[int, msgspec.Meta(ge=1), whole("--windows", lowest=1)] = 1
    """How many independent runs: a generator makes that many workloads, a file is cut up."""
    continuous: Annotated[bool, arg(help_behavior_hint="")] = False
    """One run over the whole workload in place of windows, which start on an empty cluster and so
    flatter schedulers that hold GPUs back; judged in blocks of jobs."""
    blocks: Blocks = 16
    knowledge: Knowledge = "estimate"
    condition: ConditionOption = ()
    jobs: Jobs = None
    load: Load = None
    loads: Annotated[
        str | None, arg(metavar="X,Y,Z", help_behavior_hint="(default: only --load)")
    ] = None
    """A sweep over loads, with commas between them: each as --load would set it."""
    seed: Seed = 0
    seeds: Annotated[int, msgspec.Meta(ge=1), whole("--seeds", lowest=1)] = 1
    """With how many seeds each window is run, where failures, refused starts or the schedulers are
    random; a window's values are means over them."""
    set: Settings = ()
    format: Format = None
    map: Map = None
    measure: Measure = None
    by: By = ()
    energy_rate: EnergyRateFile = None
    energy_period: EnergyPeriod = None
    workers: Workers = None
    json: Json = False
    out: Out = None
    force: Force = False
    resume: Resume = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Compare, argv, verb="compare")
    from berthline.evaluate.compare import with_baseline
    from berthline.evaluate.grid import Grid
    from berthline.evaluate.judge import comparison_of
    from berthline.evaluate.overall import overall_of
    from berthline.evaluate.run_record import RunSettings
    from berthline.sim.inputs import KNOWLEDGE

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    # Before any work: a misspelt name should not cost a minute.
    names, baseline = with_baseline(read_schedulers(options.schedulers), options.baseline)
    groupings = read_groupings(options.by)
    check_energy_rate(options.energy_rate, options.energy_period)
    directory = open_directory(
        options.out, verb="compare", force=options.force, resume=options.resume
    )
    settings = RunSettings(
        knowledge=options.knowledge,
        by=tuple(groupings),
        keeps_jobs=directory is not None or options.continuous,
        measure=None if options.measure is None else MeasurementWindow.parse(options.measure),
    )
    grid = Grid(
        cells_of(options),
        names,
        run_seeds(options.seed, options.seeds),
        settings,
        continuous=options.continuous,
        blocks=options.blocks,
    )
    config = {
        **msgspec.structs.asdict(options),
        "schedulers": names,
        "baseline": names[baseline],
        "set": read_settings(options.set),
        "by": groupings,
        "condition": None,
        "conditions": grid.cells[0].cluster.conditions.changed(),
    }
    results = make_runs(grid, directory, config, workers=options.workers)
    comparisons = [comparison_of(results, cell, baseline) for cell in range(len(grid.cells))]
    overall = overall_of(comparisons) if len(comparisons) > 1 else None
    summary = summary_of(comparisons, overall)
    if directory is not None:
        directory.write(
            command=shlex.join(["berthline", "compare", *argv]),
            config=config,
            seed=options.seed,
            summary=summary,
            metrics=results.lines(),
            workload=grid.cells[0].source,
            files=tables_of(results),
        )
    sources = {cell.workload: cell.source for cell in grid.cells}.values()
    if options.json:
        for source in sources:
            note_dropped_rows(source)
        print_json(summary)
        return 0
    for number, (comparison, cell) in enumerate(zip(comparisons, grid.cells, strict=True)):
        if number:
            print()
        show(comparison, cell.cluster)
        for grouping in groupings:
            print()
            show_compared_groups(
                grouping,
                {each.scheduler: getattr(each, f"by_{grouping}") for each in comparison.schedulers},
                comparison.windows,
            )
    print()
    if overall is not None:
        show_overall(overall)
        print()
    for source in sources:
        print_facts(trace_facts(source))
    print_facts(
        {
            "results": str(directory.path) if directory else "",
            "again": command_line("compare", options),
        }
    )
    return 0


def read_schedulers(text: str, flag: str = "--schedulers") -> list[str]:
    """Return the schedulers of a list with commas, which an option gives.

    Raises:
        ConfigError: the list is empty, or has an empty entry.
    """
    from berthline.policies.scheduler import split_schedulers

    schedulers = split_schedulers(text)
    if not schedulers:
        raise ConfigError(f"{flag} is empty", expected=f"a list such as {SCHEDULERS}")
    if re.search(r"^\s*,|,\s*,|,\s*$", re.sub(r"\[[^\]]*\]", "[]", text)):
        raise ConfigError(
            f"{flag} has an empty entry: {text!r}",
            expected=f"one comma between two schedulers, such as {','.join(schedulers)}",
        )
    return schedulers


def run_seeds(seed: int, count: int) -> list[int]:
    """Return the seeds that each window is run with: `seed` itself, then seeds derived from it."""
    import numpy as np

    # Not those of window_seeds: a run must not share its randomness with the jobs of a window.
    derived = np.random.SeedSequence((seed, 1)).generate_state(count - 1, np.uint32)
    return [seed, *(int(word) for word in derived)]


def make_runs(
    grid: Grid, directory: RunDirectory | None, config: dict[str, Any], *, workers: int | None
) -> GridResults:
    """Make the runs of a grid; with a directory, what is finished survives an interruption.

    Args:
        grid: the runs.
        directory: where the results will be.
        config: the resolved options.
        workers: how many processes; None = as many as pay.

    Raises:
        BerthlineError: a run is impossible, or the directory has runs of another command.
    """
    from berthline.evaluate.grid import run_grid
    from berthline.evaluate.kept_runs import KeptRuns

    kept = None
    if directory is not None:
        asked = {k: v for k, v in config.items() if k not in _NO_MATTER and v is not None}
        if not directory.resume:
            directory.forget_unfinished()
        kept = KeptRuns(directory.unfinished, asked)
    try:
        with progress("comparing") as report:
            return run_grid(grid, workers=workers, kept=kept, progress=report)
    except KeyboardInterrupt:
        if kept is not None and kept.path.is_file():
            note("finished runs are kept: the same command with --resume goes on")
        raise
    except BerthlineError as error:
        if directory is not None and error.exit_code == ConfigError.exit_code:
            directory.forget_unfinished()  # the same command would fail again
        raise
    finally:
        if kept is not None:
            kept.close()


_NO_MATTER = ("out", "force", "resume", "json", "workers")
"""Options that decide no result."""


def summary_of(comparisons: list[Comparison], overall: Overall | None) -> dict[str, Any]:
    """Return the object that `--json` prints: a comparison, or several and what all say."""
    cells = [
        {**msgspec.structs.asdict(each), "conditions": json_of(each.conditions)}
        for each in comparisons
    ]
    return cells[0] if overall is None else {"cells": cells, "overall": overall}
