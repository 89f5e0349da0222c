"""`berthline train es`: tune the numbers of a scheduler with an evolution strategy."""

from __future__ import annotations

import functools
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import UseAppendAction, arg

from berthline.cli.compare.command import read_schedulers
from berthline.cli.conditions import ConditionOption, with_conditions
from berthline.cli.options import (
    ClusterName,
    Format,
    Gap,
    Json,
    Knowledge,
    Load,
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
    whole,
)
from berthline.cli.output import note, print_facts, print_json, trace_facts
from berthline.cli.traces.file import Map
from berthline.cli.traces.split import parse_duration
from berthline.cli.train.command import stop_signals
from berthline.cli.train.es_show import lines, show, show_side_by_side
from berthline.errors import ConfigError
from berthline.runs.growing_files import write_json
from berthline.runs.run_layout import STATE, SUMMARY
from berthline.runs.training_directory import open_training

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.learn.tuning.search import SearchConfig
    from berthline.learn.tuning.search_space import SearchSpace
    from berthline.learn.tuning.search_windows import SearchWindows
    from berthline.learn.tuning.search_workers import SearchWorkers
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

SEARCHES = ("cma", "random", "both")
GOALS = ("slowdown", "jct", "mix")
BUDGET_SECONDS = 60.0


class TrainEs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tune the numbers of a scheduler on the simulator; the result is a scheduler in plain text.

    All candidates run on the same TRAIN windows. The best is chosen on VAL windows.

    It is evaluated on REPORT windows, against rivals that were also chosen on VAL.

    Examples:
      berthline train es --space gate --budget 15
      berthline train es --scheduler '[estimate * gpus ** {p}]+easy' --param p=0:2
      berthline train es --space preempt --knowledge none --search both --out runs/es
    """

    space: Annotated[str, arg(metavar="NAME")] = "gate"
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
    workload: Annotated[str, arg(metavar="WORKLOAD")] = "synthetic"
    """A trace file or a generator: berthline traces list formats | generators."""
    cluster: ClusterName = "uniform:8x8:V100"
    knowledge: Knowledge = "estimate"
    window_jobs: WindowJobs = None
    train_windows: Annotated[int, msgspec.Meta(ge=1), whole("--train-windows", lowest=1)] = 32
    """Number of TRAIN windows; candidates run on four of them at a time."""
    windows: Annotated[int, msgspec.Meta(ge=2), whole("--windows", lowest=2)] = 20
    """Number of VAL windows, and of REPORT windows."""
    gap: Gap = "1d"
    condition: ConditionOption = ()
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    workers: Workers = None
    json: Json = False
    out: Out = None
    resume: Resume = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(TrainEs, argv, verb="train es")
    from berthline.learn.tuning.search_space import read_space
    from berthline.learn.tuning.search_workers import SearchWorkers
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.worker_pool import usable_cores

    check_choice("--knowledge", options.knowledge, KNOWLEDGE)
    check_choice("--goal", options.goal, GOALS)
    check_choice("--search", options.search, SEARCHES)
    space = read_space(
        None if options.scheduler is not None else options.space, options.scheduler, options.param
    )
    cluster = with_conditions(resolve_cluster(options.cluster, note), options.condition)
    windows = windows_of(options, cluster)
    command = shlex.join(["berthline", "train", "es", *argv])
    path = None if options.out is None else Path(options.out)
    if path is None and options.resume:
        raise ConfigError("--resume has no effect without --out", hint="add --out DIR")
    if path is not None:
        config = resolved(options, space)
        open_training(path, config, command=command, seed=options.seed, resume=options.resume)
    workers = SearchWorkers(
        windows.window,
        cluster,
        knowledge=options.knowledge,
        processes=options.workers or usable_cores(),
    )
    with workers, stop_signals() as caught:
        summaries = []
        for how in ("cma", "random") if options.search == "both" else (options.search,):
            inner = path / how if path is not None and options.search == "both" else path
            found = run_one(options, how, space, windows, workers, inner, lambda: bool(caught))
            if found is None:
                words = [word for word in argv if word != "--resume"]
                again = shlex.join(["berthline", "train", "es", *words, "--resume"])
                note(f"stopped; all losses so far are saved. to resume: {again}")
                return 128 + caught[0]
            summaries.append(found)
    summary = summaries[0] if len(summaries) == 1 else side_by_side(summaries)
    if path is not None and len(summaries) > 1:
        write_json(path / SUMMARY, summary)
    if options.json:
        print_json(summary)
        return 0
    for one in summaries:
        show(one)
    if len(summaries) > 1:
        show_side_by_side(summaries)
    print_facts(
        {
            **trace_facts(windows.source),
            "results": str(path or ""),
            "again": command_line("train es", options),
        }
    )
    return 0


def run_one(
    options: TrainEs,
    how: str,
    space: SearchSpace,
    windows: SearchWindows,
    workers: SearchWorkers,
    path: Path | None,
    must_stop: Callable[[], bool],
) -> dict[str, Any] | None:
    """Run one search, and return its summary; None = it was stopped.

    Raises:
        BerthlineError: the search cannot run with these options.
    """
    from berthline.learn.tuning.search import Search

    if path is not None:
        path.mkdir(parents=True, exist_ok=True)
        if (path / SUMMARY).is_file():
            summary: dict[str, Any] = json.loads((path / SUMMARY).read_bytes())
            return summary
    search = Search(
        config_of(options, how),
        space,
        windows,
        workers,
        rivals=rivals_of(options, space),
        path=path,
        resume=path is not None and (path / STATE).is_file(),
    )
    return search.run(lines(f"{how} on {space.name}"), must_stop)


def config_of(options: TrainEs, how: str) -> SearchConfig:
    """Return the settings of a search."""
    from berthline.learn.tuning.search import SearchConfig
    from berthline.learn.tuning.search_goal import Goal

    no_end = options.budget is None and options.evaluations is None
    return SearchConfig(
        search=how,
        goal=Goal(name=options.goal, jct_tolerance=options.jct_tolerance),
        seconds=BUDGET_SECONDS if no_end else options.budget,
        evaluations=options.evaluations,
        population=options.population or 0,
        seed=options.seed,
    )


def rivals_of(options: TrainEs, space: SearchSpace) -> list[str]:
    """Return the heuristics and lanes to choose rivals from.

    Raises:
        BerthlineError: an entry is not a scheduler.
    """
    from berthline.learn.tuning.search_rivals import HEURISTICS, LANES, usable_rivals

    usable = functools.partial(
        usable_rivals, knowledge=options.knowledge, preemptive=space.preempts
    )
    if options.against is None:
        return usable([*HEURISTICS, *LANES])
    named = read_schedulers(options.against, "--against")
    return [*named, *(lane for lane in usable(LANES) if lane not in named)]


def windows_of(options: TrainEs, cluster: Cluster) -> SearchWindows:
    """Return the TRAIN, VAL and REPORT windows.

    Raises:
        BerthlineError: the workload cannot be used, or has too few jobs.
    """
    from berthline.learn.tuning.search_windows import SearchWindows
    from berthline.traces.offered_load import scale_to_load
    from berthline.traces.workload_argument import is_generator, resolve_workload

    settings = read_settings(options.set)
    if options.map is not None:
        if "mapping" in settings:
            raise ConfigError("--map and --set mapping are both given", expected="one of them")
        settings["mapping"] = options.map
    generated = is_generator(options.workload)

    def make(seed: int, jobs: int | None) -> Workload:
        return resolve_workload(
            options.workload,
            cluster=cluster,
            jobs=jobs,
            load=options.load if generated else None,
            seed=seed,
            format=options.format,
            settings=settings,
        )

    if generated:
        return SearchWindows.generated(
            lambda seed: make(seed, options.window_jobs),
            cluster,
            seed=options.seed,
            train=options.train_windows,
            judged=options.windows,
        )
    trace = make(options.seed, None)
    return SearchWindows.of_trace(
        trace if options.load is None else scale_to_load(trace, cluster, options.load),
        cluster,
        train=options.train_windows,
        judged=options.windows,
        window_jobs=options.window_jobs,
        gap_seconds=parse_duration("--gap", options.gap),
    )


def resolved(options: TrainEs, space: SearchSpace) -> dict[str, Any]:
    """Return all settings that determine the result, for config.toml."""
    left_out = ("json", "out", "resume", "workers", "condition", "scheduler", "param")
    given = msgspec.structs.asdict(options)
    return {
        "algorithm": "es",
        **{name: value for name, value in given.items() if name not in left_out},
        "set": read_settings(options.set),
        "condition": list(options.condition),
        "text": space.text,
        "parameters": {p.name: [p.low, p.high, p.start, p.is_log] for p in space.parameters},
    }


def side_by_side(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of several searches: the scheduler is the best of them on VAL."""
    best = min(summaries, key=lambda one: float(one["val"]["loss"]))
    return {
        "algorithm": "es",
        "search": "both",
        "scheduler": best["scheduler"],
        "best_search": best["search"],
        "searches": {one["search"]: one for one in summaries},
    }
