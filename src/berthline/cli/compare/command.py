"""`berthline compare`: several schedulers on the same jobs, against one of them."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.compare.show import show, show_overall
from berthline.cli.conditions import ConditionOption, read_conditions
from berthline.cli.energy_rate import EnergyPeriod, EnergyRateFile, check_energy_rate
from berthline.cli.groups import By, read_groupings, show_compared_groups
from berthline.cli.options import (
    Address,
    Blocks,
    ConfigFile,
    EngineName,
    Force,
    Format,
    Horizon,
    Jitter,
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
    engine_of,
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
from berthline.cli.traces.file import Map, format_options
from berthline.errors import ConfigError
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.runs.run_layout import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEDULERS = "fcfs,fcfs+easy,sjf+easy,smallest-area+easy"
"""The schedulers compared by default."""


class Compare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Run the same jobs under several schedulers, and compare them with a baseline.

    With 4,000 jobs or more, differences have 95 % intervals over blocks of jobs.

    --windows N compares N separate parts instead of one run.

    Several workloads, clusters or loads are compared one by one, and then together.

    Examples:
      berthline compare synthetic --schedulers fcfs,fcfs+easy,sjf+easy --windows 8
      berthline compare trace.swf --cluster my.toml --out runs/compare
      berthline compare trace.swf --cluster my.toml --jitter 8
      berthline compare synthetic bursty --loads 0.7,0.8,0.9 --windows 8
      berthline compare synthetic --by size --energy-rate tariff.csv
      berthline compare synthetic --jobs 5000 --measure 86400:172800
    """

    workload: WorkloadNames
    cluster: Annotated[
        str | None,
        arg(
            metavar="CLUSTER[,B]",
            help="uniform:NODESxGPUS[:TYPE], a preset (berthline traces list clusters), a TOML"
            " file with [[nodes]] groups, or a publisher's node list; several separated by commas.",
            help_behavior_hint="(default: what a trace states, or uniform:8x8:V100)",
        ),
    ] = None
    schedulers: Annotated[str, arg(metavar="A,B,C")] = SCHEDULERS
    """Schedulers, separated by commas; berthline policies lists the names."""
    baseline: Annotated[
        str | None, arg(metavar="A", help_behavior_hint="(default: the first scheduler)")
    ] = None
    """The scheduler that the others are compared with."""
    windows: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--windows", lowest=1),
        arg(help_behavior_hint="(default: one run over the whole workload)"),
    ] = None
    """Number of separate runs: a generator makes N workloads, a file is cut into N parts. Windows
    start on an empty cluster, which flatters schedulers that hold GPUs back."""
    continuous: Annotated[
        bool,
        arg(help_behavior_hint="(default: with 4,000 jobs or more, unless --windows is given)"),
    ] = False
    """Evaluate one run over the whole workload in blocks of jobs, however few there are."""
    jitter: Jitter = 0
    blocks: Blocks = 16
    knowledge: Knowledge = "estimate"
    condition: ConditionOption = ()
    jobs: Jobs = None
    load: Load = None
    loads: Annotated[
        str | None, arg(metavar="X,Y,Z", help_behavior_hint="(default: only --load)")
    ] = None
    """A sweep over loads, separated by commas; each is applied like --load."""
    seed: Seed = 0
    seeds: Annotated[int, msgspec.Meta(ge=1), whole("--seeds", lowest=1)] = 1
    """Number of seeds for each window, if failures, refused starts or the schedulers are random;
    the values of a window are means over its seeds."""
    set: Settings = ()
    format: Format = None
    map: Map = None
    measure: Measure = None
    horizon: Horizon = None
    by: By = ()
    energy_rate: EnergyRateFile = None
    energy_period: EnergyPeriod = None
    workers: Workers = None
    engine: EngineName = "local"
    address: Address = None
    config_file: ConfigFile = None
    json: Json = False
    out: Out = None
    force: Force = False
    resume: Resume = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Compare, argv, verb="compare")
    from berthline.evaluate.compare.compare import compare
    from berthline.runs.run_output import RunOutput
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.traces.stated_cluster import default_cluster

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    groupings = read_groupings(options.by)
    check_energy_rate(options.energy_rate, options.energy_period)
    clusters = None if options.cluster is None else read_clusters(options.cluster)
    if clusters is None:
        named = [default_cluster(one, options.format, note) for one in options.workload]
        # Several workloads have one cluster each; a single one can be repeated by its name.
        if len(set(named)) == 1:
            options = msgspec.structs.replace(options, cluster=named[0])
            clusters = named[:1]
    config = {
        **msgspec.structs.asdict(options),
        "set": read_settings(options.set),
        "by": groupings,
        "condition": None,
        "engine": None,
        "address": None,
    }
    with noted_if_interrupted(options.out), progress("comparing") as report:
        found = compare(
            options.workload,
            clusters,
            read_schedulers(options.schedulers),
            baseline=options.baseline,
            knowledge=options.knowledge,
            jobs=options.jobs,
            load=options.load,
            loads=read_loads(options),
            seed=options.seed,
            seeds=options.seeds,
            windows=options.windows,
            continuous=options.continuous or None,
            jitter=options.jitter,
            blocks=options.blocks,
            conditions=read_conditions(options.condition),
            format=options.format,
            settings=format_options(options.map, options.set),
            energy_rate=options.energy_rate,
            energy_period=options.energy_period,
            by=groupings,
            measure=None if options.measure is None else MeasurementWindow.parse(options.measure),
            horizon=options.horizon,
            workers=options.workers,
            engine=engine_of(options.engine, options.address),
            out=None
            if options.out is None
            else RunOutput(options.out, shlex.join(["berthline", "compare", *argv]), config),
            force=options.force,
            resume=options.resume,
            remark=note,
            progress=report,
        )
    sources = {cell.workload: cell.source for cell in found.inputs}.values()
    if options.json:
        for source in sources:
            note_dropped_rows(source)
        print_json(found.summary())
        return 0
    for number, (comparison, cell) in enumerate(zip(found.cells, found.inputs, strict=True)):
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
    if found.overall is not None:
        show_overall(found.overall)
        print()
    for source in sources:
        print_facts(trace_facts(source))
    print_facts(
        {
            "results": "" if options.out is None else str(Path(options.out)),
            "again": command_line("compare", options),
        }
    )
    return 0


@contextlib.contextmanager
def noted_if_interrupted(out: str | None) -> Iterator[None]:
    """Print how to resume when the user interrupts a command that keeps finished runs."""
    try:
        yield
    except KeyboardInterrupt:
        if out is not None and (Path(out) / UNFINISHED).is_file():
            note("finished runs are kept: to resume, run the same command with --resume")
        raise


def read_clusters(text: str) -> list[str]:
    """Return the clusters of `--cluster A,B`; a file name may contain commas."""
    return [text] if Path(text).exists() else [part.strip() for part in text.split(",")]


def read_loads(options: Compare) -> list[float] | None:
    """Return the loads of `--loads`; None = the option is not given.

    Raises:
        ConfigError: an entry is not a load.
    """
    if options.loads is None:
        return None
    loads = []
    for text in options.loads.split(","):
        try:
            load = float(text)
        except ValueError:
            load = -1.0
        if not 0 < load < float("inf"):
            raise ConfigError(
                f"--loads has {text.strip()!r}", expected="numbers, more than 0: 0.7,0.8,0.9"
            )
        loads.append(load)
    return loads


def read_schedulers(text: str, flag: str = "--schedulers") -> list[str]:
    """Return the schedulers in the comma-separated list of an option.

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
