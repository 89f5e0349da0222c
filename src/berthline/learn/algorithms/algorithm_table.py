"""The algorithms by name."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

import msgspec

from berthline.env.registration import seat_of
from berthline.errors import ConfigError, unknown_name
from berthline.learn.algorithms import configs
from berthline.learn.algorithms.settings import check_minibatches, read_settings, setting_rows
from berthline.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.learn.algorithms.algorithm import Algorithm
    from berthline.learn.networks.networks import NetworkConfig
    from berthline.learn.training.environments import Environments


_Class = TypeVar("_Class", bound=type)
_MEMBERS = ("iterate", "tensors", "state", "restore")
"""Methods of an algorithm; see `Algorithm`."""


class Entry(NamedTuple):
    """One algorithm. Our modules need torch, so they are imported on first use.

    Attributes:
        module: in `berthline.learn.algorithms`; of another package, its full name.
        algorithm: the name of its class; see `Algorithm`.
        config: the struct with its settings.
        steps: the default number of steps: some minutes on one core.
        learns_pairs: whether it can learn PickPlace.
        changes_options: whether its settings change the environments; then its module has a
            function `environment_options`.
        seat: the seat it is made for, which it takes unless another is named; empty = any.
        registered: the class of an algorithm of another package; None = it is in our module.
    """

    module: str
    algorithm: str
    config: type[msgspec.Struct]
    steps: int
    learns_pairs: bool = False
    changes_options: bool = False
    seat: str = ""
    registered: type | None = None

    def made(self) -> Any:
        """Return the class."""
        return self.load(self.algorithm) if self.registered is None else self.registered

    def load(self, name: str) -> Any:
        """Return an attribute of our module."""
        return getattr(importlib.import_module(f"berthline.learn.algorithms.{self.module}"), name)


_OWN = {
    "ppo": Entry("ppo", "PPO", configs.PPOConfig, steps=250_000, learns_pairs=True),
    "d3qn": Entry("dqn", "DQN", configs.DQNConfig, steps=60_000),
    "sac": Entry("sac", "SAC", configs.SACConfig, steps=50_000),
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


@overload
def register_algorithm(name: str) -> Callable[[_Class], _Class]: ...
@overload
def register_algorithm(name: str, algorithm: _Class) -> _Class: ...
def register_algorithm(name: str, algorithm: Any = None) -> Any:
    """Add an algorithm, usable at once by `berthline.train` and `berthline train NAME`.

    Without `algorithm` this is a decorator of the class. A package can add one by an entry point in
    the group `berthline.algorithms`, which names the class.

    Args:
        name: lower-case words joined by hyphens.
        algorithm: a class with the members of `berthline.training.Algorithm`, made with
            (environments, network configuration, settings, seed=...). Its attributes:
            `Settings`, a msgspec.Struct with a default for each setting, among them `rollout`;
            `default_steps`, the default of `--steps`; and, if it needs one environment, `env`.

    Raises:
        ConfigError: the name is taken or malformed, or something is missing in the class.

    Example:
        @berthline.register_algorithm("reinforce")
        class Reinforce: ...
    """
    if algorithm is None:
        return lambda found: register_algorithm(name, found)
    where = f"algorithm {name!r}"
    if not isinstance(algorithm, type):
        raise ConfigError(f"it is {algorithm!r}", where=where, expected="a class")
    missing = [member for member in _MEMBERS if not callable(getattr(algorithm, member, None))]
    if missing:
        raise ConfigError(
            f"the class {algorithm.__name__} has no method {missing[0]}",
            where=where,
            expected=f"the methods {', '.join(_MEMBERS)}: see berthline.training.Algorithm",
        )
    settings, steps = (getattr(algorithm, name, None) for name in ("Settings", "default_steps"))
    if not isinstance(settings, type) or not issubclass(settings, msgspec.Struct):
        raise ConfigError(
            f"Settings of {algorithm.__name__} is {settings!r}",
            where=where,
            expected="a subclass of msgspec.Struct",
        )
    setting_rows(name, settings)
    if not isinstance(steps, int) or steps < 1:
        raise ConfigError(
            f"default_steps of {algorithm.__name__} is {steps!r}",
            where=where,
            expected="a whole number from 1 on",
        )
    env = getattr(algorithm, "env", "")
    entry = Entry(
        algorithm.__module__,
        algorithm.__qualname__,
        settings,
        steps=steps,
        learns_pairs=bool(getattr(algorithm, "learns_pairs", False)),
        seat=seat_of(env) if env else "",
        registered=algorithm,
    )
    ALGORITHMS.add(name, entry, is_same=lambda old, new: old[:2] == new[:2])
    return algorithm


ALGORITHMS = Registry[Entry](
    "an algorithm",
    "berthline.algorithms",
    _OWN,
    lambda name, value: register_algorithm(name, value),
)
"""Every algorithm by its name."""


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
    made: Algorithm = entry.made()(envs, network, config, seed=seed)
    return made


def _entry(name: str) -> Entry:
    if name in ALGORITHMS:
        return ALGORITHMS[name]
    what, expected, hint = unknown_name("algorithm", name, ALGORITHMS)
    raise ConfigError(what, expected=expected, hint=hint)
