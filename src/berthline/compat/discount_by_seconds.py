"""Wrappers that say how much each step discounts what comes after it, by the time that it took."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorWrapper

from berthline.env.option_types import number

_HORIZON = number(0, above=True)


class DiscountBySeconds(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds `info["discount"]` to every step: exp(-seconds / horizon).

    A step takes from no time at all to hours. A discount per step therefore pays an agent for
    taking more steps until the costs come; a discount by time does not. An algorithm uses it in
    place of its gamma: `target = reward + discount * value(next) * (1 - terminated)`.

    Args:
        env: one environment.
        horizon: seconds of simulated time after which rewards count 1 / e.

    Example:
        >>> import berthline, gymnasium as gym
        >>> from berthline.environments import DiscountBySeconds
        >>> env = DiscountBySeconds(gym.make("berthline/Pick-v0"), horizon=7200)
        >>> _, info = env.reset(seed=1)
        >>> *_, info = env.step(info["action_mask"].argmax())
        >>> bool(info["discount"] == np.exp(-info["seconds"] / 7200))
        True
    """

    def __init__(self, env: gymnasium.Env[Any, Any], horizon: float) -> None:
        super().__init__(env)
        self.horizon: float = _HORIZON.take("horizon", horizon)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Carry out a decision; see the environment's own `step`."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        info["discount"] = float(np.exp(-info["seconds"] / self.horizon))
        return observation, reward, terminated, truncated, info


class DiscountBySecondsVector(VectorWrapper):
    """The same for a batch: `infos["discount"]` has one number for each environment.

    Args:
        env: a batch of environments.
        horizon: seconds of simulated time after which rewards count 1 / e.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any], horizon: float) -> None:
        super().__init__(env)
        self.horizon: float = _HORIZON.take("horizon", horizon)

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Carry out one decision everywhere; see the batch's own `step`."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        infos["discount"] = np.exp(-infos["seconds"] / self.horizon)
        infos["_discount"] = infos["_seconds"]
        return observations, rewards, terminated, truncated, infos
