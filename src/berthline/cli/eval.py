"""`berthline eval`: judge a scheduler, or a run, on windows that nobody has chosen anything on."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.compare import make_runs, read_schedulers
from berthline.cli.conditions import ConditionOption, json_of, with_conditions
from berthline.cli.eval_run import JudgedRun, read_run
from berthline.cli.eval_show import sentence, show
from berthline.cli.options import (
    Blocks,
    Force,
    Format,
    Gap,
    Json,
    Load,
    Measure,
    Out,
    Resume,
    Seed,
    Settings,
    WindowJobs,
    Workers,
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
    trace_facts,
)
from berthline.cli.run_directory import open_directory
from berthline.cli.run_tables import tables_of
from berthline.cli.traces_file import Map
from berthline.cli.traces_split import duration
from berthline.errors import ConfigError
from berthline.evaluate.measurement_window import MeasurementWindow

if TYPE_CHECKING:
    from berthline.evaluate.grid import Cell
    from berthline.evaluate.protocol import Evaluation
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

WORKLOAD, CLUSTER, KNOWLEDGE = "synthetic", "uniform:8x8:V100", "estimate"
"""What is used when neither the options nor the run say anything."""

WINDOWS = 20


class Eval(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Judge a scheduler or a run on windows that nobody has chosen anything on.

    The best rival is chosen on VAL windows; the verdict is about REPORT windows.

    A generator makes both with seeds of their own; a trace is split by time.

    Examples:
      berthline eval sjf+easy --windows 20 --window-jobs 1000
      berthline eval runs/compare --against fcfs+easy,wfp3+easy --out runs/eval
      berthline eval sjf+easy --workload trace.swf --gap 5m --windows 3
    """

    run: Annotated[Positional[str], arg(metavar="RUN")]
    """A scheduler, or a run directory: of sim its scheduler, of compare the one with the lowest
    mean JCT; with the settings of that run."""
    against: Annotated[str | None, arg(metavar="A,B", help_behavior_hint="(default: nine)")] = None
    """The rivals, with commas between them. The default are a random choice, fcfs, fcfs+easy, and
    heuristics: sjf, smallest and largest first, f1, wfp3, and las."""
    workload: Annotated[
        str | None,
        arg(metavar="WORKLOAD", help_behavior_hint=f"(default: that of the run, or {WORKLOAD})"),
    ] = None
    """A trace file or a generator: berthline traces list formats | generators."""
    cluster: Annotated[
        str | None,
        arg(metavar="CLUSTER", help_behavior_hint=f"(default: that of the run, or {CLUSTER})"),
    ] = None
    """uniform:NODESxGPUS[:TYPE], a preset, a TOML file, or a publisher's node list."""
    windows: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--windows", lowest=1),
        arg(help_behavior_hint=f"(default: {WINDOWS})"),
    ] = None
    """How many VAL windows, and as many REPORT windows."""
    window_jobs: WindowJobs = None
    continuous: Annotated[bool, arg(help_behavior_hint="")] = False
    """One VAL run and one REPORT run in place of windows, which start on an empty cluster; judged
    in blocks of jobs. A generator's has --window-jobs jobs."""
    blocks: Blocks = 16
    gap: Gap = "1d"
    knowledge: Annotated[
        str | None,
        arg(metavar="WHAT", help_behavior_hint=f"(default: that of the run, or {KNOWLEDGE})"),
    ] = None
    """What schedulers know of run times: none; estimate (the users'); predicted (from finished
    jobs); exact."""
    condition: ConditionOption = ()
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    measure: Measure = None
    workers: Workers = None
    json: Json = False
    out: Out = None
    force: Force = False
    resume: Resume = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Eval, argv, verb="eval")
    from berthline.evaluate.compare import with_baseline
    from berthline.evaluate.grid import Grid
    from berthline.evaluate.protocol import RIVALS, distinct_rivals, evaluation_of
    from berthline.evaluate.run_record import RunSettings
    from berthline.sim.inputs import KNOWLEDGE as KINDS

    judged = read_run(options.run)
    resolved = resolve(options, judged)
    check_choice("--knowledge", resolved["knowledge"], KINDS)
    if options.against is not None:
        rivals = read_schedulers(options.against, "--against")
    elif resolved["knowledge"] == "none":
        rivals = _without_run_times(RIVALS)
    else:
        rivals = list(RIVALS)
    names, _ = with_baseline([judged.scheduler, *distinct_rivals(judged.scheduler, rivals)], None)
    directory = open_directory(options.out, verb="eval", force=options.force, resume=options.resume)
    cells = cells_of(options, resolved)
    grid = Grid(
        cells,
        names,
        [options.seed],
        RunSettings(
            knowledge=resolved["knowledge"],
            keeps_jobs=directory is not None or options.continuous,
            measure=None if options.measure is None else MeasurementWindow.parse(options.measure),
        ),
        continuous=options.continuous,
        blocks=options.blocks,
    )
    config = {
        **msgspec.structs.asdict(options),
        **resolved,
        "run": judged.scheduler,
        "against": names[1:],
        "condition": None,
        "conditions": cells[0].cluster.conditions.changed(),
    }
    results = make_runs(grid, directory, config, workers=options.workers)
    evaluation = evaluation_of(results)
    summary = summary_of(evaluation)
    if directory is not None:
        directory.write(
            command=shlex.join(["berthline", "eval", *argv]),
            config=config,
            seed=options.seed,
            summary=summary,
            metrics=results.lines(),
            workload=cells[0].source,
            files=tables_of(results),
        )
    remark = caution(judged, resolved["workload"])
    if options.json:
        note_dropped_rows(cells[0].source)
        if remark:
            note(remark)
        print_json(summary)
        return 0
    show(evaluation, cells[1].cluster)
    print_facts(
        {
            "caution": remark,
            **trace_facts(cells[0].source),
            "results": str(directory.path) if directory else "",
            "again": command_line("eval", options),
        }
    )
    return 0


def resolve(options: Eval, judged: JudgedRun) -> dict[str, Any]:
    """Return workload, cluster and their settings: what is given, else the run's, else usual ones.

    What a run says about its workload is of no use for another one.
    """
    of_run = dict(judged.settings)
    if options.workload is not None:
        kept = ("cluster", "knowledge", "conditions")
        of_run = {name: value for name, value in of_run.items() if name in kept}
    if options.cluster is not None:
        of_run.pop("conditions", None)
    usual = {"workload": WORKLOAD, "cluster": CLUSTER, "knowledge": KNOWLEDGE}
    given = {
        name: value
        for name in ("workload", "cluster", "knowledge", "load", "format", "map", "window_jobs")
        if (value := getattr(options, name)) is not None
    }
    if options.set:
        given["set"] = read_settings(options.set)
    blank: dict[str, Any] = {
        "load": None,
        "format": None,
        "map": None,
        "window_jobs": None,
        "set": {},
    }
    return {**blank, **usual, **of_run, **given}


def cells_of(options: Eval, resolved: dict[str, Any]) -> list[Cell]:
    """Return the VAL and the REPORT cell.

    Raises:
        BerthlineError: the workload or the cluster cannot be used, or has too few jobs.
    """
    from berthline.evaluate.protocol import generated_cells, trace_cells
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.offered_load import scale_to_load
    from berthline.traces.workload_argument import is_generator, resolve_workload

    gap_seconds = duration("--gap", options.gap)
    windows = options.windows or (1 if options.continuous else WINDOWS)
    cluster: Cluster = resolve_cluster(resolved["cluster"], note)
    if resolved.get("conditions"):
        cluster = cluster.with_conditions(resolved["conditions"])
    cluster = with_conditions(cluster, options.condition)
    load, settings = resolved["load"], dict(resolved["set"])
    if resolved["map"] is not None:
        if "mapping" in settings:
            raise ConfigError("--map and --set mapping are both given", expected="one of them")
        settings["mapping"] = resolved["map"]

    def make(seed: int, jobs: int | None) -> Workload:
        return resolve_workload(
            resolved["workload"],
            cluster=cluster,
            jobs=jobs,
            load=load if is_generator(resolved["workload"]) else None,
            seed=seed,
            format=resolved["format"],
            settings=settings,
        )

    if is_generator(resolved["workload"]):
        return generated_cells(
            lambda seed: make(seed, resolved["window_jobs"]),
            cluster,
            seed=options.seed,
            windows=windows,
            load=load,
        )
    trace = make(options.seed, None)
    return trace_cells(
        trace if load is None else scale_to_load(trace, cluster, load),
        cluster,
        windows=windows,
        window_jobs=resolved["window_jobs"],
        gap_seconds=gap_seconds,
        load=load,
    )


def _without_run_times(rivals: tuple[str, ...]) -> list[str]:
    """Return the rivals that need no run times, and say which are left out."""
    from berthline.policies.scheduler import Scheduler

    needing = [name for name in rivals if Scheduler.parse(name).needs_run_times]
    note(f"without run times these rivals are left out: {', '.join(needing)}")
    return [name for name in rivals if name not in needing]


def summary_of(evaluation: Evaluation) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        **msgspec.structs.asdict(evaluation),
        "verdict": sentence(evaluation),
        "cells": [
            {**msgspec.structs.asdict(cell), "conditions": json_of(cell.conditions)}
            for cell in evaluation.cells
        ],
    }


def caution(judged: JudgedRun, workload: str) -> str:
    """Return what stands in the way of believing the verdict; empty where nothing does."""
    from berthline.traces.workload_argument import is_generator

    if judged.verb not in ("compare", "demo") or is_generator(workload):
        return ""
    return "RUN was the best of a comparison; if that was on this trace, it has seen REPORT"
