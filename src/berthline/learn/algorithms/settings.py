"""Values and meanings of settings: one table for all algorithms, help and documentation.

The bounds reject obvious mistakes, such as a discount of 2, and values at which torch would fail
later. They are not recommendations.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from berthline.env.option_types import FLAG, TEXT, OptionType, number, whole
from berthline.errors import ConfigError, unknown_name
from berthline.learn.algorithms.schedules import SCHEDULES

if TYPE_CHECKING:
    from collections.abc import Mapping


def _one_of(*names: str) -> OptionType:
    def convert(value: Any) -> str:
        if value not in names:
            raise ValueError
        return str(value)

    return OptionType("one of " + ", ".join(names), convert)


def _or_null(kind: OptionType) -> OptionType:
    # `null` is the spelling on the command line.
    return OptionType(f"{kind.expected}; or null", kind.or_none().convert)


_SHARE = number(0, 1)
_RATE = number(0, 1, above=True)
_WEIGHT = number(0, 1e6)
_SECONDS = number(0, 1e12, above=True)
_SCHEDULE = _one_of(*SCHEDULES)


class Setting(NamedTuple):
    """A setting of algorithms.

    Attributes:
        kind: the values it takes.
        meaning: what it does.
        of: what it does in some algorithms, where that is something else.
    """

    kind: OptionType
    meaning: str
    of: Mapping[str, str] = MappingProxyType({})

    def meaning_for(self, algorithm: str) -> str:
        """Return what it does in an algorithm."""
        return self.of.get(algorithm, self.meaning)


SETTINGS: dict[str, Setting] = {
    "accumulate": Setting(
        whole(1, 2**20),
        "parts of a minibatch, whose gradients are added up before a step of the optimiser: less "
        "memory, the same step",
    ),
    "atoms": Setting(whole(2, 10_000), "number of returns in the support of the distribution"),
    "average_rate": Setting(
        _RATE,
        "how far the policy, a moving average, follows the network that learns in each update",
    ),
    "balanced_replay": Setting(
        FLAG, "whether all regimes are drawn equally often, however rare they are"
    ),
    "batch": Setting(whole(1, 2**20), "transitions per batch"),
    "capacity": Setting(whole(1, 10**7), "states in the replay"),
    "clip": Setting(
        number(0, 10, above=True), "how far the ratio of probabilities may move from 1"
    ),
    "deadline_shaping": Setting(FLAG, "whether missed deadlines cost"),
    "deadline_weight": Setting(_WEIGHT, "cost of a missed deadline, in hours of JCT of a job"),
    "discount": Setting(_SHARE, "of rewards, per decision"),
    "distributional": Setting(
        FLAG, "whether the distribution of returns is learned instead of the mean (C51)"
    ),
    "double": Setting(
        FLAG, "whether one network chooses the next action, and the other evaluates it"
    ),
    "dueling": Setting(FLAG, "whether values and advantages have separate outputs"),
    "energy": Setting(FLAG, "whether energy costs"),
    "energy_weight": Setting(_WEIGHT, "cost of a kWh, in hours of JCT of a job"),
    "entropy": Setting(
        _SHARE,
        "weight of the entropy bonus",
        {
            "sac": "target entropy of the policy / log(number of allowed actions), relative to a "
            "choice in which the no-op is rare"
        },
    ),
    "entropy_schedule": Setting(_SCHEDULE, "how the weight of the entropy bonus changes"),
    "epochs": Setting(whole(1, 1_000), "passes over the steps of an iteration"),
    "epsilon": Setting(_SHARE, "initial share of random actions"),
    "epsilon_final": Setting(_SHARE, "final share of random actions"),
    "epsilon_share": Setting(
        _SHARE, "share of all steps after which the final share of random actions is reached"
    ),
    "expert": Setting(TEXT, "one of the environment's `experts`; empty = the first"),
    "gap": Setting(
        number(0, 0.999),  # at 1 the differences between actions would be infinite
        "targets are reduced by gap * (best value - value of the action), so that errors do not "
        "hide which action is best; in the limit, an action looks worse than the best by another "
        "gap / (1 - gap) times the difference",
    ),
    "horizon": Setting(
        _or_null(_SECONDS),
        "seconds of simulated time after which rewards are discounted by 1 / e; null = no discount "
        "by time",
    ),
    "importance": Setting(
        _SHARE, "initial exponent of the importance weights of the replay; it rises to 1"
    ),
    "job_age": Setting(
        FLAG, "whether there are columns for the wait of jobs, on a short and a long time scale"
    ),
    "largest_return": Setting(number(-1e6, 1e6), "highest return of the support"),
    "learning_rate": Setting(_RATE, "of Adam"),
    "learning_rate_schedule": Setting(
        _SCHEDULE, "how the learning rate changes; `warmup_cosine` rises over 5 % of the steps"
    ),
    "learning_rate_warmup": Setting(
        _or_null(whole(0, 10**12)),
        "environment steps over which the learning rate rises from 0; null = that of the schedule",
    ),
    "least_return": Setting(
        number(-1e6, 1e6), "lowest return of the support, in units of the size of returns"
    ),
    "max_gradient": Setting(number(0, 1e9, above=True), "norm at which gradients are clipped"),
    "minibatches": Setting(whole(1, 2**20), "minibatches per epoch"),
    "n_step": Setting(whole(1, 10_000), "steps of a transition"),
    "no_op": Setting(
        number(-100, 100),
        "initial score of the no-op; jobs have about 0",
        {"sac": "score of the no-op, initially and in the choice that entropy is relative to"},
    ),
    "noise": Setting(number(0, 100), "initial size of the noise"),
    "noisy": Setting(
        FLAG, "whether noise of learned size in the last layers explores, instead of epsilon"
    ),
    "own_share": Setting(
        _SHARE,
        "share of the environments in which the network acts while the expert still gives the "
        "right action, so that it learns in states that its own mistakes lead to (DAgger)",
    ),
    "priority_exponent": Setting(
        number(0, 4), "priority in the replay = |error|^exponent; 0 = all are drawn alike"
    ),
    "regime_embedding": Setting(
        FLAG,
        "whether the network sees the regime it is in: the nearest of some centres of the "
        "cluster-wide numbers, which are learned without labels",
    ),
    "regimes": Setting(whole(1, 1_000), "number of regimes"),
    "reuse": Setting(
        number(0, 1_000, above=True), "how often a step is used for learning, on average"
    ),
    "rollout": Setting(whole(1, 2**16), "steps of each environment per iteration"),
    "target_every": Setting(
        whole(0, 10**9), "updates between full copies to the target network; 0 = it follows slowly"
    ),
    "target_kl": Setting(
        _or_null(number(0, 1e6, above=True)),
        "an iteration ends when the policy has moved this far, in nats; null = no limit",
    ),
    "target_network": Setting(FLAG, "whether next values come from a network that follows slowly"),
    "target_rate": Setting(_RATE, "how far target networks follow in each update"),
    "temperature": Setting(
        number(0, 1_000, above=True),
        "initial price of entropy; returns have a size of about 1",
    ),
    "temperature_rate": Setting(
        _SHARE, "learning rate of the log temperature; 0 = the temperature is constant"
    ),
    "trace": Setting(_SHARE, "lambda of GAE, per decision"),
    "trace_horizon": Setting(
        _or_null(_SECONDS),
        "seconds of simulated time after which lambda is 1 / e; null = not by time",
    ),
    "value_clip": Setting(
        _or_null(number(0, 1e6, above=True)),
        "how far values may move, in standard deviations of returns; null = no limit",
    ),
    "value_weight": Setting(_WEIGHT, "weight of the value loss"),
    "warmup": Setting(whole(0, 10**9), "steps before learning begins"),
}
"""Every setting of every algorithm; defaults are in `configs.py`."""


class SettingRow(NamedTuple):
    """A setting of one algorithm, in words."""

    name: str
    default: str
    values: str
    meaning: str


def setting_rows(algorithm: str, kind: type[msgspec.Struct]) -> list[SettingRow]:
    """Return every setting of an algorithm, for help and documentation.

    Example:
        >>> from berthline.learn.algorithms.configs import PPOConfig
        >>> setting_rows("ppo", PPOConfig)[0]
        SettingRow(name='rollout', default='64', values='a whole number from 1 to 65,536', \
meaning='steps of each environment per iteration')
    """
    settings = settings_of(algorithm, kind)
    return [
        SettingRow(
            field.name,
            value_text(field.default),
            settings[field.name].kind.expected.replace("True or False", "true or false"),
            settings[field.name].meaning_for(algorithm),
        )
        for field in msgspec.structs.fields(kind)
    ]


def settings_of(algorithm: str, kind: type[msgspec.Struct]) -> dict[str, Setting]:
    """Return the settings of an algorithm, by name.

    One that is not in SETTINGS, of an algorithm of another package, takes what its annotation says;
    `Annotated[float, msgspec.Meta(gt=0, description="...")]` has its range and its meaning.

    Raises:
        ConfigError: a setting has no default, or there is no `rollout`.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    where = f"algorithm {algorithm!r}, {kind.__name__}"
    if "rollout" not in fields:
        raise ConfigError(
            "there is no setting `rollout`",
            where=where,
            expected="the number of steps of each environment in an iteration",
        )
    for name, field in fields.items():
        if field.required:
            raise ConfigError(f"the setting {name} has no default", where=where)
    return {name: SETTINGS.get(name) or _annotated(field) for name, field in fields.items()}


def _annotated(field: msgspec.structs.FieldInfo) -> Setting:
    """Return a setting that is described by the annotation of its field."""
    import typing

    kind, *metas = (
        typing.get_args(field.type)
        if typing.get_origin(field.type) is typing.Annotated
        else (field.type,)
    )
    described = [meta.description for meta in metas if getattr(meta, "description", None)]
    signs = {"gt": "more than", "ge": "at least", "lt": "less than", "le": "at most"}
    limits = [
        f"{words} {getattr(meta, sign):g}"
        for meta in metas
        for sign, words in signs.items()
        if getattr(meta, sign, None) is not None
    ]
    names = {int: "a whole number", float: "a number", bool: "True or False", str: "a text"}
    expected = names.get(kind, getattr(kind, "__name__", str(kind)))

    def convert(value: Any) -> Any:
        try:
            return msgspec.convert(value, field.type)
        except msgspec.ValidationError:
            raise ValueError from None

    return Setting(
        OptionType(", ".join([expected, *limits]), convert),
        described[0] if described else "see the algorithm",
    )


def value_text(value: Any) -> str:
    """Return a value as one types it after `--config NAME=`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) or "empty"


def read_settings(name: str, kind: type[msgspec.Struct], given: Mapping[str, Any]) -> Any:
    """Return the settings of the algorithm `name`: those given, and defaults for the others.

    Raises:
        ConfigError: no such setting, or an invalid value.
    """
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    settings = settings_of(name, kind)
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            what, expected, hint = unknown_name(f"setting of {name}", key, fields)
            raise ConfigError(what, expected=expected, hint=hint)
        try:
            plain = msgspec.convert(value, fields[key], strict=False)
        except msgspec.ValidationError:
            plain = value  # `take` refuses it below, with our own error
        found[key] = settings[key].kind.take(f"{key} of {name}", plain)
    made: Any = kind(**found)
    if getattr(made, "distributional", False) and made.least_return >= made.largest_return:
        raise ConfigError(
            f"least_return of {name} is {made.least_return:g}",
            expected=f"less than largest_return, {made.largest_return:g}",
        )
    return made


def check_minibatches(name: str, config: Any, num_envs: int) -> None:
    """Check that an iteration has enough steps for its minibatches.

    Raises:
        ConfigError: it has not.
    """
    parts = getattr(config, "minibatches", 1)
    # PPO divides by the deviation of a minibatch's advantages, which needs two steps.
    each = 2 if name == "ppo" else 1
    steps = config.rollout * num_envs
    if parts * each > steps:
        raise ConfigError(
            f"minibatches of {name} is {parts}",
            expected=f"{'two steps' if each == 2 else 'a step'} or more in each: an iteration has"
            f" {steps:,}, rollout {config.rollout:,} x {num_envs:,} environments",
        )
