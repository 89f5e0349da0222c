"""train: learn a policy in an environment, in a run directory.

Nothing here imports torch before a run begins, so wrong names are refused without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.engines.engine import LOCAL, Engine
from berthline.errors import ConfigError, MissingExtraError, unknown_name
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.learn.training.events import Callback, check_callback
from berthline.learn.training.training_workers import TrainingTask, train_in_workers
from berthline.runs.growing_files import write_json
from berthline.runs.run_layout import CHECKPOINTS, CONFIG, SEED_PREFIX, SUMMARY
from berthline.runs.run_output import RunOutput
from berthline.runs.training_directory import (
    begin_run,
    check_same_settings,
    extend,
    open_training,
    undone_if_refused,
)
from berthline.sealed_json import damaged
from berthline.text_or_path import text_of

if TYPE_CHECKING:
    from berthline.learn.training.trainer import Progress, TrainConfig
    from berthline.text_or_path import TextOrPath

ENVIRONMENT = "Pick"
EXPERT = "sjf"

Watch = Callable[[str], AbstractContextManager[Callable[["Progress"], None]]]
"""Given the name of a run, returns a context with a function that shows its progress."""

WatchAll = Callable[[str, int], AbstractContextManager[Callable[[str, "Progress"], None]]]
"""Given a name and the number of runs, returns a context with a function that shows their progress:
it gets the directory of a run, and how far that is."""


@dataclasses.dataclass(frozen=True)
class TrainingResult:
    """The result of `train`.

    Attributes:
        directory: the run directory, which is a scheduler: `simulate(jobs, cluster, directory)`.
        summary: the contents of summary.json; None = the run was stopped and can be resumed.
    """

    directory: Path
    summary: dict[str, Any] | None


def train(
    algorithm: str,
    *,
    out: TextOrPath | RunOutput,
    env: str | None = None,
    preset: str | None = None,
    env_options: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    expert: str | None = None,
    network: str | None = None,
    hidden: Sequence[int] | None = None,
    steps: int | None = None,
    envs: int | None = None,
    threads: int = 1,
    seed: int = 0,
    seeds: int = 1,
    validate_every: int | None = None,
    episodes: int | None = None,
    patience: int = 0,
    least_gain: float = 0.0,
    metric: str | None = None,
    save_every: int = 0,
    keep: int = 0,
    test_seeds: Sequence[int] = (),
    against: Sequence[str] = (),
    init_from: TextOrPath | None = None,
    resume: bool = False,
    must_stop: Callable[[], bool] | None = None,
    device: str = "cpu",
    workers: int = 1,
    engine: Engine | None = None,
    watch: Watch | None = None,
    watch_all: WatchAll | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    remark: Callable[[str], None] | None = None,
) -> TrainingResult:
    """Train a policy, keep the best on VAL episodes, evaluate it on held-out REPORT episodes.

    The same as `berthline train`, but for `es`. Needs the extra `train`.

    Args:
        algorithm: the algorithm: `ppo`, `bc`, ...
        out: the run directory: settings, metrics, curve.csv, checkpoints, summary.
        env: the environment: Pick, Gate, ...; None = that of the preset, or Pick.
        preset: options of a reference system.
        env_options: options of the environment, such as `{"load": (0.9, 1.3)}`.
        config: settings of the algorithm, such as `{"learning_rate": 0.0005}`.
        expert: for bc: the scheduler to learn from; None = sjf.
        network: mlp, kernel, attention, cross or hosts: how jobs and nodes are processed; None =
            that of the preset's recipe, or kernel.
        hidden: widths of the network's layers; None = those of the preset's recipe, or (32, 16).
        steps: environment steps in all, rounded up to whole iterations; None = a few minutes.
        envs: environments that step together; None = those of the preset's recipe, or 256.
        threads: threads of torch and of the environments.
        seed: of everything random.
        seeds: number of seeds, from `seed` on; each is trained in its own directory.
        validate_every: steps between validations; None = a fifth of `steps`.
        episodes: episodes of VAL; REPORT has twice as many. None = enough to tell the best rule
            from the next: 64 to 128.
        patience: stop after this number of validations without improvement; 0 = never.
        least_gain: smallest improvement that counts, as a share of the absolute best return.
        metric: what rivals and verdicts are chosen by: jct_mean, jct_p99, wait_mean,
            bounded_slowdown_mean, makespan or utilization; None = what the reward is about.
        save_every: steps between checkpoints that are kept, `checkpoints/step-STEP`; 0 = none.
        keep: how many of them are kept, the newest; 0 = all.
        test_seeds: the episodes of REPORT by their seeds, the same in every run; empty = the first
            2 x `episodes`.
        against: the schedulers to compare with; empty = those of the preset, or of the seat.
        init_from: begin from the policy of another run or checkpoint.
        resume: resume an interrupted run in `out`, or any run with more `steps`; the other
            parameters must be the same.
        must_stop: called repeatedly; once it returns true, the run is saved and stops.
        device: where networks encode observations: cpu, cuda or cuda:NUMBER. Environments and
            losses stay on the CPU.
        workers: how many seeds are trained at once, each by a process of its own.
        engine: where these processes are, such as `Engine("ray", "10.0.0.1:6379")`; None = on this
            machine.
        watch: shows the progress of each run.
        watch_all: shows the progress of several runs that are trained at once.
        callbacks: called with a `berthline.training.TrainingEvent` at the beginning, after each
            iteration, validation and checkpoint, and at the end; one that returns False stops the
            run, which can then be resumed.
        remark: called with sentences about defaults that were changed to suit a short trace, and
            about settings that do not suit the episodes.

    Raises:
        BerthlineError: an unknown name, a wrong value, or a directory that must not be replaced.
    """
    if algorithm == "es":
        raise ConfigError("es does not train a network", hint="use berthline.tune for es")
    if algorithm not in ALGORITHMS:
        what, expected, hint = unknown_name("algorithm", algorithm, ALGORITHMS)
        raise ConfigError(what, expected=expected, hint=hint)
    output = RunOutput.of(out, "berthline.train(...)")
    if output is None:
        raise ConfigError("`out` is missing", expected="the directory of the run")
    wanted = train_config(
        algorithm,
        env=env,
        preset=preset,
        env_options=env_options,
        config=config,
        expert=expert,
        network=network,
        hidden=hidden,
        steps=steps,
        envs=envs,
        threads=threads,
        seed=seed,
        seeds=seeds,
        validate_every=validate_every,
        episodes=episodes,
        patience=patience,
        least_gain=least_gain,
        metric=metric,
        save_every=save_every,
        keep=keep,
        test_seeds=test_seeds,
        against=against,
        remark=remark,
    )
    path = Path(text_of("out", output.path))
    runs = _Runs(
        command=output.command,
        init_from=None if init_from is None else Path(init_from),
        must_stop=must_stop or (lambda: False),
        watch=watch or _unwatched,
        callbacks=_checked_callbacks(callbacks),
        device=device,
        remark=remark or (lambda _: None),
    )
    engine = engine or Engine()
    at_once = workers if engine.name == LOCAL else engine.count(None if workers == 1 else workers)
    if (at_once > 1 or engine.name != LOCAL) and seeds == 1:
        raise ConfigError(
            "one training run has one worker",
            where="`workers` or `engine`",
            expected="`seeds`, more than 1",
        )
    if (at_once > 1 or engine.name != LOCAL) and runs.callbacks:
        raise ConfigError("callbacks are called in this process", expected="one worker")
    with undone_if_refused(path, begins=not resume):
        if at_once > 1 or engine.name != LOCAL:
            found = runs.at_once(
                wanted, path, seeds, resume=resume, engine=engine, workers=at_once,
                watch=watch_all or _all_unwatched,
            )  # fmt: skip
            return TrainingResult(path, found)
        if seeds > 1:
            return TrainingResult(path, runs.with_seeds(wanted, path, seeds, resume=resume))
        open_training(path, runs.kept(wanted), command=output.command, seed=seed, resume=resume)
        return TrainingResult(path, runs.one(wanted, path))


def train_config(
    algorithm: str,
    *,
    env: str | None = None,
    preset: str | None = None,
    env_options: Mapping[str, Any] | None = None,
    config: Mapping[str, Any] | None = None,
    expert: str | None = None,
    network: str | None = None,
    hidden: Sequence[int] | None = None,
    steps: int | None = None,
    envs: int | None = None,
    threads: int = 1,
    seed: int = 0,
    seeds: int = 1,
    validate_every: int | None = None,
    episodes: int | None = None,
    patience: int = 0,
    least_gain: float = 0.0,
    metric: str | None = None,
    save_every: int = 0,
    keep: int = 0,
    test_seeds: Sequence[int] = (),
    against: Sequence[str] = (),
    remark: Callable[[str], None] | None = None,
) -> TrainConfig:
    """Return the configuration of a run with every setting; the parameters are those of `train`.

    Raises:
        ConfigError: an unknown name or a wrong value.
        MissingExtraError: torch is not installed.
    """
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "train", "berthline train")
    from berthline.env.option_types import whole
    from berthline.env.options import resolve_options
    from berthline.env.rewards import resolve_reward
    from berthline.env.seat_defaults import with_defaults
    from berthline.learn.algorithms.algorithm_table import config_of
    from berthline.learn.networks.networks import NETWORKS, NetworkConfig
    from berthline.learn.training.defaults import (
        CREDIT,
        default_settings,
        default_steps,
        fit_to_trace,
        is_usually_credited,
        on_training_part,
    )
    from berthline.learn.training.recipes import (
        recipe_of,
        settings_for_credit,
        settings_for_reward,
    )
    from berthline.learn.training.trainer import TrainConfig, check_config

    whole(1).or_none().take("steps", steps)
    whole(1).or_none().take("envs", envs)
    whole(1).take("seeds", seeds)
    whole(1).or_none().take("validate_every", validate_every)
    whole(2).or_none().take("episodes", episodes)
    whole(0).take("patience", patience)
    given = dict(env_options or {})
    if preset is not None:
        given["preset"] = preset
    env, task_options = _task(env)
    given = {**task_options, **given}
    seat = _seat(env, given.get("preset"), ALGORITHMS[algorithm].seat)
    given = on_training_part(with_defaults(seat, given))
    given, remarks = fit_to_trace(seat, given, env_options or {})
    if remark is not None:
        for sentence in remarks:
            remark(sentence)
    if expert is not None and algorithm != "bc":
        raise ConfigError(f"{algorithm} does not learn from an expert", hint="use the algorithm bc")
    if algorithm == "bc" and (expert is not None or "experts" not in given):
        given["experts"] = (expert or EXPERT,)
    resolved = resolve_options(seat, given)
    if "credit" not in given and is_usually_credited(algorithm, seat, resolved):
        given["credit"] = CREDIT
        resolved = resolve_options(seat, given)
    recipe = recipe_of(resolved.preset, algorithm)
    network = network or recipe.network
    if network not in NETWORKS:
        what, expected, hint = unknown_name("network", network, NETWORKS)
        raise ConfigError(what, expected=expected, hint=hint)
    steps = steps or recipe.steps or default_steps(algorithm, seat)
    known = tuple(msgspec.to_builtins(config_of(algorithm, {})))
    settings = {
        **default_settings(algorithm, seat),
        **settings_for_reward(resolved.reward, resolved.reward_weights, known),
        **settings_for_credit(algorithm, resolved.credit, known),
        **recipe.settings,
        **(config or {}),
    }
    found = TrainConfig(
        algorithm=algorithm,
        seat=seat,
        options=given,
        settings=msgspec.to_builtins(config_of(algorithm, settings)),
        network=NetworkConfig(
            kind=network, hidden=tuple(recipe.hidden if hidden is None else hidden)
        ),
        num_envs=envs or recipe.envs,
        steps=steps,
        seed=seed,
        validate_every=validate_every or max(1, steps // 5),
        val_episodes=episodes,
        report_episodes=None if episodes is None else 2 * episodes,
        patience=patience,
        least_gain=least_gain,
        threads=threads,
        metric=metric or resolve_reward(resolved.reward, resolved.reward_weights).metric,
        save_every=save_every,
        keep=keep,
        test_seeds=tuple(test_seeds),
        against=tuple(against),
    )
    check_config(found, seeds=seeds)
    return found


def _task(env: str | None) -> tuple[str | None, Mapping[str, Any]]:
    """Return the seat's environment and all options of a frozen task; else the name itself."""
    from berthline.env.registration import SEATS
    from berthline.tasks.task_table import TASKS

    task = TASKS.get((env or "").removeprefix("berthline/"))
    if task is None:
        return env, {}
    return next(name for name, seat in SEATS.items() if seat == task.seat), task.options


def _seat(env: str | None, preset: Any, own: str) -> str:
    """Return the seat of an environment, else of a preset, else of the algorithm, else Pick's."""
    from berthline.env.presets import PRESETS
    from berthline.env.registration import SEATS, seat_of

    if preset is not None and preset not in PRESETS:
        what, expected, hint = unknown_name("preset", str(preset), PRESETS)
        raise ConfigError(what, where="`preset`", expected=expected, hint=hint)
    if env is None:
        return (own or SEATS[ENVIRONMENT]) if preset is None else PRESETS[preset].seat
    return seat_of(env)


def train_seed(
    config: TrainConfig,
    path: Path,
    *,
    command: str,
    init_from: str | None = None,
    device: str = "cpu",
    report: Callable[[Progress], None],
    remark: Callable[[str], None],
) -> dict[str, Any]:
    """Train one of several runs in its directory, unless that is done, and return its summary.

    Args:
        config: its settings.
        path: its directory; an unfinished run there goes on from its last checkpoint.
        command: the command line, for meta.json.
        init_from: the policy that it begins with.
        device: where networks encode observations.
        report: called with its progress.
        remark: called with sentences about its settings.

    Raises:
        BerthlineError: the directory holds a run with other settings, or cannot be written.
    """
    runs = _Runs(
        command=command,
        init_from=None if init_from is None else Path(init_from),
        must_stop=lambda: False,
        watch=lambda _: contextlib.nullcontext(report),
        callbacks=(),
        device=device,
        remark=remark,
    )
    summary = runs.seed(config, path)
    assert summary is not None  # nothing stops it
    return summary


@dataclasses.dataclass(frozen=True)
class _Runs:
    """Trains in directories; the attributes are shared by all runs of a call."""

    command: str
    init_from: Path | None
    must_stop: Callable[[], bool]
    watch: Watch
    callbacks: Sequence[Callback]
    device: str
    remark: Callable[[str], None]

    def kept(self, config: TrainConfig) -> dict[str, Any]:
        """Return the contents of config.toml."""
        found: dict[str, Any] = msgspec.to_builtins(config)
        for table in ("options", "settings"):
            # TOML has no null, and an option that is not there would get its default again.
            found[table] = {k: "null" if v is None else v for k, v in found[table].items()}
        return {**found, "init_from": None if self.init_from is None else str(self.init_from)}

    def one(self, config: TrainConfig, path: Path) -> dict[str, Any] | None:
        """Train in an opened directory; None = the run was stopped."""
        from berthline.learn.training.checkpoint import find
        from berthline.learn.training.trainer import Trainer

        with self.watch(f"{config.algorithm} on {config.seat}, seed {config.seed}") as report:
            trainer = Trainer(
                config,
                path,
                # It may have been stopped before the first checkpoint.
                resume=find(path / CHECKPOINTS, "last") is not None,
                init_from=self.init_from,
                device=self.device,
            )
            return trainer.run(report, self.must_stop, self.callbacks, self.remark)

    def with_seeds(
        self, config: TrainConfig, out: Path, seeds: int, *, resume: bool
    ) -> dict[str, Any] | None:
        """Train one seed after another; complete seeds are kept."""
        self._open(config, out, seeds, resume=resume)
        summaries: list[dict[str, Any]] = []
        for seed in range(config.seed, config.seed + seeds):
            own = msgspec.structs.replace(config, seed=seed)
            found = self.seed(own, out / f"{SEED_PREFIX}{seed}")
            if found is None:
                return None
            summaries.append(found)
        return self._joined(out, summaries)

    def at_once(
        self,
        config: TrainConfig,
        out: Path,
        seeds: int,
        *,
        resume: bool,
        engine: Engine,
        workers: int,
        watch: WatchAll,
    ) -> dict[str, Any] | None:
        """Train several seeds at once; complete seeds are kept."""
        engine.connect()
        self._open(config, out, seeds, resume=resume)
        tasks = [
            TrainingTask(
                str((out / f"{SEED_PREFIX}{seed}").resolve()),
                msgspec.structs.replace(config, seed=seed),
            )
            for seed in range(config.seed, config.seed + seeds)
        ]
        with watch(f"{config.algorithm} on {config.seat}", len(tasks)) as report:
            summaries = train_in_workers(
                tasks,
                parent=out,
                engine=engine,
                workers=min(workers, seeds),
                command=self.command,
                init_from="" if self.init_from is None else str(self.init_from),
                device=self.device,
                must_stop=self.must_stop,
                report=lambda task, progress: report(task.path, progress),
                remark=self.remark,
            )
        return None if summaries is None else self._joined(out, summaries)

    def seed(self, config: TrainConfig, path: Path) -> dict[str, Any] | None:
        """Train one of several seeds, unless that is done; None = the run was stopped."""
        if (path / CONFIG).is_file() and extend(path, self.kept(config)):
            pass
        elif (path / SUMMARY).is_file():
            return _summary_of_seed(path / SUMMARY)
        if (path / CONFIG).is_file():
            check_same_settings(path, self.kept(config))
        else:
            begin_run(path, self.kept(config), command=self.command, seed=config.seed)
        return self.one(config, path)

    def _open(self, config: TrainConfig, out: Path, seeds: int, *, resume: bool) -> None:
        kept = {**self.kept(config), "seeds": seeds}
        open_training(out, kept, command=self.command, seed=config.seed, resume=resume)

    def _joined(self, out: Path, summaries: list[dict[str, Any]]) -> dict[str, Any]:
        from berthline.learn.training.seeds import summary_of_seeds

        summary = summary_of_seeds(summaries)
        write_json(out / SUMMARY, summary)
        return summary


def _summary_of_seed(file: Path) -> dict[str, Any]:
    """Return the summary of a seed that is complete.

    Raises:
        ConfigError: the file is not a summary.
    """
    try:
        summary: dict[str, Any] = json.loads(file.read_bytes())
        _ = summary["report"]["mean_jct_of_episodes"]["policy"], summary["steps"], summary["seed"]
    except (ValueError, LookupError, TypeError) as error:
        hint = "delete the file, and resume: the evaluation of that seed is made again"
        raise damaged("the summary of a seed", str(error), where=str(file), hint=hint) from None
    return summary


def _checked_callbacks(given: Callback | Sequence[Callback]) -> Sequence[Callback]:
    found = given if isinstance(given, Sequence) else (given,)
    for callback in found:
        check_callback(callback)
    return found


def _all_unwatched(_: str, __: int) -> AbstractContextManager[Callable[[str, Progress], None]]:
    return contextlib.nullcontext(lambda *_: None)


def _unwatched(_: str) -> AbstractContextManager[Callable[[Progress], None]]:
    return contextlib.nullcontext(lambda _: None)
