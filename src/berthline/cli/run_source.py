"""The run that `explain` and `export` are about: simulated now, or read from a run directory."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    return _simulated(
        {
            "workload": source,
            "cluster": options.cluster,
            "jobs": options.jobs,
            "load": options.load,
            "seed": options.seed,
            "format": options.format,
            "knowledge": options.knowledge,
        },
        Scheduler.parse(options.scheduler or "fcfs"),
        conditions=options.condition,
        settings=format_options(options.map, options.set),
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


def _simulated(
    config: dict[str, Any],
    scheduler: Scheduler,
    *,
    conditions: tuple[str, ...],
    settings: dict[str, str],
    log: Schedule | None = None,
) -> Result:
    """Return a run by its options, with a log that is there already if one is given."""
    from berthline.sim.simulate import Result, simulate
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.workload_argument import resolve_workload

    cluster = with_conditions(resolve_cluster(config["cluster"], note), conditions)
    workload = resolve_workload(
        config["workload"],
        cluster=cluster,
        jobs=config.get("jobs"),
        load=config.get("load"),
        seed=config["seed"],
        format=config.get("format"),
        settings=settings,
    )
    if log is not None:
        _check_same_jobs(log, workload, config["workload"])
        return Result(
            log=log,
            workload=workload,
            cluster=cluster,
            scheduler=scheduler,
            knowledge=config["knowledge"],
            seed=config["seed"],
            wall_seconds=0.0,
        )
    with progress("simulating") as report:
        return simulate(
            workload,
            cluster,
            scheduler,
            knowledge=config["knowledge"],
            seed=config["seed"],
            progress=lambda arrived: report(arrived, len(workload), counted(arrived, "job")),
        )


def _from_directory(path: Path, scheduler: str) -> Result:
    """Return the run in a run directory."""
    try:
        config = tomllib.loads((path / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"config.toml cannot be read: {error}", where=str(path)) from None
    if (path / "workload.parquet").is_file():
        return _of_comparison(path, scheduler, config)
    from berthline.model.schedule import Schedule
    from berthline.policies.scheduler import Scheduler

    log = Schedule.read(path)
    if scheduler and str(Scheduler.parse(scheduler)) != config["scheduler"]:
        raise ConfigError(
            f"--scheduler is {scheduler!r}, but the run is of {config['scheduler']!r}",
            where=str(path),
            hint="leave it out, or give the workload to simulate another run",
        )
    settings = {key: str(value) for key, value in config.get("set", {}).items()}
    if config.get("map") is not None:
        settings["mapping"] = config["map"]
    conditions = tuple(f"{name}={value}" for name, value in config.get("conditions", {}).items())
    return _simulated(
        config,
        Scheduler.parse(config["scheduler"]),
        conditions=conditions,
        settings=settings,
        log=log,
    )


def _of_comparison(path: Path, scheduler: str, config: dict[str, Any]) -> Result:
    """Return the run of one scheduler on the first window of a comparison."""
    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result
    from berthline.traces.load import load_trace

    try:
        events = pl.read_parquet(path / "events.parquet")
        names = events["scheduler"].unique(maintain_order=True).cast(pl.String).to_list()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ConfigError(f"events.parquet cannot be read: {error}", where=str(path)) from None
    # Names stand there as they were given; one scheduler may be written in several ways.
    wanted = Scheduler.parse(scheduler) if scheduler else None
    named = next((name for name in names if wanted is not None and _is(name, wanted)), None)
    if named is None or wanted is None:
        raise ConfigError(
            f"--scheduler {scheduler!r} is none of the comparison"
            if scheduler
            else "the run is of several schedulers",
            where=str(path),
            expected="--scheduler with one of " + ", ".join(names),
        )
    started = time.perf_counter()
    rows = events.filter(pl.col("scheduler").cast(pl.String) == named).drop("scheduler")
    return Result(
        log=Schedule.from_frame(rows),
        workload=load_trace(path / "workload.parquet"),
        cluster=Cluster.from_toml(path / "cluster.toml"),
        scheduler=wanted,
        knowledge=str(config.get("knowledge", "estimate")),
        seed=int(config.get("seed", 0)),
        wall_seconds=time.perf_counter() - started,
    )


def _is(name: str, scheduler: Scheduler) -> bool:
    """Whether a name in a comparison means a scheduler; a checkpoint's does not."""
    try:
        return str(type(scheduler).parse(name)) == str(scheduler)
    except PolicyError:
        return False


def _check_same_jobs(log: Schedule, workload: Workload, name: str) -> None:
    """Raise if a log is not of these jobs: the trace has changed since."""
    from berthline.model.schedule import SUBMIT

    rows = log.kind == SUBMIT
    jobs = log.job[rows]
    is_same = (jobs < len(workload)).all() and np.array_equal(log.time[rows], workload.submit[jobs])
    if not is_same:
        raise ConfigError(
            "the run directory is of other jobs than its workload gives now",
            where=name,
            expected="the trace file as it was when the run was made",
            hint="run berthline sim again",
        )
