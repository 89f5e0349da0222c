"""Valid values of settings: one table for all algorithms, since a name means the same in each.

The bounds reject obvious mistakes, such as a discount of 2, and values at which torch would fail
later. They are not recommendations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

SETTING_TYPES: dict[str, OptionType] = {
    "atoms": whole(2, 10_000),
    "average_rate": _RATE,
    "balanced_replay": FLAG,
    "batch": whole(1, 2**20),
    "capacity": whole(1, 10**7),
    "clip": number(0, 10, above=True),
    "deadline_shaping": FLAG,
    "deadline_weight": _WEIGHT,
    "discount": _SHARE,
    "distributional": FLAG,
    "double": FLAG,
    "dueling": FLAG,
    "energy": FLAG,
    "energy_weight": _WEIGHT,
    "entropy": _SHARE,
    "entropy_schedule": _SCHEDULE,
    "epochs": whole(1, 1_000),
    "epsilon": _SHARE,
    "epsilon_final": _SHARE,
    "epsilon_share": _SHARE,
    "expert": TEXT,
    "gap": number(0, 0.999),  # at 1 the differences between actions would be infinite
    "horizon": _or_null(_SECONDS),
    "importance": _SHARE,
    "job_age": FLAG,
    "largest_return": number(-1e6, 1e6),
    "learning_rate": _RATE,
    "learning_rate_schedule": _SCHEDULE,
    "least_return": number(-1e6, 1e6),
    "max_gradient": number(0, 1e9, above=True),
    "minibatches": whole(1, 2**20),
    "n_step": whole(1, 10_000),
    "no_op": number(-100, 100),
    "noise": number(0, 100),
    "noisy": FLAG,
    "own_share": _SHARE,
    "priority_exponent": number(0, 4),
    "regime_embedding": FLAG,
    "regimes": whole(1, 1_000),
    "reuse": number(0, 1_000, above=True),
    "rollout": whole(1, 2**16),
    "target_every": whole(0, 10**9),
    "target_kl": _or_null(number(0, 1e6, above=True)),
    "target_network": FLAG,
    "target_rate": _RATE,
    "temperature": number(0, 1_000, above=True),
    "temperature_rate": _SHARE,
    "trace": _SHARE,
    "trace_horizon": _or_null(_SECONDS),
    "value_clip": _or_null(number(0, 1e6, above=True)),
    "value_weight": _WEIGHT,
    "warmup": whole(0, 10**9),
}


def read_settings(name: str, kind: type[msgspec.Struct], given: Mapping[str, Any]) -> Any:
    """Return the settings of the algorithm `name`: those given, and defaults for the others.

    Raises:
        ConfigError: no such setting, or an invalid value.
    """
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    found: dict[str, Any] = {}
    for key, value in given.items():
        if key not in fields:
            what, expected, hint = unknown_name(f"setting of {name}", key, fields)
            raise ConfigError(what, expected=expected, hint=hint)
        try:
            plain = msgspec.convert(value, fields[key], strict=False)
        except msgspec.ValidationError:
            plain = value  # `take` refuses it below, with our own error
        found[key] = SETTING_TYPES[key].take(f"{key} of {name}", plain)
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
