"""`berthline compare`: several schedulers on the same jobs, against one of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.conditions import ConditionOption, header_of, json_of, with_conditions
from berthline.cli.energy_rate import (
    EnergyPeriod,
    EnergyRateFile,
    check_energy_rate,
    cost_of,
    read_energy_rate,
)
from berthline.cli.groups import By, read_groupings, show_compared_groups
from berthline.cli.options import (
    ClusterName,
    Force,
    Format,
    Jobs,
    Json,
    Knowledge,
    Load,
    Out,
    Seed,
    Settings,
    WorkloadName,
    check_choice,
    command_line,
    parse_options,
    read_settings,
    whole,
)
from berthline.cli.output import (
    BEST,
    counted,
    fold_scheduler,
    job_counts,
    new_table,
    note,
    note_dropped_rows,
    number,
    print_facts,
    print_json,
    print_table,
    progress,
    seconds,
    trace_facts,
)
from berthline.cli.run_directory import open_directory
from berthline.cli.run_tables import tables_of
from berthline.cli.traces_file import Map, format_options
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from berthline.evaluate.comparison import AverageMetrics, Comparison, Judgement
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

SCHEDULERS = "fcfs,fcfs+easy,sjf+easy,smallest-area+easy"
"""What is compared when nothing is said."""


class Compare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run the same jobs under several schedulers, and compare them with one of them.

    With --windows 8 or more, differences come with 95 % intervals.

    Examples:
      berthline compare synthetic --schedulers fcfs,fcfs+easy,sjf+easy --windows 8
      berthline compare trace.swf --cluster my.toml --windows 10 --out runs/compare
      berthline compare synthetic --by size --energy-rate tariff.csv
    """

    workload: WorkloadName
    cluster: ClusterName = "uniform:8x8:V100"
    schedulers: Annotated[str, arg(metavar="A,B,C")] = SCHEDULERS
    """Schedulers, with commas between them; berthline policies lists the names."""
    baseline: Annotated[
        str | None, arg(metavar="A", help_behavior_hint="(default: the first scheduler)")
    ] = None
    """The scheduler that the others are compared with."""
    windows: Annotated[int, msgspec.Meta(ge=1), whole("--windows", lowest=1)] = 1
    """How many independent runs: a generator makes that many workloads, a file is cut up."""
    knowledge: Knowledge = "estimate"
    condition: ConditionOption = ()
    jobs: Jobs = None
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    by: By = ()
    energy_rate: EnergyRateFile = None
    energy_period: EnergyPeriod = None
    json: Json = False
    out: Out = None
    force: Force = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Compare, argv, verb="compare")
    from berthline.evaluate.compare import cell_of, comparison_of, with_baseline
    from berthline.evaluate.grid import Grid, run_grid
    from berthline.evaluate.run_record import RunSettings
    from berthline.policies.scheduler import Scheduler, split_schedulers
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.traces.cluster_argument import resolve_cluster

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    schedulers = split_schedulers(options.schedulers)
    if not schedulers:
        raise ConfigError("--schedulers is empty", expected=f"a list such as {SCHEDULERS}")
    if re.search(r"^\s*,|,\s*,|,\s*$", re.sub(r"\[[^\]]*\]", "[]", options.schedulers)):
        raise ConfigError(
            f"--schedulers has an empty entry: {options.schedulers!r}",
            expected=f"one comma between two schedulers, such as {','.join(schedulers)}",
        )
    for text in (*schedulers, *filter(None, [options.baseline])):
        Scheduler.parse(text)  # before any work: a misspelt name should not cost a minute
    groupings = read_groupings(options.by)
    check_energy_rate(options.energy_rate, options.energy_period)
    cluster = with_conditions(resolve_cluster(options.cluster, note), options.condition)
    directory = open_directory(options.out, verb="compare", force=options.force)
    workloads, cuts = windows_of(options, cluster)
    rate = read_energy_rate(options.energy_rate, options.energy_period, workloads[0])
    names, reference = with_baseline(schedulers, options.baseline)
    grid = Grid(
        [cell_of(workloads, cluster, windows=cuts, load=options.load, energy_rate=rate)],
        names,
        [options.seed],
        RunSettings(
            knowledge=options.knowledge, by=tuple(groupings), keeps_jobs=directory is not None
        ),
    )
    with progress("comparing") as report:
        results = run_grid(grid, progress=report)
    comparison = comparison_of(results, 0, reference)
    summary = {
        **msgspec.structs.asdict(comparison),
        "conditions": json_of(comparison.conditions),
    }
    if directory is not None:
        directory.write(
            command=shlex.join(["berthline", "compare", *argv]),
            config={
                **msgspec.structs.asdict(options),
                "schedulers": schedulers,
                "baseline": comparison.baseline,
                "set": read_settings(options.set),
                "by": groupings,
                "condition": None,
                "conditions": cluster.conditions.changed(),
            },
            seed=options.seed,
            summary=summary,
            metrics=results.lines(),
            workload=workloads[0],
            files=tables_of(results),
        )
    if options.json:
        note_dropped_rows(workloads[0])
        print_json(summary)
        return 0
    show(comparison, cluster)
    for grouping in groupings:
        print()
        show_compared_groups(
            grouping,
            {each.scheduler: getattr(each, f"by_{grouping}") for each in comparison.schedulers},
            comparison.windows,
        )
    print()
    print_facts(
        {
            **trace_facts(workloads[0]),
            "results": str(directory.path) if directory else "",
            "again": command_line("compare", options),
        }
    )
    return 0


def windows_of(options: Compare, cluster: Cluster) -> tuple[list[Workload], int]:
    """Return the workloads to compare on, and into how many windows to cut each.

    A generator makes a workload for every window, each with a seed of its own; the first is the
    one `berthline sim` makes. A trace is read once and cut into consecutive windows.
    """
    from pathlib import Path

    from berthline.traces.synthetic import GENERATORS
    from berthline.traces.workload_argument import resolve_workload

    is_generated = options.workload in GENERATORS and not Path(options.workload).is_file()
    seeds = window_seeds(options.seed, options.windows) if is_generated else [options.seed]
    settings = format_options(options.map, options.set)
    workloads = [
        resolve_workload(
            options.workload,
            cluster=cluster,
            jobs=options.jobs,
            load=options.load,
            seed=seed,
            format=options.format,
            settings=settings,
        )
        for seed in seeds
    ]
    return workloads, 1 if is_generated else options.windows


def window_seeds(seed: int, windows: int) -> list[int]:
    """Return a seed for each window: `seed` itself, then seeds derived from it.

    Neighbouring numbers would make runs with seeds 1 and 2 share all but one of their windows.
    """
    import numpy as np

    derived = np.random.SeedSequence(seed).generate_state(windows - 1, np.uint64)
    return [seed, *(int(word) for word in derived)]


def show(comparison: Comparison, cluster: Cluster) -> None:
    """Print a comparison for people: the values, then the differences to the baseline."""
    jobs = comparison.window_jobs
    few = "" if min(jobs) == max(jobs) else f"{min(jobs):,} to "
    print(
        f"{comparison.workload}, {few}{counted(max(jobs), 'job')} x "
        f"{counted(comparison.windows, 'window')}, on {comparison.cluster} "
        f"({counted(cluster.total_gpus, 'GPU')})\n"
        f"knowledge {comparison.knowledge}, seed {comparison.seed}; times in seconds, "
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
