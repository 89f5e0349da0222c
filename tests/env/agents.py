"""Agents for tests: they choose from masks, and each environment has its own random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from berthline.env.episodes_source import batch_seeds
from berthline.env.options import Options
from berthline.env.seat_defaults import SEAT_DEFAULTS
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv

SEATS = ("pick", "place", "pickplace", "meta", "backfill", "gate", "preempt")
SMALL: dict[str, Any] = {
    "workload": "synthetic",
    "cluster": "uniform:3x4:V100",
    "episode_jobs": 16,
    "load": 1.5,
    "window": 5,
    "running_window": 4,
}
"""Options of episodes that are short, and busy enough for questions in every seat."""


def plain(seat: str) -> dict[str, Any]:
    """Return plain options in place of the seat's defaults: of those, only the ones that differ."""
    options = Options()
    return {name: getattr(options, name) for name in SEAT_DEFAULTS[seat]}


def options_of(seat: str, **more: Any) -> dict[str, Any]:
    """Return small and plain options for a seat; endless preemption is cut off."""
    return {**plain(seat), **small_task(seat, **more)}


def small_task(seat: str, **more: Any) -> dict[str, Any]:
    """Return small options for a seat, all others by default; endless preemption is cut off."""
    endless = {"max_restarts": 3} if seat == "preempt" else {}
    return {**SMALL, **endless, **more}


def first_allowed(mask: npt.NDArray[np.bool_], seat: str) -> Any:
    """Return the first allowed action; for PickPlace, the first row and node."""
    if seat != "pickplace":
        return int(np.argmax(mask))
    window = SMALL["window"]
    return np.array([np.argmax(mask[: window + 1]), np.argmax(mask[window + 1 :])])


def random_action(rng: np.random.Generator, mask: npt.NDArray[np.bool_], seat: str) -> Any:
    """Return an allowed action; for PickPlace, with a node that some allowed job may take."""
    if seat != "pickplace":
        return int(rng.choice(np.flatnonzero(mask)))
    window = SMALL["window"]
    nodes = np.flatnonzero(mask[window + 1 :])
    row = rng.choice(np.flatnonzero(mask[: window + 1]))
    return np.array([row, rng.choice(nodes)])


class Trajectory:
    """What one environment showed, step after step."""

    def __init__(self) -> None:
        self.observations: list[npt.NDArray[Any]] = []
        self.masks: list[npt.NDArray[np.bool_]] = []
        self.rewards: list[float] = []
        self.ends: list[tuple[bool, bool]] = []
        self.scores: list[dict[str, float]] = []

    def equals(self, other: Trajectory) -> bool:
        """Whether both are the same, bit for bit."""
        return (
            all(map(np.array_equal, self.observations, other.observations))
            and all(map(np.array_equal, self.masks, other.masks))
            and self.rewards == other.rewards
            and self.ends == other.ends
            and self.scores == other.scores
            and len(self.observations) == len(other.observations)
        )


def play_single(seat: str, seed: int, steps: int, **more: Any) -> Trajectory:
    """Return what one environment shows when it is reset after every episode."""
    options = options_of(seat, observation="flat", **more)
    return play_one(SchedulingEnv(seat, **options), seed, steps)


def play_one(env: SchedulingEnv, seed: int, steps: int) -> Trajectory:
    """Return what an environment with flat observations shows."""
    seat = env.plan.seat
    rng = np.random.default_rng(seed)
    found = Trajectory()
    observation, info = env.reset(seed=seed)
    for _ in range(steps):
        found.observations.append(np.asarray(observation))
        found.masks.append(info["action_mask"])
        action = random_action(rng, info["action_mask"], seat)
        observation, reward, terminated, truncated, info = env.step(action)
        found.rewards.append(reward)
        found.ends.append((terminated, truncated))
        if terminated or truncated:
            found.scores.append(info["sched"])
            observation, info = env.reset()
    return found


def play_vector(
    seat: str, seed: int, steps: int, num_envs: int, num_threads: int = 1, **more: Any
) -> list[Trajectory]:
    """Return what each environment of a batch shows."""
    options = options_of(seat, observation="flat", **more)
    return play_many(
        SchedulingVectorEnv(num_envs, seat, num_threads=num_threads, **options), seed, steps
    )


def play_many(envs: SchedulingVectorEnv, seed: int, steps: int) -> list[Trajectory]:
    """Return what each environment of a batch with flat observations shows."""
    seat = envs.plan.seat
    rngs = [np.random.default_rng(own) for own in batch_seeds(seed, envs.num_envs)]
    found = [Trajectory() for _ in rngs]
    observations, infos = envs.reset(seed=seed)
    for _ in range(steps):
        masks = infos["action_mask"]
        actions = np.stack([random_action(r, m, seat) for r, m in zip(rngs, masks, strict=True)])
        for i, one in enumerate(found):
            one.observations.append(observations[i])
            one.masks.append(masks[i])
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        for i, one in enumerate(found):
            one.rewards.append(float(rewards[i]))
            one.ends.append((bool(terminated[i]), bool(truncated[i])))
            if terminated[i] or truncated[i]:
                scores = infos["final_info"]["sched"]
                one.scores.append({name: float(table[i]) for name, table in scores.items()})
    return found
