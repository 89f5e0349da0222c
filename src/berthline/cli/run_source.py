"""The run that `explain` and `export` are about: simulated now, or read from a run directory."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import numpy as np
from tyro.conf import Positional, arg

from berthline.cli.conditions import ConditionOption, with_conditions
from berthline.cli.options import (
    ClusterName,
    Format,
    Jobs,
    Knowledge,
    Load,
    Seed,
    Settings,
    check_choice,
)
from berthline.cli.output import counted, note, progress
from berthline.cli.traces_file import Map, format_options
from berthline.errors import ConfigError, PolicyError

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result

RunName = Annotated[
    Positional[str],
    arg(
        metavar="RUN",
        help="A run directory of berthline sim --out, or of compare (say which --scheduler); or a"
        " WORKLOAD as for sim, which is simulated.",
    ),
]

SAID_BY_DIRECTORY = ("cluster", "knowledge", "seed", "condition", "jobs", "load", "set", "format")
"""Options that a run directory answers itself."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a verb that is about one run; the same as those of `sim`."""

    cluster: ClusterName = "uniform:8x8:V100"
    scheduler: Annotated[
        str,
        arg(
            metavar="SCHEDULER",
            help="order[+discipline][@placement][?gate][!preemption]: see berthline policies.",
            help_behavior_hint="(default: fcfs, or that of the run directory)",
        ),
    ] = ""
    knowledge: Knowledge = "estimate"
    condition: ConditionOption = ()
    jobs: Jobs = None
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None


def is_run_directory(source: str) -> bool:
    """Whether a run is read from a directory, not simulated."""
    return (Path(source) / "config.toml").is_file()


def read_run(source: str, options: RunOptions) -> Result:
    """Return the run that the options are about.

    Args:
        source: the RUN argument.
        options: what is to be simulated, where it is no run directory.

    Raises:
        ConfigError: the run directory cannot be used, or an option contradicts it.
        BerthlineError: what is to be simulated does not go together.
    """
    if is_run_directory(source):
        _check_defaults(source, options)
        return _from_directory(Path(source), options.scheduler)
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.sim.simulate import simulate
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.workload_argument import resolve_workload

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    scheduler = Scheduler.parse(options.scheduler or "fcfs")
    cluster = with_conditions(resolve_cluster(options.cluster, note), options.condition)
    workload = resolve_workload(
        source,
        cluster=cluster,
        jobs=options.jobs,
        load=options.load,
        seed=options.seed,
        format=options.format,
        settings=format_options(options.map, options.set),
    )
    with progress("simulating") as report:
        return simulate(
            workload,
            cluster,
            scheduler,
            knowledge=options.knowledge,
            seed=options.seed,
            progress=lambda arrived: report(arrived, len(workload), counted(arrived, "job")),
        )


def _check_defaults(source: str, options: RunOptions) -> None:
    fields = {field.name: field.default for field in msgspec.structs.fields(options)}
    for name in SAID_BY_DIRECTORY:
        if getattr(options, name) != fields[name]:
            raise ConfigError(
                f"--{name} is given, but the run directory says it",
                where=source,
                hint="leave it out, or give the workload to simulate another run",
            )


def _from_directory(path: Path, scheduler: str) -> Result:
    """Return the run in a run directory; of a comparison, that on its first window."""
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result
    from berthline.traces.load import load_trace

    try:
        config = tomllib.loads((path / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"config.toml cannot be read: {error}", where=str(path)) from None
    for name in ("events.parquet", "workload.parquet", "cluster.toml"):
        if not (path / name).is_file():
            raise ConfigError(
                f"there is no {name}",
                where=str(path),
                expected="a run directory of berthline sim or compare, of this version",
            )
    wanted = Scheduler.parse(scheduler) if scheduler else None
    if "scheduler" in config:
        log = Schedule.read(path)
        found = Scheduler.parse(config["scheduler"])
        if wanted is not None and str(wanted) != str(found):
            raise ConfigError(
                f"--scheduler is {scheduler!r}, but the run is of {str(found)!r}",
                where=str(path),
                hint="leave it out, or give the workload to simulate another run",
            )
    else:
        found, log = _of_comparison(path, wanted)
    workload = load_trace(path / "workload.parquet")
    _check_same_jobs(log, workload, path)
    return Result(
        log=log,
        workload=workload,
        cluster=Cluster.from_toml(path / "cluster.toml"),
        scheduler=found,
        knowledge=str(config.get("knowledge", "estimate")),
        seed=int(config.get("seed", 0)),
        wall_seconds=0.0,
    )


def _of_comparison(path: Path, wanted: Scheduler | None) -> tuple[Scheduler, Schedule]:
    """Return one scheduler of a comparison, and its log."""
    import polars as pl

    from berthline.model.schedule import Schedule

    try:
        events = pl.read_parquet(path / "events.parquet")
        names = events["scheduler"].unique(maintain_order=True).cast(pl.String).to_list()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ConfigError(f"events.parquet cannot be read: {error}", where=str(path)) from None
    # Names stand there as they were given; one scheduler may be written in several ways.
    named = next((name for name in names if wanted is not None and _is(name, wanted)), None)
    if named is None or wanted is None:
        raise ConfigError(
            "the run is of several schedulers"
            if wanted is None
            else f"--scheduler {str(wanted)!r} is none of the comparison",
            where=str(path),
            expected="--scheduler with one of " + ", ".join(names),
        )
    rows = events.filter(pl.col("scheduler").cast(pl.String) == named).drop("scheduler")
    return wanted, Schedule.from_frame(rows)


def _is(name: str, scheduler: Scheduler) -> bool:
    """Whether a name in a comparison means a scheduler; a checkpoint's does not."""
    try:
        return str(type(scheduler).parse(name)) == str(scheduler)
    except PolicyError:
        return False


def _check_same_jobs(log: Schedule, workload: Workload, path: Path) -> None:
    """Raise if a log is not of these jobs: a file was put there from elsewhere."""
    from berthline.model.schedule import SUBMIT

    rows = log.kind == SUBMIT
    jobs = log.job[rows]
    is_same = (jobs < len(workload)).all() and np.array_equal(log.time[rows], workload.submit[jobs])
    if not is_same:
        raise ConfigError(
            "events.parquet is of other jobs than workload.parquet",
            where=str(path),
            expected="a run directory as it was written",
        )
