"""`berthline train`: train a policy in an environment, and evaluate it."""

from __future__ import annotations

import contextlib
import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import msgspec
from tyro.conf import Positional, UseAppendAction, arg

from berthline.cli.compare.command import read_schedulers
from berthline.cli.options import (
    Address,
    ConfigFile,
    EngineName,
    Json,
    MetricName,
    Seed,
    check_choice,
    engine_of,
    parse_options,
    read_settings,
    whole,
)
from berthline.cli.output import note, print_facts, print_json
from berthline.cli.train.signals import StoppedError, stop_signals
from berthline.errors import ConfigError
from berthline.learn.algorithms.algorithm_table import ALGORITHMS
from berthline.learn.training.recipes import ENVS, NETWORK
from berthline.learn.training.train import ENVIRONMENT, EXPERT
from berthline.runs.run_layout import CONFIG, CURVE, SEED_PREFIX
from berthline.runs.run_output import RunOutput

Whole = Annotated[int, msgspec.Meta(ge=1)]


class Train(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Train a policy, keep the best on VAL episodes, evaluate it on REPORT episodes.

    SIGINT and SIGTERM save and exit; --resume continues with the same bits.

    Needs the extra `train`.

    Examples:
      berthline train ppo --out runs/ppo
      berthline train ppo --env Gate --set load=1.2 --seeds 3 --out runs/gate
      berthline train ppo --steps 40000 --envs 64 --out runs/short --json
      berthline train bc --expert sjf+easy --out runs/bc
      berthline train ppo --check
      berthline train ppo --resume --steps 300000 --out runs/ppo
      berthline train --config-file runs/ppo/config.toml --seed 1 --out runs/again
      berthline train ppo --sweep config.entropy=0:0.02 --trials 20 --out runs/s
      berthline train es --space gate --budget 15
    """

    algorithm: Annotated[
        Positional[str], arg(metavar="ALGORITHM", help=f"The algorithm: {', '.join(ALGORITHMS)}.")
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
    window=128; write values other than text as JSON."""
    config: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="KEY=VALUE", help_behavior_hint="(repeatable)"),
    ] = ()
    """A setting of the algorithm, such as learning_rate=0.0005; berthline train ppo -h lists those
    of ppo, and so on."""
    expert: Annotated[
        str | None, arg(metavar="SCHEDULER", help_behavior_hint=f"(default: {EXPERT})")
    ] = None
    """For bc: the scheduler to imitate."""
    network: Annotated[
        str | None,
        arg(metavar="KIND", help_behavior_hint=f"(default: that of the preset, or {NETWORK})"),
    ] = None
    """mlp, kernel, attention, cross or hosts: how the network reads jobs and nodes."""
    hidden: Annotated[
        str | None,
        arg(metavar="N,N", help_behavior_hint="(default: those of the preset, or 32,16)"),
    ] = None
    """Widths of the network's layers."""
    steps: Annotated[
        Whole | None,
        whole("--steps", lowest=1),
        arg(help_behavior_hint="(default: a few minutes of learning: see the guide)"),
    ] = None
    """Environment steps in total, rounded up to whole iterations (rollout x --envs)."""
    envs: Annotated[
        Whole | None,
        whole("--envs", lowest=1),
        arg(help_behavior_hint=f"(default: those of the preset, or {ENVS})"),
    ] = None
    """Environments that step together."""
    threads: Annotated[int, msgspec.Meta(ge=1), whole("--threads", lowest=1)] = 1
    """Threads; more help only if as many cores are free. With another number torch adds in another
    order, so weights differ in their last bits."""
    device: Annotated[str, arg(metavar="NAME")] = "cpu"
    """Where networks encode observations: cpu, cuda or cuda:NUMBER."""
    seed: Seed = 0
    seeds: Annotated[int, msgspec.Meta(ge=1), whole("--seeds", lowest=1, metavar="K")] = 1
    """Train with K seeds, starting at --seed, each in its own directory."""
    workers: Annotated[int, msgspec.Meta(ge=1), whole("--workers", lowest=1)] = 1
    """Seeds that are trained at once, each in a process of its own; on Ray, one for each CPU of the
    cluster."""
    engine: EngineName = "local"
    address: Address = None
    validate_every: Annotated[
        Whole | None,
        whole("--validate-every", lowest=1),
        arg(help_behavior_hint="(default: a fifth of --steps)"),
    ] = None
    """Steps between validations."""
    episodes: Annotated[
        Whole | None,
        whole("--episodes", lowest=2),
        arg(help_behavior_hint="(default: 64 to 128)"),
    ] = None
    """Episodes of VAL; REPORT has twice as many. By default, enough to tell the best rule from the
    next."""
    patience: Annotated[int, msgspec.Meta(ge=0), whole("--patience", lowest=0)] = 0
    """Stop after N validations without improvement; 0 = never."""
    least_gain: Annotated[float, arg(metavar="X")] = 0.0
    """Smallest improvement that counts for --patience, as a share of |best return|."""
    metric: MetricName = None
    save_every: Annotated[
        int, msgspec.Meta(ge=0), whole("--save-every", lowest=0, metavar="STEPS")
    ] = 0
    """Also keep a checkpoint every STEPS steps: checkpoints/step-STEP; 0 = only the best and the
    last."""
    keep: Annotated[int, msgspec.Meta(ge=0), whole("--keep", lowest=0)] = 0
    """Keep the newest N of the checkpoints of --save-every; 0 = all."""
    test_seeds: Annotated[
        str | None, arg(metavar="S,S", help_behavior_hint="(default: twice --episodes of them)")
    ] = None
    """Seeds of the REPORT episodes, such as 42,43,44: the same in every run, never trained on."""
    against: Annotated[
        str | None,
        arg(metavar="A,B", help_behavior_hint="(default: those of the preset, or of the seat)"),
    ] = None
    """The schedulers to compare with, separated by commas."""
    init_from: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(default: none)")] = (
        None
    )
    """Start from the policy of another run or checkpoint; the result is never worse on VAL."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="(required)")] = None
    """The run directory: settings, metrics, curve.csv, checkpoints, TensorBoard files, summary."""
    resume: Annotated[bool, arg(help_behavior_hint="")] = False
    """Resume the interrupted run in --out, with the same command; with more --steps also a
    complete one. The optimiser continues where it was."""
    sweep: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="KEY=VALUES", help_behavior_hint="(repeatable)"),
    ] = ()
    """Train --trials times with other values of config.NAME, set.NAME, network, hidden or envs:
    LOW:HIGH, LOW:HIGH:log, or choices A,B,C. Needs the extra `sweep`."""
    trials: Annotated[
        Whole | None, whole("--trials", lowest=1), arg(help_behavior_hint="(with --sweep)")
    ] = None
    """Number of trials of --sweep; with --resume and more, a sweep goes on."""
    callback: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="MODULE:NAME", help_behavior_hint="(repeatable)"),
    ] = ()
    """A Python function that gets every event: progress, validations, checkpoints."""
    config_file: ConfigFile = None
    check: Annotated[bool, arg(help_behavior_hint="")] = False
    """Only check whether the algorithm finds the known optimum of one tiny episode."""
    json: Json = False


def main(argv: list[str]) -> int:
    """Run the verb."""
    if argv[:1] == ["es"]:
        # It tunes formulas on the simulator: no environments, no network, no torch.
        from berthline.cli.train import es as train_es

        return train_es.main(argv[1:])
    if argv[:1] and argv[0] in ALGORITHMS and {"--help", "-h"} & set(argv):
        return _help(argv[0])
    options = parse_options(Train, argv, verb="train")
    check_choice("ALGORITHM", options.algorithm, ALGORITHMS)
    from berthline.learn.training.episode_metrics import NAME_IN_EPISODES

    if options.check:
        return _check(options)
    if options.out is None:
        raise ConfigError("--out is missing", expected="the directory of the run")
    if options.sweep or options.trials is not None:
        from berthline.cli.train import trials

        return trials.run(options, argv)
    words = [word for word in argv if word != "--resume"]
    again = shlex.join(["berthline", "train", *words, "--resume"])
    try:
        with stop_signals() as request:
            # Heavy: it imports torch.
            from berthline.cli.train.show import show_seeds, show_summary, watching, watching_all
            from berthline.learn.training.events import find_callback
            from berthline.learn.training.train import train

            found = train(
                options.algorithm,
                **parameters(options),
                init_from=options.init_from,
                resume=options.resume,
                device=options.device,
                out=RunOutput(options.out, shlex.join(["berthline", "train", *argv])),
                callbacks=[find_callback(text) for text in options.callback],
                must_stop=request,
                workers=options.workers,
                engine=engine_of(options.engine, options.address),
                watch=watching,
                watch_all=watching_all,
                remark=note,
            )
    except StoppedError as stopped:
        if request.is_polled:
            note(f"stopped at once; training resumes from the last checkpoint: {again}")
            return 128 + stopped.signal
        begun = (Path(options.out) / CONFIG).is_file()
        note("stopped before the first step" + (f". to begin: {again}" if begun else ""))
        return 128 + stopped.signal
    if found.summary is None:
        is_far = options.workers > 1 or options.engine != "local"
        saved = "the last checkpoint of each run" if is_far else "the last step"
        note(f"stopped; everything up to {saved} is saved. to resume: {again}")
        return 128 + request.signal if request.signal else 0  # a callback may stop it too
    if options.json:
        print_json(found.summary)
        return 0
    (show_seeds if options.seeds > 1 else show_summary)(found.summary)
    print()
    print_facts(
        {
            "results": options.out,
            "curve": f"berthline report curve {_curves(options)} --y"
            f" {NAME_IN_EPISODES[found.summary['metric']]}",
        }
    )
    return 0


def _help(algorithm: str) -> int:
    """Print the options, then the settings of an algorithm."""
    from berthline.cli.train.show import show_settings

    with contextlib.suppress(SystemExit):
        parse_options(Train, ["--help"], verb="train")
    show_settings(algorithm)
    return 0


def parameters(options: Train) -> dict[str, Any]:
    """Return the options as parameters of `train_config`.

    Raises:
        ConfigError: an option cannot be read.
    """
    try:
        widths = options.hidden
        hidden = None if widths is None else tuple(int(width) for width in widths.split(","))
    except ValueError:
        raise ConfigError(
            f"--hidden is {options.hidden!r}",
            expected="comma-separated whole numbers, such as 32,16",
        ) from None
    same = (
        *("env", "preset", "expert", "network", "steps", "envs", "threads", "seed", "seeds"),
        *("validate_every", "episodes", "patience", "least_gain", "metric", "save_every", "keep"),
    )
    return {
        **{name: getattr(options, name) for name in same},
        "env_options": {key: _value(text) for key, text in read_settings(options.set).items()},
        "config": {k: _value(v) for k, v in read_settings(options.config, "--config").items()},
        "hidden": hidden,
        "against": read_schedulers(options.against, "--against") if options.against else (),
        "test_seeds": _whole_numbers("--test-seeds", options.test_seeds or ""),
    }


def _whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(word) for word in text.split(",") if word.strip())
    except ValueError:
        raise ConfigError(
            f"{flag} is {text!r}", expected="comma-separated whole numbers, such as 42,43,44"
        ) from None


def _value(text: str) -> Any:
    """Return a value: JSON if the text is valid JSON, else the text."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return tuple(value) if isinstance(value, list) else value


def _check(options: Train) -> int:
    from berthline.cli.train.show import show_check
    from berthline.learn.training.train import train_config

    config = train_config(options.algorithm, **parameters(options))
    from berthline.learn.training.overfit import overfit

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
        return shlex.quote(f"{out}/{CURVE}")
    seeds = range(options.seed, options.seed + options.seeds)
    return " ".join(shlex.quote(f"{out}/{SEED_PREFIX}{seed}/{CURVE}") for seed in seeds)
