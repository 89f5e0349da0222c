"""`berthline bench`: how fast the simulator is on this machine, and whether it is still correct."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from berthline.cli.bench.backlog import Backlog, measure_backlogs, show_backlogs
from berthline.cli.bench.compare import SEED as COMPARE_SEED
from berthline.cli.bench.compare import CompareReport, measure_compare, show_compare
from berthline.cli.bench.env import SEED as ENV_SEED
from berthline.cli.bench.env import (
    EnvSpeed,
    ThreadSpeed,
    measure_envs,
    measure_threads,
    show_envs,
)
from berthline.cli.bench.episodes import EpisodeSpeed, measure_episodes, show_episodes
from berthline.cli.bench.load import LoadSpeed, measure_loads, show_loads
from berthline.cli.bench.model import ModelSpeed, measure_model, show_model
from berthline.cli.bench.nets import SEED as NETS_SEED
from berthline.cli.bench.nets import NetSpeed, measure_nets, show_nets
from berthline.cli.bench.packing import find_pods, show_packing
from berthline.cli.bench.sample_jobs import SAMPLE_SEED
from berthline.cli.bench.snapshot import SEED as SNAPSHOT_SEED
from berthline.cli.bench.snapshot import (
    SnapshotReport,
    measure_decisions,
    measure_question,
    measure_resumed,
    show_snapshots,
)
from berthline.cli.bench.speed import (
    CONFIGURATIONS,
    MEMORY_GPUS,
    MEMORY_JOBS,
    SEED,
    YARDSTICK,
    YARDSTICK_CONFIGURATION,
    Speed,
    Yardstick,
    max_rss_mb,
    measure_speeds,
    measure_yardsticks,
)
from berthline.cli.bench.starts import StartCost, measure_starts, show_starts
from berthline.cli.bench.task_scores import SEED as TASKS_SEED
from berthline.cli.bench.task_scores import TasksReport, measure_tasks, show_tasks
from berthline.cli.bench.train import SEED as TRAIN_SEED
from berthline.cli.bench.train import (
    TrainReport,
    against_library,
    measure_training,
    show_training,
)
from berthline.cli.bench.verbs import SEED as VERBS_SEED
from berthline.cli.bench.verbs import VerbsReport, measure_verbs, show_verbs
from berthline.cli.machine import machine_line
from berthline.cli.options import Force, Json, Out, check_choice, parse_options, whole
from berthline.cli.output import new_table, number, print_facts, print_json, print_table, progress
from berthline.errors import ConfigError
from berthline.runs.run_directory import open_directory
from berthline.tasks.task_judge import EPISODES as TASK_EPISODES

if TYPE_CHECKING:
    from berthline.experiments.packing import Packing

PACKING_SEEDS = 10

Progress = Callable[[int, int, str], None]
"""Called with (parts done, parts in total, name of the next part)."""


class Bench(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Measure the simulator: jobs per CPU-second for several numbers of jobs and GPUs.

    Takes about a minute. It also checks mean waits against published ones.

    Examples:
      berthline bench sim
      berthline bench sim --quick --json
      berthline bench sim --long
      berthline bench load
      berthline bench model
      berthline bench packing --seeds 20 --figure packing.png
      berthline bench episodes
      berthline bench env
      berthline bench compare
      berthline bench nets
      berthline bench snapshot
      berthline bench suite --quick
      berthline bench tasks --task PickSmall --policy runs/ppo --policy sjf+easy
      berthline bench train
      berthline bench verbs
    """

    what: Annotated[Positional[str], arg(metavar="[WHAT]")] = "sim"
    """What to measure: sim, the simulator; load, loading trace files; model, the rest of the
    model; packing, placements; episodes, generated jobs; env, environments; compare, whole
    comparisons; nets, decisions of learned policies; snapshot, decisions on a
    state and runs that begin with one; suite, whole suites and what resuming takes; tasks, what is
    to be gained in the frozen tasks and what policies gain; train, PPO; verbs, whole commands."""
    quick: Annotated[bool, arg(help_behavior_hint="")] = False
    """Omit the runs of a million jobs, load short files, or use fewer jobs, orders, windows or
    episodes."""
    long: Annotated[bool, arg(help_behavior_hint="")] = False
    """sim: a million jobs also where many wait; takes two minutes more."""
    jobs: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--jobs", lowest=1),
        arg(help_behavior_hint="(default: 100000)"),
    ] = None
    """model: number of jobs."""
    seeds: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--seeds", lowest=1),
        arg(help_behavior_hint=f"(default: {PACKING_SEEDS})"),
    ] = None
    """packing: number of arrival orders of the pods."""
    pods: Annotated[
        str | None, arg(metavar="FILE", help_behavior_hint="(default: the fetched openb-2023)")
    ] = None
    """packing: a pod list of the openb trace; without it, similar pods are generated."""
    node_order: Annotated[
        str | None, arg(metavar="ORDER", help_behavior_hint="(default: listed)")
    ] = None
    """packing: the order of the nodes, which decides ties: listed, large-first or shuffled."""
    task: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="NAME", help_behavior_hint="(repeatable; default: all)"),
    ] = ()
    """tasks: a frozen task, such as PickSmall, or an environment with its default options, such as
    Pick-v0."""
    policy: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="RUN|SCHEDULER", help_behavior_hint="(repeatable; default: those shipped)"),
    ] = ()
    """tasks: what is compared with the rules."""
    episodes: Annotated[
        Annotated[int, msgspec.Meta(ge=2)] | None,
        whole("--episodes", lowest=2),
        arg(help_behavior_hint=f"(default: {TASK_EPISODES})"),
    ] = None
    """tasks: number of evaluation episodes."""
    figure: Annotated[str | None, arg(metavar="FILE.png", help_behavior_hint="(default: none)")] = (
        None
    )
    """packing: also draw the result: png, pdf or svg. Needs the extra `report`."""
    json: Json = False
    out: Out = None
    force: Force = False


class LoadReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the loading benchmark."""

    machine: str
    quick: bool
    loads: list[LoadSpeed]


class ModelReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the model benchmark."""

    machine: str
    quick: bool
    speeds: list[ModelSpeed]


class EpisodesReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the benchmark of generated jobs."""

    machine: str
    quick: bool
    speeds: list[EpisodeSpeed]


class EnvReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the environment benchmark."""

    machine: str
    quick: bool
    speeds: list[EnvSpeed]
    threads: ThreadSpeed
    starts: list[StartCost]


class NetsReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the network benchmark."""

    machine: str
    quick: bool
    speeds: list[NetSpeed]


class PackingReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the packing experiment."""

    machine: str
    fgd_wins: bool
    packing: Packing


class SimReport(msgspec.Struct, frozen=True, kw_only=True):
    """Results of the simulator benchmark."""

    machine: str
    quick: bool
    speeds: list[Speed]
    yardsticks: list[Yardstick]
    backlogs: list[Backlog]
    max_rss_mb: float | None
    agrees: bool


def main(argv: list[str]) -> int:
    """Run the verb."""
    options = parse_options(Bench, argv, verb="bench")
    check_choice("WHAT", options.what, _MEASURE)
    _check_options(options)
    directory = open_directory(options.out, verb="bench", force=options.force)
    machine = machine_line()
    if not options.json:
        print(machine)
    with progress("bench") as report_progress:
        found = _MEASURE[options.what](options, machine, report_progress)
    if directory is not None:
        directory.write(
            command=shlex.join(["berthline", "bench", *argv]),
            config=msgspec.structs.asdict(options),
            seed=found.seed,
            summary=found.report,
            metrics=found.metrics,
        )
    if options.json:
        print_json(found.report)
    else:
        found.show()
        print_facts(
            {
                "figure": options.figure or "",
                "results": str(directory.path) if directory else "",
            }
        )
    return found.code


def _check_options(options: Bench) -> None:
    """Reject options of other benchmarks.

    Raises:
        ConfigError: an option belongs to another benchmark.
    """
    for field, what in (
        ("long", "sim"),
        ("jobs", "model"),
        ("seeds", "packing"),
        ("pods", "packing"),
        ("node_order", "packing"),
        ("figure", "packing"),
        ("task", "tasks"),
        ("policy", "tasks"),
        ("episodes", "tasks"),
    ):
        option = "--" + field.replace("_", "-")
        if getattr(options, field) not in (None, (), False) and options.what != what:
            raise ConfigError(
                f"{option} does not apply to berthline bench {options.what}",
                expected=f"{option} with berthline bench {what}",
            )


class _Found(NamedTuple):
    """Results of a benchmark, how to show them, and the exit code."""

    report: msgspec.Struct
    metrics: Sequence[msgspec.Struct]
    seed: int
    show: Callable[[], None]
    code: int = 0


def _sim(options: Bench, machine: str, tell: Progress) -> _Found:
    if options.quick and options.long:
        raise ConfigError("--quick and --long exclude each other", expected="one of them")
    # First, while this process is small: a new process inherits its parent's high-water mark.
    max_rss = None if options.quick else max_rss_mb(MEMORY_JOBS, MEMORY_GPUS)
    speeds = list(measure_speeds(quick=options.quick, report=tell))
    yardsticks = measure_yardsticks()
    backlogs = list(measure_backlogs(quick=options.quick, long=options.long, report=tell))
    report = SimReport(
        machine=machine,
        quick=options.quick,
        speeds=speeds,
        yardsticks=yardsticks,
        backlogs=backlogs,
        max_rss_mb=max_rss,
        agrees=all(speed.agrees is not False for speed in speeds)
        and all(stick.agrees for stick in yardsticks),
    )
    metrics = [*speeds, *backlogs]
    return _Found(report, metrics, SEED, lambda: show(report), 0 if report.agrees else 1)


def _load(options: Bench, machine: str, tell: Progress) -> _Found:
    loads = list(measure_loads(quick=options.quick, report=tell))
    report = LoadReport(machine=machine, quick=options.quick, loads=loads)
    return _Found(report, loads, SAMPLE_SEED, lambda: show_loads(loads))


def _model(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = list(measure_model(quick=options.quick, jobs=options.jobs, report=tell))
    report = ModelReport(machine=machine, quick=options.quick, speeds=speeds)
    return _Found(report, speeds, SEED, lambda: show_model(speeds))


def _episodes(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = list(measure_episodes(quick=options.quick, report=tell))
    report = EpisodesReport(machine=machine, quick=options.quick, speeds=speeds)
    return _Found(report, speeds, SEED, lambda: show_episodes(speeds))


def _env(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = measure_envs(quick=options.quick, report=tell)
    threads = measure_threads(quick=options.quick)
    starts = measure_starts(quick=options.quick)
    report = EnvReport(
        machine=machine, quick=options.quick, speeds=speeds, threads=threads, starts=starts
    )

    def show() -> None:
        show_envs(speeds, threads)
        show_starts(starts)

    return _Found(report, [*speeds, threads, *starts], ENV_SEED, show)


def _compare(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds, agrees = measure_compare(quick=options.quick, report=tell)
    report = CompareReport(machine=machine, quick=options.quick, speeds=speeds, agrees=agrees)
    return _Found(
        report,
        speeds,
        COMPARE_SEED,
        lambda: show_compare(speeds, agrees=agrees),
        0 if agrees else 1,
    )


def _nets(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = list(measure_nets(quick=options.quick, report=tell))
    report = NetsReport(machine=machine, quick=options.quick, speeds=speeds)
    return _Found(report, speeds, NETS_SEED, lambda: show_nets(speeds))


def _snapshot(options: Bench, machine: str, tell: Progress) -> _Found:
    tell(0, 3, "decisions")
    decisions = measure_decisions(quick=options.quick)
    tell(1, 3, "resumed runs")
    resumed = measure_resumed(quick=options.quick)
    tell(2, 3, "a learned policy")
    policy = measure_question(quick=options.quick)
    report = SnapshotReport(
        machine=machine,
        quick=options.quick,
        decisions=decisions,
        resumed=resumed,
        policy=policy,
    )
    return _Found(report, [*decisions, *resumed], SNAPSHOT_SEED, lambda: show_snapshots(report))


def _tasks(options: Bench, machine: str, tell: Progress) -> _Found:
    found = list(
        measure_tasks(
            options.task,
            options.policy,
            episodes=options.episodes,
            quick=options.quick,
            report=tell,
        )
    )
    report = TasksReport(machine=machine, quick=options.quick, tasks=found)
    return _Found(report, found, TASKS_SEED, lambda: show_tasks(found))


def _train(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = list(measure_training(quick=options.quick, report=tell))
    report = TrainReport(
        machine=machine,
        quick=options.quick,
        speeds=speeds,
        against_library=against_library(speeds),
    )
    return _Found(report, speeds, TRAIN_SEED, lambda: show_training(report))


def _verbs(options: Bench, machine: str, tell: Progress) -> _Found:
    speeds = list(measure_verbs(quick=options.quick, report=tell))
    report = VerbsReport(machine=machine, quick=options.quick, speeds=speeds)
    return _Found(report, speeds, VERBS_SEED, lambda: show_verbs(speeds))


def _suite(options: Bench, machine: str, tell: Progress) -> _Found:
    from berthline.cli.bench.suite import SEED as SUITE_SEED
    from berthline.cli.bench.suite import measure_suites, show_suites

    report = measure_suites(machine=machine, quick=options.quick, report=tell)
    return _Found(report, report.suites, SUITE_SEED, lambda: show_suites(report))


def _packing(options: Bench, machine: str, tell: Progress) -> _Found:
    from berthline.experiments.packing import run_packing
    from berthline.report.figures.packing_figure import check_figure_file, draw_packing

    figure = None
    if options.figure is not None:
        figure = check_figure_file(options.figure, needed_for="--figure")
    pods = find_pods(options.pods)
    seeds = options.seeds or (2 if options.quick else PACKING_SEEDS)
    packing = run_packing(pods, seeds=seeds, node_order=options.node_order or "listed", report=tell)
    if figure is not None:
        draw_packing(packing, figure)
    report = PackingReport(machine=machine, fgd_wins=packing.fgd_wins, packing=packing)

    def show_and_part() -> None:
        show_packing(packing)
        print()

    return _Found(report, packing.placements, 0, show_and_part, 0 if packing.is_as_published else 1)


_MEASURE: dict[str, Callable[[Bench, str, Progress], _Found]] = {
    "sim": _sim,
    "load": _load,
    "model": _model,
    "packing": _packing,
    "episodes": _episodes,
    "env": _env,
    "compare": _compare,
    "nets": _nets,
    "snapshot": _snapshot,
    "suite": _suite,
    "tasks": _tasks,
    "train": _train,
    "verbs": _verbs,
}


def show(report: SimReport) -> None:
    """Print the report as text."""
    print("\nmillion jobs per CPU-second, only the call of simulate:\n")
    names = list(CONFIGURATIONS)
    table = new_table("jobs, GPUs", *(name.replace(",", "").replace(" ", "\n") for name in names))
    cells: dict[tuple[int, int], dict[str, float]] = {}
    for speed in report.speeds:
        row = cells.setdefault((speed.jobs, speed.gpus), {})
        row[speed.configuration] = speed.jobs_per_cpu_second
    for (jobs, gpus), speeds in cells.items():
        table.add_row(f"{jobs:,}, {gpus:,}", *(f"{speeds[name] / 1e6:.2f}" for name in names))
    print_table(table)
    jobs, gpus = YARDSTICK
    print(f"\nyardsticks: {YARDSTICK_CONFIGURATION}, {jobs:,} jobs, {gpus:,} GPUs:\n")
    table = new_table("program", "jobs per CPU-second", "mean wait, s", "native is faster by")
    native = report.yardsticks[0].jobs_per_cpu_second
    for stick in report.yardsticks:
        table.add_row(
            stick.program,
            number(stick.jobs_per_cpu_second),
            number(stick.mean_wait, 3),
            f"{native / stick.jobs_per_cpu_second:,.1f} x",
        )
    print_table(table)
    print()
    checked = [speed for speed in report.speeds if speed.agrees is not None]
    wrong = [speed for speed in checked if not speed.agrees]
    for speed in wrong:
        print(
            f"WRONG: {speed.configuration}, {speed.jobs:,} jobs, {speed.gpus:,} GPUs: mean wait "
            f"{speed.mean_wait:.3f} s, published {speed.published_mean_wait} s"
        )
    if not wrong:
        print(f"mean waits equal the published ones in all {len(checked)} cases that have one")
    if report.max_rss_mb is not None:
        print(f"{MEMORY_JOBS:,} jobs took at most {report.max_rss_mb:,.0f} MB, Python included")
    show_backlogs(report.backlogs)
