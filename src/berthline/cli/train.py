"""`berthline train`: learn a policy in an environment, and say what it is worth."""

from __future__ import annotations

import importlib.util
import json
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from berthline.cli.options import Json, Seed, check_choice, parse_options, read_settings, whole
from berthline.cli.output import note, print_facts, print_json
from berthline.cli.train_directory import (
    SUMMARY,
    begin_run,
    check_same_settings,
    open_run,
    undone_if_refused,
)
from berthline.errors import ConfigError, MissingExtraError, unknown_name
from berthline.learn.algorithms import ALGORITHMS
from berthline.policies.learned import SEED_PREFIX

if TYPE_CHECKING:
    from berthline.learn.trainer import TrainConfig

ENVIRONMENT = "Pick"
EXPERT = "sjf"

Whole = Annotated[int, msgspec.Meta(ge=1)]


class Train(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Train a policy, keep the best on VAL episodes, measure it on REPORT episodes.

    SIGINT and SIGTERM save and leave; --resume goes on with the same bits.

    Needs the extra `train`.

    Examples:
      berthline train ppo --out runs/ppo
      berthline train ppo --env Gate --set load=1.2 --seeds 3 --out runs/gate
      berthline train ppo --steps 40000 --envs 64 --out runs/short --json
      berthline train bc --expert sjf+easy --out runs/bc
      berthline train ppo --check
      berthline train es --space gate --budget 15
    """

    algorithm: Annotated[
        Positional[str], arg(metavar="ALGORITHM", help=f"What learns: {', '.join(ALGORITHMS)}.")
    ]
    env: Annotated[
        str | None,
        arg(metavar="ID", help_behavior_hint=f"(default: that of the preset, or {ENVIRONMENT})"),
    ] = None
    """The environment: Pick, Gate, ...: berthline policies environments."""
    preset: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="(default: none)")] = None
    """Options of a reference system: berthline policies presets."""
    set: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="KEY=VALUE", help_behavior_hint="(repeatable)"),
    ] = ()
    """An option of the environment, such as cluster=uniform:16x8:V100, load=[0.9,1.3],
    window=128; values other than text as JSON."""
    config: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="KEY=VALUE", help_behavior_hint="(repeatable)"),
    ] = ()
    """A setting of the algorithm, such as learning_rate=0.0005."""
    expert: Annotated[
        str | None, arg(metavar="SCHEDULER", help_behavior_hint=f"(default: {EXPERT})")
    ] = None
    """Of bc: the scheduler that is learned from."""
    network: Annotated[str, arg(metavar="KIND")] = "kernel"
    """mlp, kernel, attention, cross or hosts: how jobs and nodes are looked at."""
    hidden: Annotated[str, arg(metavar="N,N")] = "32,16"
    """Widths of the network's layers."""
    steps: Annotated[
        Whole | None,
        whole("--steps", lowest=1),
        arg(help_behavior_hint="(default: a few minutes of learning: see the guide)"),
    ] = None
    """Environment steps in all, rounded up to whole iterations (rollout x --envs)."""
    envs: Annotated[int, msgspec.Meta(ge=1), whole("--envs", lowest=1)] = 256
    """Environments that step together."""
    threads: Annotated[int, msgspec.Meta(ge=1), whole("--threads", lowest=1)] = 1
    """Threads; more help only where so many cores are free. With other numbers of them torch adds
    up in another order, so weights differ in their last bits."""
    seed: Seed = 0
    seeds: Annotated[int, msgspec.Meta(ge=1), whole("--seeds", lowest=1, metavar="K")] = 1
    """Train with so many seeds, from --seed on, each in a directory of its own."""
    validate_every: Annotated[
        Whole | None,
        whole("--validate-every", lowest=1),
        arg(help_behavior_hint="(default: a fifth of --steps)"),
    ] = None
    """Steps between validations."""
    episodes: Annotated[int, msgspec.Meta(ge=2), whole("--episodes", lowest=2)] = 64
    """Episodes of VAL; REPORT has twice as many."""
    patience: Annotated[int, msgspec.Meta(ge=0), whole("--patience", lowest=0)] = 0
    """End after so many validations without a better one; 0 = never."""
    least_gain: Annotated[float, arg(metavar="X")] = 0.0
    """How much better counts for --patience, as a share of the best return's size."""
    init_from: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(default: none)")] = (
        None
    )
    """Begin from the policy of another run or checkpoint; the result is never below it on VAL."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(needed)")] = None
    """The run directory: settings, metrics, curve.csv, checkpoints, TensorBoard files, summary."""
    resume: Annotated[bool, arg(help_behavior_hint="")] = False
    """Go on with the same command, where --out holds an interrupted run."""
    check: Annotated[bool, arg(help_behavior_hint="")] = False
    """Only see whether the algorithm finds the known optimum of one tiny episode."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    if argv[:1] == ["es"]:
        # It tunes formulas on the simulator: no environments, no network, no torch.
        from berthline.cli import train_es

        return train_es.main(argv[1:])
    options = parse_options(Train, argv, verb="train")
    check_choice("ALGORITHM", options.algorithm, ALGORITHMS)
    if importlib.util.find_spec("torch") is None:
        raise MissingExtraError("torch", "train", "berthline train")
    config = config_of_options(options)
    if options.check:
        return _check(options, config)
    if options.out is None:
        raise ConfigError("--out is missing", expected="the directory of the run")
    command = shlex.join(["berthline", "train", *argv])
    with stop_signals() as caught, undone_if_refused(Path(options.out), begins=not options.resume):
        if options.seeds > 1:
            summary = _train_seeds(options, config, command, caught)
        else:
            kept = _kept(config, options)
            out = Path(options.out)
            open_run(out, kept, command=command, seed=options.seed, resume=options.resume)
            summary = _train(config, out, options, caught)
    if summary is None:
        words = [word for word in argv if word != "--resume"]
        again = shlex.join(["berthline", "train", *words, "--resume"])
        note(f"stopped; everything up to the last step is saved. to go on: {again}")
        return 128 + caught[0]
    if options.json:
        print_json(summary)
        return 0
    from berthline.cli.train_show import show_seeds, show_summary

    (show_seeds if options.seeds > 1 else show_summary)(summary)
    print()
    print_facts(
        {
            "results": options.out,
            "curve": f"berthline report curve {_curves(options)} --y mean_jct",
        }
    )
    return 0


def config_of_options(options: Train) -> TrainConfig:
    """Return what is to be trained, with every setting.

    Raises:
        ConfigError: an unknown name or a wrong value.
    """
    from berthline.env.options import resolve_options
    from berthline.env.presets import PRESETS
    from berthline.env.registration import SEATS
    from berthline.learn.algorithms import config_of
    from berthline.learn.defaults import (
        default_options,
        default_settings,
        default_steps,
        on_training_part,
    )
    from berthline.learn.networks import KINDS, NetworkConfig
    from berthline.learn.trainer import TrainConfig, check_config

    given = {key: _value(text) for key, text in read_settings(options.set).items()}
    seats = {name.lower(): seat for name, seat in SEATS.items()}
    preset = options.preset if options.preset is not None else given.get("preset")
    if preset is not None:
        given["preset"] = preset
        if preset not in PRESETS:
            what, expected, hint = unknown_name("preset", str(preset), PRESETS)
            raise ConfigError(what, where="--preset", expected=expected, hint=hint)
        seat = PRESETS[preset].seat
    else:
        seat = seats[ENVIRONMENT.lower()]
    if options.env is not None:
        name = options.env.removeprefix("berthline/").partition("-v")[0].lower()
        if name not in seats:
            what, expected, hint = unknown_name("environment", options.env, SEATS)
            raise ConfigError(what, where="--env", expected=expected, hint=hint)
        seat = seats[name]
    if preset is None:
        given = default_options(seat, given)
    given = on_training_part(given)
    if options.expert is not None and options.algorithm != "bc":
        raise ConfigError(f"{options.algorithm} learns from no expert", hint="train bc does")
    if options.algorithm == "bc" and (options.expert is not None or "experts" not in given):
        given["experts"] = (options.expert or EXPERT,)
    resolve_options(seat, given)
    check_choice("--network", options.network, KINDS)
    try:
        hidden = tuple(int(width) for width in options.hidden.split(","))
    except ValueError:
        raise ConfigError(
            f"--hidden is {options.hidden!r}", expected="whole numbers with commas, such as 32,16"
        ) from None
    settings = {
        **default_settings(options.algorithm, seat),
        **{k: _value(v) for k, v in read_settings(options.config, "--config").items()},
    }
    steps = options.steps or default_steps(options.algorithm, seat)
    config = TrainConfig(
        algorithm=options.algorithm,
        seat=seat,
        options=given,
        settings=msgspec.to_builtins(config_of(options.algorithm, settings)),
        network=NetworkConfig(kind=options.network, hidden=hidden),
        num_envs=options.envs,
        steps=steps,
        seed=options.seed,
        validate_every=options.validate_every or max(1, steps // 5),
        val_episodes=options.episodes,
        report_episodes=2 * options.episodes,
        patience=options.patience,
        least_gain=options.least_gain,
        threads=options.threads,
    )
    check_config(config, seeds=options.seeds)
    return config


def _value(text: str) -> Any:
    """Return a value that may be JSON, and is text otherwise."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def _kept(config: TrainConfig, options: Train) -> dict[str, Any]:
    """Return what config.toml has."""
    found: dict[str, Any] = msgspec.to_builtins(config)
    return {**found, "init_from": options.init_from}


def _train(
    config: TrainConfig, path: Path, options: Train, caught: Sequence[int]
) -> dict[str, Any] | None:
    """Train in a directory that has been opened; None = it was stopped."""
    from berthline.cli.train_show import watching
    from berthline.learn.checkpoint import find
    from berthline.learn.trainer import Trainer

    with watching(f"{config.algorithm} on {config.seat}, seed {config.seed}") as report:
        trainer = Trainer(
            config,
            path,
            # It may have been stopped before the first checkpoint.
            resume=find(path / "checkpoints", "last") is not None,
            init_from=None if options.init_from is None else Path(options.init_from),
        )
        return trainer.run(report, lambda: bool(caught))


def _train_seeds(
    options: Train, config: TrainConfig, command: str, caught: Sequence[int]
) -> dict[str, Any] | None:
    """Train one seed after another; those that are complete stay."""
    from berthline.learn.seeds import summary_of_seeds

    out = Path(options.out or "")
    kept = {**_kept(config, options), "seeds": options.seeds}
    open_run(out, kept, command=command, seed=options.seed, resume=options.resume)
    summaries: list[dict[str, Any]] = []
    for seed in range(options.seed, options.seed + options.seeds):
        path = out / f"{SEED_PREFIX}{seed}"
        own = msgspec.structs.replace(config, seed=seed)
        if (path / SUMMARY).is_file():
            summaries.append(json.loads((path / SUMMARY).read_text(encoding="utf-8")))
            continue
        if (path / "config.toml").is_file():
            check_same_settings(path, _kept(own, options))
        else:
            begin_run(path, _kept(own, options), command=command, seed=seed)
        found = _train(own, path, options, caught)
        if found is None:
            return None
        summaries.append(found)
    summary = summary_of_seeds(summaries)
    from berthline.learn.run_files import whole_file

    with whole_file(out / SUMMARY) as partial:
        partial.write_text(json.dumps(summary, indent=2) + "\n", encoding="utf-8")
    return summary


def _check(options: Train, config: TrainConfig) -> int:
    from berthline.cli.train_show import show_check
    from berthline.learn.overfit import overfit

    given = read_settings(options.config, "--config")
    settings = {key: config.settings[key] for key in given}
    found = overfit(config.algorithm, settings, config.network, seed=config.seed)
    if options.json:
        print_json(found)
    else:
        show_check(found)
    return 0 if found["reached"] else 1


def _curves(options: Train) -> str:
    out = str(options.out)
    if options.seeds == 1:
        return shlex.quote(f"{out}/curve.csv")
    seeds = range(options.seed, options.seed + options.seeds)
    return " ".join(shlex.quote(f"{out}/{SEED_PREFIX}{seed}/curve.csv") for seed in seeds)


@contextmanager
def stop_signals() -> Iterator[list[int]]:
    """Yield a list that gets the signal that asks for an end; the second one ends at once."""
    caught: list[int] = []
    before: dict[int, Any] = {}

    def handle(number: int, _: object) -> None:
        caught.append(number)
        for own, handler in before.items():
            signal.signal(own, handler)

    handler: Callable[[int, object], None] = handle
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, handler)
    try:
        yield caught
    finally:
        for own, old in before.items():
            signal.signal(own, old)
