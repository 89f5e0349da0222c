"""`berthline train es`: tune the numbers of a scheduler with an evolution strategy."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import msgspec
from tyro.conf import UseAppendAction, arg

from berthline.cli.compare.command import read_schedulers
from berthline.cli.conditions import ConditionOption, read_conditions
from berthline.cli.options import (
    ConfigFile,
    Format,
    Gap,
    Json,
    Knowledge,
    Load,
    OptionalClusterName,
    Out,
    Resume,
    Seed,
    Settings,
    WindowJobs,
    Workers,
    check_choice,
    command_line,
    parse_options,
    positive,
    read_settings,
    seconds_of,
    whole,
)
from berthline.cli.output import note, print_facts, print_json, trace_facts
from berthline.cli.traces.file import Map, format_options
from berthline.cli.train.es_show import lines, show, show_side_by_side
from berthline.cli.train.signals import StoppedError, stop_signals
from berthline.evaluate.compare.evaluation_defaults import KNOWLEDGE, WINDOWS, WORKLOAD
from berthline.learn.tuning.tune import BUDGET_SECONDS, SPACE, TRAIN_WINDOWS
from berthline.runs.run_output import RunOutput


class TrainEs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tune the numbers of a scheduler on the simulator; the result is a scheduler in plain text.

    All candidates run on the same TRAIN windows. The best is chosen on VAL windows.

    It is evaluated on REPORT windows, against rivals that were also chosen on VAL.

    Examples:
      berthline train es --space gate --budget 15
      berthline train es --scheduler '[estimate * gpus ** {p}]+easy' --param p=0:2
      berthline train es --space preempt --knowledge none --search both --out runs/es
    """

    space: Annotated[str, arg(metavar="NAME")] = SPACE
    """What to tune: order, gate, hold (a gate with ten numbers), lane (with two), preempt,
    hold-preempt (both)."""
    scheduler: Annotated[
        str | None, arg(metavar="TEXT", help_behavior_hint="(default: that of --space)")
    ] = None
    """Your own scheduler, with names in braces for the numbers to search for."""
    param: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="NAME=LOW:HIGH[:log][:START]", help_behavior_hint="(repeatable)"),
    ] = ()
    """The range of a number; the numbers of a named space already have one."""
    goal: Annotated[str, arg(metavar="WHAT")] = "slowdown"
    """What to minimise: slowdown (with limits on JCT), jct, or a mix of both."""
    jct_tolerance: Annotated[float, msgspec.Meta(ge=0), arg(metavar="X")] = 0.02
    """Mean JCT may be up to 1 + X times the lowest mean JCT of the heuristics."""
    p99_tolerance: Annotated[float, msgspec.Meta(ge=0), arg(metavar="X")] = 0.10
    """The same for p99 JCT."""
    search: Annotated[str, arg(metavar="HOW")] = "cma"
    """cma (CMA-ES); random (the baseline); or both with the same budget."""
    budget: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        positive("--budget", metavar="SECONDS"),
        arg(help_behavior_hint=f"(default: {BUDGET_SECONDS:g}, unless --evaluations)"),
    ] = None
    """How long to search."""
    evaluations: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--evaluations", lowest=1),
        arg(help_behavior_hint="(default: as the time allows)"),
    ] = None
    """Number of candidates to try; the result is then the same on any machine."""
    population: Annotated[
        Annotated[int, msgspec.Meta(ge=4)] | None,
        whole("--population", lowest=4),
        arg(help_behavior_hint="(default: 8, more with many parameters)"),
    ] = None
    """Candidates per generation."""
    against: Annotated[str | None, arg(metavar="A,B", help_behavior_hint="(default: many)")] = None
    """Heuristics; the rival is the best of them on VAL. Express lanes compete separately."""
    workload: Annotated[str, arg(metavar="WORKLOAD")] = WORKLOAD
    """A trace file or a generator: berthline traces list formats | generators."""
    cluster: OptionalClusterName = None
    knowledge: Knowledge = KNOWLEDGE
    window_jobs: WindowJobs = None
    train_windows: Annotated[int, msgspec.Meta(ge=1), whole("--train-windows", lowest=1)] = (
        TRAIN_WINDOWS
    )
    """Number of TRAIN windows; candidates run on four of them at a time."""
    windows: Annotated[int, msgspec.Meta(ge=2), whole("--windows", lowest=2)] = WINDOWS
    """Number of VAL windows, and of REPORT windows."""
    gap: Gap = None
    condition: ConditionOption = ()
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    config_file: ConfigFile = None
    workers: Workers = None
    json: Json = False
    out: Out = None
    resume: Resume = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(TrainEs, argv, verb="train es")
    from berthline.learn.tuning.search_goal import GOALS
    from berthline.learn.tuning.tune import SEARCHES, tune
    from berthline.sim.inputs import KNOWLEDGE as KINDS

    check_choice("--knowledge", options.knowledge, KINDS)
    check_choice("--goal", options.goal, GOALS)
    check_choice("--search", options.search, SEARCHES)
    same = (
        *(
            "space",
            "scheduler",
            "goal",
            "jct_tolerance",
            "p99_tolerance",
            "search",
            "budget",
            "evaluations",
        ),
        *("population", "workload", "cluster", "knowledge", "window_jobs", "train_windows"),
        *("windows", "load", "seed", "format", "workers", "resume"),
    )
    words = [word for word in argv if word != "--resume"]
    again = shlex.join(["berthline", "train", "es", *words, "--resume"])
    try:
        # All losses up to the last generation are on disk, so nothing is lost by stopping at once.
        with stop_signals(at_once=True) as request:
            found = tune(
                **{name: getattr(options, name) for name in same},
                params=options.param,
                against=None
                if options.against is None
                else read_schedulers(options.against, "--against"),
                gap_seconds=None if options.gap is None else seconds_of("--gap", options.gap),
                conditions=read_conditions(options.condition),
                settings=format_options(options.map, options.set),
                out=None
                if options.out is None
                else RunOutput(
                    options.out, shlex.join(["berthline", "train", "es", *argv]), config_of(options)
                ),
                must_stop=request,
                watch=lines,
                remark=note,
            )
    except StoppedError as stopped:
        if options.out is None:
            note("stopped; --out keeps the losses of a search, to resume it")
        else:
            note(f"stopped; all losses so far are saved. to resume: {again}")
        return 128 + stopped.signal
    assert found.summary is not None  # a search that is stopped ends by the signal
    if options.json:
        print_json(found.summary)
        return 0
    for one in found.searches:
        show(one)
    if len(found.searches) > 1:
        show_side_by_side(found.searches)
    print_facts(
        {
            **trace_facts(found.source),
            "results": str(found.directory or ""),
            "again": command_line("train es", options),
        }
    )
    return 0


def config_of(options: TrainEs) -> dict[str, Any]:
    """Return all settings that decide the result, for config.toml; the space adds its own."""
    left_out = ("json", "out", "resume", "workers", "condition", "scheduler", "param")
    given = msgspec.structs.asdict(options)
    return {
        "algorithm": "es",
        **{name: value for name, value in given.items() if name not in left_out},
        "set": read_settings(options.set),
        "conditions": read_conditions(options.condition),
    }
