"""`berthline watch`: play a run in the terminal, or write it as a film."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, arg

from berthline.cli.compare.command import read_schedulers
from berthline.cli.conditions import ConditionOption, with_conditions
from berthline.cli.options import (
    Format,
    Load,
    OptionalClusterName,
    Seed,
    Settings,
    check_choice,
    moment,
    parse_options,
    positive,
    whole,
)
from berthline.cli.output import counted, note, print_facts, progress
from berthline.cli.traces.file import Map, Replace, check_out, format_options
from berthline.cli.visible_output import visible
from berthline.errors import ConfigError
from berthline.number_text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from berthline.deploy.watched_run import WatchedRun
    from berthline.view.scene import Scene

JOBS = 100
"""Of a generator, if nothing says how many."""
FRAMES = 160
"""Of a run, if `--every` is not given."""
MOST_RUNS = 4


class Watch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Play a run in the terminal, or write it as GIF or MP4.

    With --against, the same jobs run under other schedulers, side by side.

    A learned policy plays the jobs of its training, unless told otherwise.

    Examples:
      berthline watch sjf+easy
      berthline watch runs/ppo --against fcfs --out film.gif
      berthline watch runs/ppo --step
      berthline watch fcfs+easy --workload trace.swf --every 10m --max-steps 20
    """

    run: Annotated[Positional[str], arg(metavar="RUN|SCHEDULER")]
    """A scheduler, a learned policy, or a run directory: of sim, whose log is shown as it is, or of
    another verb, whose scheduler runs again."""
    against: Annotated[str | None, arg(metavar="A,B", help_behavior_hint="(default: none)")] = None
    """Schedulers to show beside it, separated by commas."""
    workload: Annotated[
        str | None,
        arg(metavar="WORKLOAD", help_behavior_hint="(default: that of the run, or synthetic)"),
    ] = None
    """A trace file or a generator: berthline traces list formats | generators."""
    cluster: OptionalClusterName = None
    knowledge: Annotated[
        str | None,
        arg(metavar="WHAT", help_behavior_hint="(default: that of the run, or estimate)"),
    ] = None
    """What schedulers know about run times: none, estimate, predicted or exact."""
    condition: ConditionOption = ()
    jobs: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--jobs", lowest=1),
        arg(
            help="Number of jobs to generate, or to take from the start of a file.",
            help_behavior_hint=f"(default: an episode of the run, or {JOBS})",
        ),
    ] = None
    load: Load = None
    seed: Seed = 0
    set: Settings = ()
    format: Format = None
    map: Map = None
    every: Annotated[
        Annotated[float, msgspec.Meta(gt=0)] | None,
        moment("--every"),
        arg(
            metavar="TIME",
            help="Simulated time between two frames: 30s, 5m, 1h.",
            help_behavior_hint=f"(default: {FRAMES} frames until the last job starts)",
        ),
    ] = None
    fps: Annotated[
        Annotated[float, msgspec.Meta(gt=0)],
        positive("--fps"),
        arg(help="Speed: frames per second."),
    ] = 10.0
    step: Annotated[bool, arg(help_behavior_hint="")] = False
    """A frame for each decision, not for each stretch of time: with a learned policy, each question
    and how likely its answers are. In a terminal, Enter shows the next."""
    max_steps: Annotated[
        Annotated[int, msgspec.Meta(ge=1)] | None,
        whole("--max-steps", lowest=1),
        arg(help="Show at most this many frames.", help_behavior_hint="(default: all)"),
    ] = None
    theme: Annotated[str, arg(metavar="NAME")] = "light"
    """Of a film: light or dark."""
    out: Annotated[
        str | None, arg(metavar="FILE", help_behavior_hint="(default: the terminal)")
    ] = None
    """Write a film instead: .gif or .mp4."""
    force: Replace = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    from berthline.view.film import SUFFIXES, check_film, write_film
    from berthline.view.scene_picture import THEMES, scene_picture

    options = parse_options(Watch, argv, verb="watch")
    check_choice("--theme", options.theme, THEMES)
    out = None
    if options.out is not None:
        out = check_out(options.out, suffixes=SUFFIXES, force=options.force)
        check_film(out)
    runs = _runs(options)
    frames = list(_frames(runs, options))
    if not any(scene.so_far.mean_wait for scene in _scenes(runs, (frames[-1][0], None))):
        note("no job waits; --load 1.5 or more gives longer queues")
    if out is None:
        from berthline.cli.watch.terminal import play

        play((_scenes(runs, frame) for frame in frames), fps=options.fps, steps=options.step)
        return 0
    has_notes = any(run.decisions for run in runs)
    with progress("drawing") as report:

        def pictures() -> Iterator[Any]:
            for number, frame in enumerate(frames):
                report(number, len(frames), counted(number, "picture"))
                scenes = _scenes(runs, frame)
                yield scene_picture(scenes, theme=options.theme, notes=has_notes)

        shown = write_film(pictures(), out, fps=options.fps)
    size = out.stat().st_size / 1e6
    print_facts({"film": f"{visible(str(out))}, {counted(shown, 'picture')}, {size:.2f} MB"})
    for scene in _scenes(runs, frames[-1]):
        print_facts({"mean wait": f"{duration(scene.so_far.mean_wait)}, {visible(scene.title)}"})
    return 0


Frame = tuple[float, int | None]
"""An instant, and for a decision of the first run its number."""


def _frames(runs: Sequence[WatchedRun], options: Watch) -> Iterator[Frame]:
    """Yield the instants to show: at equal distances, or one for each decision."""
    frames: list[Frame]
    if options.step:
        first = runs[0]
        numbers = range(len(first.decisions)) if first.decisions else None
        instants = first.instants()
        frames = list(zip(instants, numbers or [None] * len(instants), strict=True))
    else:
        last = max(run.last_start for run in runs)
        every = options.every or max(last / FRAMES, 1e-6)
        frames = [(number * every, None) for number in range(int(last / every))]
        frames.append((last, None))
    yield from frames[: options.max_steps]


def _scenes(runs: Sequence[WatchedRun], frame: Frame) -> list[Scene]:
    """Return a scene of each run, all of the same instant."""
    now, number = frame
    first, *others = runs
    shown = first.scene(now) if number is None else first.scene_of(number)
    return [shown, *(run.scene(now) for run in others)]


def _runs(options: Watch) -> list[WatchedRun]:
    """Return the runs to show.

    Raises:
        ConfigError: the options contradict each other, or too many runs.
    """
    from berthline.cli.run_source import RunOptions, read_result
    from berthline.deploy.watched_run import watch_run, watched_log
    from berthline.evaluate.compare.run_argument import read_run_argument
    from berthline.policies.learned import Learned
    from berthline.policies.scheduler import Scheduler

    rivals = read_schedulers(options.against) if options.against else []
    if 1 + len(rivals) > MOST_RUNS:
        raise ConfigError(
            f"{1 + len(rivals)} runs", where="--against", expected=f"at most {MOST_RUNS}"
        )
    if _is_sim(options.run):
        _check_only_of_a_log(options)
        result = read_result(options.run, RunOptions())
        workload, cluster, knowledge = result.workload, result.cluster, result.knowledge
        title = f"{result.scheduler}"
        runs = [watched_log(result.log, workload, cluster, knowledge=knowledge, title=title)]
        seed = result.seed
    else:
        judged = read_run_argument(options.run)
        workload, cluster, knowledge = _episode(options, judged.settings)
        runs, seed = [], options.seed
        rivals = [judged.scheduler, *rivals]
    with progress("simulating") as report:
        for text in rivals:
            scheduler = Learned.find(text) or Scheduler.parse(text)
            runs.append(
                watch_run(
                    scheduler,
                    workload,
                    cluster,
                    knowledge=knowledge,
                    seed=seed,
                    title=_title(text),
                    progress=lambda n: report(n, len(workload), counted(n, "job")),
                )
            )
    return runs


def _title(scheduler: str) -> str:
    """Return a scheduler's name: of a policy, the end of its path without its hash."""
    path, mark, rest = scheduler.partition("#")
    if not mark:
        return scheduler
    rules = rest[min((rest.index(c) for c in "+@" if c in rest), default=len(rest)) :]
    return Path(path).name + rules


def _episode(options: Watch, settings: dict[str, Any]) -> tuple[Any, Any, str]:
    """Return the jobs, the nodes and the knowledge, from the options or else from the run."""
    from berthline.sim.inputs import KNOWLEDGE
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.stated_cluster import default_cluster
    from berthline.traces.workload_argument import is_generator, resolve_workload

    own = settings if options.workload is None else {}
    named = options.workload or settings.get("workload", "synthetic")
    knowledge = options.knowledge or settings.get("knowledge", "estimate")
    check_choice("--knowledge", knowledge, KNOWLEDGE)
    given = (
        options.cluster or settings.get("cluster") or default_cluster(named, options.format, note)
    )
    cluster = with_conditions(resolve_cluster(given, note), options.condition)
    jobs = options.jobs or own.get("window_jobs")
    if jobs is None and isinstance(named, str) and is_generator(named):
        jobs = JOBS
    workload = resolve_workload(
        named,
        cluster=cluster,
        jobs=jobs,
        load=options.load or own.get("load"),
        seed=options.seed,
        format=options.format,
        settings={**own.get("set", {}), **format_options(options.map, options.set)},
    )
    return workload, cluster, knowledge


def _is_sim(source: str) -> bool:
    """Whether an argument is a run directory of `berthline sim`."""
    from berthline.cli.run_source import is_run_directory
    from berthline.runs.open_run import open_run

    return is_run_directory(source) and open_run(source).kind == "sim"


def _check_only_of_a_log(options: Watch) -> None:
    """Refuse options that a recorded log determines."""
    fields = {field.name: field.default for field in msgspec.structs.fields(options)}
    for name in ("workload", "cluster", "knowledge", "condition", "jobs", "load", "set", "seed"):
        if getattr(options, name) != fields[name]:
            raise ConfigError(
                f"--{name} is given, but the run directory determines it",
                where=options.run,
                hint="omit it, or name a scheduler to watch another run",
            )
