"""`berthline eval`: evaluate a scheduler, or a run, on held-out windows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.compare.command import noted_if_interrupted, read_schedulers
from berthline.cli.conditions import ConditionOption, read_conditions
from berthline.cli.eval.show import show
from berthline.cli.options import (
    Address,
    Blocks,
    ConfigFile,
    EngineName,
    Force,
    Format,
    Gap,
    Jitter,
    Json,
    Load,
    Measure,
    MetricName,
    Out,
    Resume,
    Seed,
    Settings,
    WindowJobs,
    Workers,
    check_choice,
    command_line,
    engine_of,
    parse_options,
    seconds_of,
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
from berthline.evaluate.compare.evaluation_defaults import KNOWLEDGE, WINDOWS, WORKLOAD
from berthline.evaluate.metrics.measurement_window import MeasurementWindow


class Eval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Evaluate a scheduler or a run on held-out jobs.

    The best rival is chosen on VAL; the verdict is about REPORT.

    A generator makes both, with different seeds; a trace is split by time.

    Examples:
      berthline eval sjf+easy
      berthline eval runs/compare --against fcfs+easy,wfp3+easy --out runs/eval
      berthline eval sjf+easy --workload trace.swf --gap 5m --windows 3
      berthline eval sjf+easy --against fcfs+easy,wfp3+easy --jitter 4
      berthline eval edf+strict --regimes --windows 2
    """

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """A scheduler, or a run directory, whose settings are used: for sim its scheduler, for compare
    the one with the lowest mean JCT."""
    against: Annotated[str | None, arg(metavar="A,B", help_behavior_hint="(default: nine)")] = None
    """The rivals, separated by commas. The default is random choice, fcfs, fcfs+easy, and the
    heuristics sjf, smallest and largest first, f1, wfp3 and las."""
    metric: MetricName = None
    workload: Annotated[
        str | None,
        arg(metavar="WORKLOAD", help_behavior_hint=f"(default: that of the run, or {WORKLOAD})"),
    ] = None
    """A trace file or a generator: berthline traces list formats | generators."""
    cluster: Annotated[
        str | None,
        arg(
            metavar="CLUSTER",
            help_behavior_hint="(default: that of the run, or what a trace states, "
            "or uniform:8x8:V100)",
        ),
    ] = None
    """uniform:NODESxGPUS[:TYPE], a preset, a TOML file, or a publisher's node list."""
    windows: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--windows", lowest=1),
        arg(help_behavior_hint=f"(default: {WINDOWS} where the run is not continuous)"),
    ] = None
    """Number of VAL windows, and of REPORT windows."""
    window_jobs: WindowJobs = None
    continuous: Annotated[
        bool,
        arg(
            help_behavior_hint="(default: where REPORT has 4,000 jobs or more, unless --windows or"
            " --window-jobs is given)"
        ),
    ] = False
    """One VAL run and one REPORT run, evaluated in blocks of jobs, instead of windows, which start
    on an empty cluster. A generated run has --window-jobs jobs, or 20,000."""
    jitter: Jitter = 0
    blocks: Blocks = 16
    gap: Gap = None
    knowledge: Annotated[
        str | None,
        arg(metavar="WHAT", help_behavior_hint=f"(default: that of the run, or {KNOWLEDGE})"),
    ] = None
    """What schedulers know about run times: none; estimate (the users'); predicted (from finished
    jobs); exact."""
    condition: ConditionOption = ()
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    measure: Measure = None
    regimes: Annotated[bool, arg(help_behavior_hint="")] = False
    """Evaluate in each of the 48 regimes of the preset rlmetadqn, against the scheduler that is the
    best there in hindsight; --windows is per regime."""
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
    options = parse_options(Eval, argv, verb="eval")
    from berthline.evaluate.compare.evaluate import evaluate
    from berthline.runs.run_output import RunOutput
    from berthline.sim.inputs import KNOWLEDGE as KINDS

    if options.knowledge is not None:
        check_choice("--knowledge", options.knowledge, KINDS)
    if options.regimes:
        return _regimes(options, argv)
    config = {**msgspec.structs.asdict(options), "condition": None, "engine": None, "address": None}
    with noted_if_interrupted(options.out), progress("comparing") as report:
        found = evaluate(
            options.run,
            against=None
            if options.against is None
            else read_schedulers(options.against, "--against"),
            metric=options.metric,
            workload=options.workload,
            cluster=options.cluster,
            windows=options.windows,
            window_jobs=options.window_jobs,
            continuous=options.continuous or None,
            jitter=options.jitter,
            blocks=options.blocks,
            gap_seconds=None if options.gap is None else seconds_of("--gap", options.gap),
            knowledge=options.knowledge,
            conditions=read_conditions(options.condition),
            load=options.load,
            seed=options.seed,
            format=options.format,
            settings=format_options(options.map, options.set),
            measure=None if options.measure is None else MeasurementWindow.parse(options.measure),
            workers=options.workers,
            engine=engine_of(options.engine, options.address),
            out=None
            if options.out is None
            else RunOutput(options.out, shlex.join(["berthline", "eval", *argv]), config),
            force=options.force,
            resume=options.resume,
            remark=note,
            progress=report,
        )
    source = found.inputs[0].source
    if options.json:
        note_dropped_rows(source)
        if found.caution:
            note(found.caution)
        print_json(found.summary())
        return 0
    show(found)
    print_facts(
        {
            "caution": found.caution,
            **trace_facts(source),
            "results": "" if options.out is None else str(Path(options.out)),
            "again": command_line("eval", options),
        }
    )
    return 0


_OF_REGIMES = frozenset(
    (
        *("run", "against", "metric", "windows", "seed", "regimes", "workers", "engine", "address"),
        *("json", "out", "force", "resume", "config_file"),
    )
)
"""Options that have a meaning beside --regimes."""


def _regimes(options: Eval, argv: list[str]) -> int:
    """Evaluate in the regimes of a preset."""
    from berthline.cli.eval.show_regimes import show_regimes
    from berthline.evaluate.compare.regimes import evaluate_regimes
    from berthline.runs.run_output import RunOutput

    for field in msgspec.structs.fields(Eval):
        default = None if field.required else field.default
        if field.name not in _OF_REGIMES and getattr(options, field.name) != default:
            raise ConfigError(
                f"--{field.name.replace('_', '-')} beside --regimes",
                expected="jobs, clusters and knowledge of the regimes, without other ones",
            )
    command = shlex.join(["berthline", "eval", *argv])
    with noted_if_interrupted(options.out), progress("comparing") as report:
        found = evaluate_regimes(
            options.run,
            against=None
            if options.against is None
            else read_schedulers(options.against, "--against"),
            metric=options.metric,
            windows=options.windows,
            seed=options.seed,
            workers=options.workers,
            engine=engine_of(options.engine, options.address),
            out=None if options.out is None else RunOutput(options.out, command, None),
            force=options.force,
            resume=options.resume,
            progress=report,
        )
    if options.json:
        print_json(msgspec.structs.asdict(found))
        return 0
    show_regimes(found)
    print_facts(
        {
            "results": "" if options.out is None else str(Path(options.out)),
            "again": command_line("eval", options),
        }
    )
    return 0
