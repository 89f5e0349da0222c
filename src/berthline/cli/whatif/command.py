"""`berthline whatif`: what other schedulers would have done to a week of your log. Read-only."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import msgspec
from tyro.conf import arg

from berthline.cli.options import (
    ConfigFile,
    Force,
    Format,
    Json,
    Out,
    Seed,
    check_choice,
    command_line,
    parse_options,
    read_settings,
    whole,
)
from berthline.cli.output import note, note_dropped_rows, print_json, progress
from berthline.cli.traces.file import FormatOptions, Map, TraceFile, format_options
from berthline.errors import ConfigError
from berthline.runs.run_directory import open_directory

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

_RUNNING = "running_jobs"


class Whatif(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Show what other schedulers would have done to a week of an accounting log.

    The cluster and today's scheduler are inferred; the output says how well.

    Nothing leaves this machine, and nothing is written without --out.

    Examples:
      berthline whatif week.sacct
      berthline whatif week.sacct --from 2024-03-06 --cluster my.toml
      berthline whatif week.sacct --week 1 --schedulers sjf+easy,wfp3+easy --json
    """

    workload: TraceFile
    cluster: Annotated[
        str | None,
        arg(
            metavar="CLUSTER",
            help="The nodes of the cluster: a TOML file, uniform:NODESxGPUS[:TYPE] or a preset.",
            help_behavior_hint="(default: inferred)",
        ),
    ] = None
    today: Annotated[
        str | None, arg(metavar="SCHEDULER", help_behavior_hint="(default: the best model)")
    ] = None
    """The scheduler in use, if you know it better than a model fitted to the waits."""
    schedulers: Annotated[
        str | None, arg(metavar="A,B,C", help_behavior_hint="(default: a list that fits the log)")
    ] = None
    """The alternatives, separated by commas; berthline policies lists the names."""
    from_: Annotated[str | None, arg(name="from", metavar="DATE", help_behavior_hint="")] = (
        msgspec.field(default=None, name="from")
    )
    """Start of the period, such as 2024-03-04, or 3d after the log began."""
    to: Annotated[str | None, arg(metavar="DATE", help_behavior_hint="")] = None
    """End of the period (exclusive); 7 days later if only --from is given."""
    week: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--week", lowest=1),
        arg(help="Week N of the log; 1 is its first 7 days.", help_behavior_hint=""),
    ] = None
    last: Annotated[str | None, arg(metavar="TIME", help_behavior_hint="(default: 7d)")] = None
    """The last part of the log, such as 7d, 36h or 2w."""
    knowledge: Annotated[
        str | None, arg(metavar="WHAT", help_behavior_hint="(default: the limits, if any)")
    ] = None
    """What schedulers know about run times: none; estimate (the limits); predicted; exact."""
    seed: Seed = 0
    set: FormatOptions = ()
    format: Format = None
    map: Map = None
    config_file: ConfigFile = None
    json: Json = False
    out: Out = None
    force: Force = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Whatif, argv, verb="whatif")
    from berthline.cli.whatif.output import show
    from berthline.evaluate.whatif.keep_answer import whatif_summary
    from berthline.evaluate.whatif.period import LogClock
    from berthline.evaluate.whatif.whatif import whatif
    from berthline.runs.run_output import RunOutput
    from berthline.sim.inputs import KNOWLEDGE

    if options.knowledge is not None:
        check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    schedulers = read_schedulers(options)
    open_directory(options.out, verb="whatif", force=options.force)  # checked before reading
    workload, cluster = _log_of(options)
    config = {
        **msgspec.structs.asdict(options),
        "config_file": None,
        "schedulers": schedulers,
        "set": read_settings(options.set),
    }
    with progress("replaying") as report:
        found = whatif(
            workload,
            begin=options.from_,
            end=options.to,
            week=options.week,
            last=options.last,
            cluster=cluster,
            today=options.today,
            schedulers=schedulers,
            knowledge=options.knowledge,
            seed=options.seed,
            out=options.out
            and RunOutput(options.out, shlex.join(["berthline", "whatif", *argv]), config),
            force=options.force,
            remark=note,
            progress=report,
        )
    if options.json:
        note_dropped_rows(workload)
        print_json(whatif_summary(workload, found))
        return 0
    clock = LogClock.of(workload)
    show(
        found,
        workload,
        period=(clock.show(found.begin), clock.show(found.end)),
        results=options.out or "",
        again=command_line("whatif", options),
    )
    return 0


def _log_of(options: Whatif) -> tuple[Workload, Cluster | str | None]:
    """Return the log, and the cluster; a journal has both."""
    from berthline.deploy.journal.journal_file import is_journal
    from berthline.deploy.journal.journal_run import journal_run
    from berthline.evaluate.whatif.read_log import read_log

    if is_journal(options.workload):
        run = journal_run(options.workload)
        return run.workload, options.cluster or run.cluster
    settings = format_options(options.map, options.set)
    return read_log(options.workload, options.format, settings), options.cluster


def read_schedulers(options: Whatif) -> list[str] | None:
    """Return the alternatives that the options name; None = none are named.

    Raises:
        BerthlineError: an entry is not a scheduler, or the list is empty.
    """
    from berthline.policies.formula_checks import idle_formulas
    from berthline.policies.scheduler import Scheduler, split_schedulers

    if options.today is not None:
        Scheduler.parse(options.today)
    if options.schedulers is None:
        return None
    schedulers = split_schedulers(options.schedulers)
    if not schedulers:
        raise ConfigError("--schedulers is empty", expected="a list such as sjf+easy,wfp3+easy")
    for text in schedulers:
        for remark in idle_formulas(Scheduler.parse(text)):
            note(remark)
    return schedulers
