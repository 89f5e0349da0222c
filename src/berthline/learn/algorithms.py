"""The algorithms by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.learn.algorithm import Algorithm
    from berthline.learn.environments import Environments
    from berthline.learn.networks import NetworkConfig

ALGORITHMS = ("ppo", "d3qn", "sac", "meta-dqn", "bc")


def config_of(name: str, given: Mapping[str, Any]) -> Any:
    """Return the settings of an algorithm, with those that were given.

    Raises:
        ConfigError: no such algorithm or setting, or a value of the wrong kind.
    """
    kind = _kind(name)[1]
    for key in given:
        if key not in kind.__struct_fields__:
            what, expected, hint = unknown_name(f"setting of {name}", key, kind.__struct_fields__)
            raise ConfigError(what, expected=expected, hint=hint)
    try:
        return msgspec.convert(dict(given), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(f"settings of {name}: {error}") from None


def options_for(name: str, seat: str, options: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """Return the options of the environments that an algorithm with these settings learns in."""
    if name == "meta-dqn":
        from berthline.learn.meta_dqn import environment_options

        return environment_options(seat, options, config)
    return dict(options)


def make_algorithm(
    name: str, envs: Environments, network: NetworkConfig, config: Any, *, seed: int
) -> Algorithm:
    """Return a fresh instance.

    Raises:
        ConfigError: it learns from what is long past, which pairs of PickPlace are not kept for.
    """
    if envs.layout.has_pairs and name not in ("ppo", "bc"):
        raise ConfigError(
            f"{name} does not learn PickPlace",
            expected="ppo or bc",
            hint="or train Pick and Place one after the other",
        )
    made: Algorithm = _kind(name)[0](envs, network, config, seed=seed)
    return made


def _kind(name: str) -> tuple[Any, Any]:
    if name == "ppo":
        from berthline.learn.ppo import PPO, PPOConfig

        return PPO, PPOConfig
    if name == "d3qn":
        from berthline.learn.dqn import DQN, DQNConfig

        return DQN, DQNConfig
    if name == "sac":
        from berthline.learn.sac import SAC, SACConfig

        return SAC, SACConfig
    if name == "meta-dqn":
        from berthline.learn.meta_dqn import MetaDQN, MetaDQNConfig

        return MetaDQN, MetaDQNConfig
    if name == "bc":
        from berthline.learn.bc import BC, BCConfig

        return BC, BCConfig
    what, expected, hint = unknown_name("algorithm", name, ALGORITHMS)
    raise ConfigError(what, expected=expected, hint=hint)
