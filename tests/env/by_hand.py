"""Small episodes played action by action, so that results can be computed by hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
from tests.env.agents import plain

import berthline  # noqa: F401 - registers the environments
from berthline.env.registration import SEATS, env_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.single import SchedulingEnv
    from berthline.model.workload import Workload

IDS = {seat: env_id(name) for name, seat in SEATS.items()}
Action = int | tuple[int, int]


@dataclasses.dataclass
class Episode:
    """The results of an episode.

    Attributes:
        times: of the questions.
        seen: their observations, then the final one.
        rewards: one for each action.
        terms: the same, by the terms' names.
        terminated: how it ended.
        info: of the last step.
    """

    times: list[float]
    seen: list[Any]
    rewards: list[float]
    terms: list[dict[str, float]]
    terminated: bool
    info: dict[str, Any]

    def sum_of(self, term: str) -> float:
        return sum(step[term] for step in self.terms)


def make(seat: str, workload: Workload | None = None, **options: Any) -> SchedulingEnv:
    """Return an environment with plain options for those not given.

    Each episode is the whole workload, if one is given.
    """
    defaults = {} if "preset" in options else plain(seat)
    if workload is not None:
        defaults |= {"workload": workload, "episode_jobs": None, "load": None, "dials": {}}
    env: Any = gym.make(IDS[seat], **(defaults | options)).unwrapped
    return env


def play(env: SchedulingEnv, *actions: Action, seed: int = 0) -> Episode:
    """Play exactly these actions; the last must end the episode."""
    given = iter(actions)
    episode = play_by(env, lambda _: next(given), seed=seed)
    assert next(given, None) is None, "the episode was over before the last action"
    return episode


def play_by(
    env: SchedulingEnv, choose: Callable[[dict[str, Any]], Action], *, seed: int = 0
) -> Episode:
    """Play an episode; `choose` gets the info."""
    seen, info = env.reset(seed=seed)
    episode = Episode([], [seen], [], [], terminated=False, info=info)
    truncated = False
    while not (episode.terminated or truncated):
        episode.times.append(env.question()["now"])
        seen, reward, episode.terminated, truncated, episode.info = env.step(choose(episode.info))
        assert "illegal" not in episode.info
        episode.seen.append(seen)
        episode.rewards.append(reward)
        values = episode.info["reward_terms"].tolist()
        episode.terms.append(dict(zip(env.reward_terms, values, strict=True)))
    return episode


def first_allowed(info: dict[str, Any]) -> int:
    return int(np.flatnonzero(info["action_mask"])[0])


def at_random(seed: int) -> Callable[[dict[str, Any]], int]:
    rng = np.random.default_rng(seed)
    return lambda info: int(rng.choice(np.flatnonzero(info["action_mask"])))
