"""The algorithms by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from berthline.errors import ConfigError, unknown_name
from berthline.learn.algorithms import configs
from berthline.learn.algorithms.settings import check_minibatches, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from berthline.learn.algorithms.algorithm import Algorithm
    from berthline.learn.networks.networks import NetworkConfig
    from berthline.learn.training.environments import Environments


class Entry(NamedTuple):
    """One algorithm. Its module needs torch, so it is imported on first use.

    Attributes:
        module: in `berthline.learn.algorithms`.
        algorithm: the name of its class; see `Algorithm`.
        config: the struct with its settings.
        steps: the default number of steps: some minutes on one core.
        learns_pairs: whether it can learn PickPlace.
        changes_options: whether its settings change the environments; then its module has a
            function `environment_options`.
        seat: the seat it is made for, which it takes unless another is named; empty = any.
    """

    module: str
    algorithm: str
    config: type[msgspec.Struct]
    steps: int
    learns_pairs: bool = False
    changes_options: bool = False
    seat: str = ""

    def load(self, name: str) -> Any:
        """Return an attribute of the module."""
        return getattr(importlib.import_module(f"berthline.learn.algorithms.{self.module}"), name)


ALGORITHMS: dict[str, Entry] = {
    "ppo": Entry("ppo", "PPO", configs.PPOConfig, steps=150_000, learns_pairs=True),
    "d3qn": Entry("dqn", "DQN", configs.DQNConfig, steps=40_000),
    "sac": Entry("sac", "SAC", configs.SACConfig, steps=40_000),
    "meta-dqn": Entry(
        "meta_dqn",
        "MetaDQN",
        configs.MetaDQNConfig,
        steps=20_000,
        changes_options=True,
        seat="meta",
    ),
    "bc": Entry("bc", "BC", configs.BCConfig, steps=1_000_000, learns_pairs=True),
}


def config_of(name: str, given: Mapping[str, Any]) -> Any:
    """Return the settings of an algorithm: those given, and defaults for the others.

    Raises:
        ConfigError: no such algorithm or setting, or an invalid value.
    """
    return read_settings(name, _entry(name).config, given)


def options_for(name: str, seat: str, options: Mapping[str, Any], config: Any) -> dict[str, Any]:
    """Return the options of the environments that an algorithm with these settings learns in."""
    entry = _entry(name)
    if not entry.changes_options:
        return dict(options)
    changed: dict[str, Any] = entry.load("environment_options")(seat, options, config)
    return changed


def make_algorithm(
    name: str, envs: Environments, network: NetworkConfig, config: Any, *, seed: int
) -> Algorithm:
    """Return a fresh instance.

    Raises:
        ConfigError: the algorithm cannot learn PickPlace because its replay buffer does not store
            pairs, or there are more minibatches than steps.
    """
    entry = _entry(name)
    if envs.layout.has_pairs and not entry.learns_pairs:
        able = [other for other, entry in ALGORITHMS.items() if entry.learns_pairs]
        raise ConfigError(
            f"{name} does not learn PickPlace",
            expected=" or ".join(able),
            hint="or train Pick and Place one after the other",
        )
    check_minibatches(name, config, envs.num)
    made: Algorithm = entry.load(entry.algorithm)(envs, network, config, seed=seed)
    return made


def _entry(name: str) -> Entry:
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    what, expected, hint = unknown_name("algorithm", name, ALGORITHMS)
    raise ConfigError(what, expected=expected, hint=hint)
