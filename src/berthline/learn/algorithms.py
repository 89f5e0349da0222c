"""The algorithms by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from berthline.errors import ConfigError, unknown_name
from berthline.learn.settings import check_minibatches, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.learn.algorithm import Algorithm
    from berthline.learn.environments import Environments
    from berthline.learn.networks import NetworkConfig

ALGORITHMS = ("ppo", "d3qn", "sac", "meta-dqn", "bc")


def config_of(name: str, given: Mapping[str, Any]) -> Any:
    """Return the settings of an algorithm, with those that were given.

    Raises:
        ConfigError: no such algorithm or setting, or a value that it does not take.
    """
    return read_settings(name, _kind(name)[1], given)


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
        ConfigError: it learns from what is long past, which pairs of PickPlace are not kept for;
            or there are more minibatches than steps.
    """
    if envs.layout.has_pairs and name not in ("ppo", "bc"):
        raise ConfigError(
            f"{name} does not learn PickPlace",
            expected="ppo or bc",
            hint="or train Pick and Place one after the other",
        )
    check_minibatches(name, config, envs.num)
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
