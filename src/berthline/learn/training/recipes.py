"""Recipes: how `train` learns the main claim of each preset in a minute or two of one core.

An environment and the settings of an algorithm belong together. A reward at the end of an episode
of 20 hours reaches no decision if rewards fade within two hours; a choice whose effect shows after
ten minutes needs other settings than one that shows at once. What is given beside a preset
replaces these values, one by one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from berthline.env.rewards import resolve_reward

NETWORK, HIDDEN, ENVS = "kernel", (32, 16), 256
"""What `train` uses unless told otherwise."""

_NO_FADING: dict[str, Any] = {"horizon": None, "trace_horizon": None}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Recipe:
    """How one algorithm learns in one preset.

    Attributes:
        settings: of the algorithm; also those that have today's defaults, which may change.
        network: kind of network.
        hidden: widths of its layers.
        envs: environments that step together.
        steps: environment steps in all; None = the algorithm's default.
    """

    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    network: str = NETWORK
    hidden: tuple[int, ...] = HIDDEN
    envs: int = ENVS
    steps: int | None = None


_PPO: dict[str, Any] = {"learning_rate": 1e-3, "minibatches": 8, "epochs": 4, "entropy": 0.01}
_OFF_POLICY: dict[str, Any] = {"horizon": 7200.0, "n_step": 10, "reuse": 6.0, "batch": 256}

# A replay of 50,000 states holds several episodes of 256 decisions of 32 environments.
_DRL = Recipe(settings={**_OFF_POLICY, "capacity": 50_000}, envs=32, steps=50_000)
# A host that is taken in part keeps a wide job waiting minutes later. A trace that has faded by
# then leaves that to the critic, and the policy learns the contrary of what is right.
_LSF = Recipe(
    settings={
        **_PPO,
        "horizon": 600.0,
        "trace_horizon": 600.0,
        "rollout": 128,
        "minibatches": 16,
        "learning_rate": 3e-3,
    },
    envs=128,
    steps=300_000,
)

RECIPES: dict[tuple[str, str], Recipe] = {
    ("rltune", "ppo"): Recipe(
        settings={**_PPO, **_NO_FADING, "trace": 0.99, "rollout": 128},
        envs=128,
        steps=800_000,
    ),
    ("drl-scheduler", "d3qn"): _DRL,
    ("drl-scheduler", "sac"): _DRL,
    ("drl-scheduler-busy", "d3qn"): _DRL,
    ("drl-scheduler-busy", "sac"): _DRL,
    ("rlmetadqn", "meta-dqn"): Recipe(
        settings={**_OFF_POLICY, "horizon": None}, network="mlp", envs=64, steps=60_000
    ),
    ("lsf", "ppo"): _LSF,
    ("lsf-busy", "ppo"): _LSF,
    ("lookahead", "ppo"): Recipe(
        settings={**_PPO, **_NO_FADING, "trace": 1.0, "rollout": 64}, steps=500_000
    ),
}
"""By preset and algorithm."""


def recipe_of(preset: str | None, algorithm: str) -> Recipe:
    """Return the recipe of a preset and an algorithm; without one, that of `train`."""
    return RECIPES.get((preset or "", algorithm), Recipe())


def settings_for_reward(reward: Any, weights: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """Return settings that follow from when rewards come.

    Rewards at the end of an episode do not fade by time, or no decision but the last would matter.

    Args:
        reward: the option `reward`.
        weights: the option `reward_weights`.
        known: the settings of the algorithm.
    """
    if not pays_at_the_end(reward, weights):
        return {}
    return {name: value for name, value in _NO_FADING.items() if name in known}


_AT_ONCE: dict[str, Any] = {"discount": 0.0, "n_step": 1, **_NO_FADING}
# Of the choices that a rule leaves out, only exploration says what they would have changed.
_CREDITED: dict[str, dict[str, Any]] = {
    "ppo": {"rollout": 16, "epochs": 6, "learning_rate": 4e-3},
    "d3qn": {"epsilon": 0.5, "epsilon_final": 0.2, "reuse": 24.0},
    "sac": {"entropy": 0.1, "reuse": 24.0, "learning_rate": 2e-3},
}


def settings_for_credit(
    algorithm: str, credit: str | None, known: tuple[str, ...]
) -> dict[str, Any]:
    """Return settings that follow from the option `credit`.

    A credited reward has all that a decision changes, so later rewards would only add noise.

    Args:
        algorithm: its name.
        credit: the option.
        known: the settings of the algorithm.
    """
    if credit is None:
        return {}
    at_once = {name: value for name, value in _AT_ONCE.items() if name in known}
    return {**at_once, **_CREDITED.get(algorithm, {})}


def pays_at_the_end(reward: Any, weights: Any) -> bool:
    """Whether all of a reward, or a part of it, comes at the end of an episode."""
    terms = resolve_reward(reward, weights).terms
    return any(term.occasion == "end" and term.weight for term in terms)
