"""The run that `explain` and `export` use: simulated now, or read from a run directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.conditions import ConditionOption, with_conditions
from berthline.cli.options import (
    Format,
    Jobs,
    Knowledge,
    Load,
    OptionalClusterName,
    Seed,
    Settings,
    check_choice,
)
from berthline.cli.output import counted, note, progress
from berthline.cli.traces.file import Map, format_options
from berthline.errors import ConfigError, PolicyError
from berthline.runs.run_layout import CONFIG

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.simulate import Result

RunName = Annotated[
    Positional[str],
    arg(
        metavar="RUN",
        help="A run directory of berthline sim --out, or of compare (add --scheduler); or a"
        " WORKLOAD as for sim, which is simulated.",
    ),
]

SAID_BY_DIRECTORY = ("cluster", "knowledge", "seed", "condition", "jobs", "load", "set", "format")
"""Options that a run directory determines."""


class RunOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of a verb that uses one run; the same as in `sim`."""

    cluster: OptionalClusterName = None
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
    return (Path(source) / CONFIG).is_file()


def read_result(source: str, options: RunOptions) -> Result:
    """Return the run that the arguments name.

    Args:
        source: the RUN argument.
        options: what to simulate, if `source` is not a run directory.

    Raises:
        ConfigError: the run directory cannot be used, or an option contradicts it.
        BerthlineError: the run cannot be simulated with these options.
    """
    if is_run_directory(source):
        _check_defaults(source, options)
        return _from_directory(source, options.scheduler)
    from berthline.deploy.journal.export_journal import journal_result
    from berthline.deploy.journal.journal_file import is_journal
    from berthline.policies.formula_checks import idle_formulas
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.sim.simulate import simulate
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.stated_cluster import default_cluster
    from berthline.traces.workload_argument import resolve_workload

    if is_journal(source):
        return journal_result(source, options.scheduler)
    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    scheduler = Scheduler.parse(options.scheduler or "fcfs")
    for remark in idle_formulas(scheduler):
        note(remark)
    named = options.cluster or default_cluster(source, options.format, note)
    cluster = with_conditions(resolve_cluster(named, note), options.condition)
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
                f"--{name} is given, but the run directory determines it",
                where=source,
                hint="omit it, or give the workload to simulate another run",
            )


def _from_directory(path: str, scheduler: str) -> Result:
    """Return the run in a run directory; for a comparison, the run on its first window."""
    from berthline.policies.scheduler import Scheduler
    from berthline.runs.open_run import check_same_jobs, open_run
    from berthline.sim.simulate import Result

    run = open_run(path)
    logs, wanted = run.logs, Scheduler.parse(scheduler) if scheduler else None
    if run.kind in ("sim", "deploy"):
        if not run.settings.get("scheduler"):
            return run.result if wanted is None else run.result_under(wanted)
        found = Scheduler.parse(run.settings["scheduler"])
        if wanted is not None and str(wanted) != str(found):
            raise ConfigError(
                f"--scheduler is {scheduler!r}, but the run used {str(found)!r}",
                where=path,
                hint="omit it, or give the workload to simulate another run",
            )
        return run.result
    found, log = _of_comparison(path, logs, wanted)
    check_same_jobs(log, run)
    return Result(
        log=log,
        workload=run.workload,
        cluster=run.cluster,
        scheduler=found,
        knowledge=str(run.settings.get("knowledge", "estimate")),
        seed=int(run.settings.get("seed", 0)),
        wall_seconds=0.0,
    )


def _of_comparison(
    path: str, logs: dict[str, Schedule], wanted: Scheduler | None
) -> tuple[Scheduler, Schedule]:
    """Return one scheduler of a comparison, and its log."""
    # Names are stored as given; the same scheduler can be written in several ways.
    named = next((name for name in logs if wanted is not None and _is(name, wanted)), None)
    if named is None or wanted is None:
        raise ConfigError(
            "the run has several schedulers"
            if wanted is None
            else f"--scheduler {str(wanted)!r} is not in the comparison",
            where=path,
            expected="--scheduler with one of " + ", ".join(logs),
        )
    return wanted, logs[named]


def _is(name: str, scheduler: Scheduler) -> bool:
    """Whether a name in a comparison means this scheduler; a checkpoint's name never does."""
    try:
        return str(type(scheduler).parse(name)) == str(scheduler)
    except PolicyError:
        return False
