"""Environments as algorithms see them: flat arrays, and a position that can be restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.env.experts import expert_actions
from berthline.env.native_envs import SCORES
from berthline.env.observation_layout import ObservationLayout
from berthline.env.pick_place_actions import Pairs
from berthline.env.vector import SchedulingVectorEnv

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

_MOST_SCATTERED = 2048
"""Largest number of steps of `Environments.scatter`."""


class Environments:
    """Environments that step together, for learning.

    The state of an environment follows from its episode and the actions in it. `position` returns
    both, and `restore` repeats the actions.

    Attributes:
        observations: (num, size) of float32; overwritten by every step.
        masks: (num, actions) of bool; overwritten by every step.
        seconds: (num,) simulated time that passed in the last step.
        layout: of the observations.

    Args:
        seat: pick, place, ...
        num: number of environments.
        seed: environment i has the seed `seed + i`; or a list with the seed of each.
        options: see `berthline.env.options.Options`.
        num_threads: threads that step them.
    """

    def __init__(
        self,
        seat: str,
        *,
        num: int,
        seed: int | list[int],
        options: Mapping[str, Any],
        num_threads: int = 1,
    ) -> None:
        flat = {**options, "observation": "flat"}
        self._vector = SchedulingVectorEnv(num, seat, copy=False, num_threads=num_threads, **flat)
        self._envs = self._vector._envs
        self.num = num
        self.plan = self._vector.plan
        self.layout = ObservationLayout.of(self.plan)
        self.observations = self._envs.observation
        self._pairs = Pairs(self._envs) if self.layout.has_pairs else None
        self.masks = self._envs.mask if self._pairs is None else self._pairs.masks
        self._since: list[list[int]] = [[] for _ in range(num)]
        self._returns: npt.NDArray[np.float64] = np.zeros(num)
        self.seconds = self._envs.seconds
        # Not those of `batch_seeds`: `episode_seeds.py` keeps a range for each training.
        seeds = range(seed, seed + num) if isinstance(seed, int) else seed
        self._vector.reset(seed=[*seeds])
        self._look()

    def step(
        self, actions: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Step all; return rewards, and which episodes terminated or were truncated.

        The next step overwrites the arrays.
        """
        self._step(actions)
        ended = self._envs.terminated | self._envs.truncated
        for history, action in zip(self._since, actions.tolist(), strict=True):
            history.append(action)
        for env in np.flatnonzero(ended):
            self._since[env].clear()
        return self._envs.reward, self._envs.terminated, self._envs.truncated

    def _step(self, actions: npt.NDArray[np.int64]) -> None:
        # Environments whose episode was over have begun another.
        self._returns[self._envs.terminated | self._envs.truncated] = 0.0
        self._envs.step(actions if self._pairs is None else self._pairs.split(actions))
        self._look()
        self._returns += self._envs.reward

    def _look(self) -> None:
        if self._pairs is not None:
            self._pairs.look()

    def last_observations(self, envs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the last observations of episodes that ended in the last step."""
        return self._envs.final_observation[envs]

    def last_masks(self, envs: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return the last masks of episodes that ended in the last step."""
        return self._envs.final_mask[envs]

    def scores(self, envs: npt.NDArray[np.int64]) -> dict[str, npt.NDArray[np.float64]]:
        """Return the scores of episodes that ended in the last step."""
        found = dict(zip(SCORES, self._envs.scores[envs].T, strict=True))
        found["return"] = self._returns[envs]
        return found

    def start(self, env: int) -> Snapshot | None:
        """Return the state in which an environment's episode began; None = an empty cluster."""
        return self._vector.start(env)

    def workload(self, env: int) -> Workload:
        """Return the jobs of an environment's current episode."""
        return self._envs.workload(env)

    def set_load(self, low: float, high: float | None = None) -> None:
        """Set the load of episodes that have not begun; see `SchedulingVectorEnv.set_load`."""
        self._vector.set_load(low, high)

    def expert_actions(self, expert: str) -> npt.NDArray[np.int64]:
        """Return the action of an expert (option `experts`) in every environment."""
        actions = np.ascontiguousarray(expert_actions(self._vector, expert), np.int64)
        return actions if self._pairs is None else self._pairs.joined(actions)

    def scatter(self, seed: int) -> None:
        """Go to a random step of every environment's first episode, by random actions.

        Otherwise the clusters of all environments would fill and empty at the same time.
        """
        draws = np.random.Generator(np.random.Philox(seed))
        position, lengths = self.position(), np.zeros(self.num, np.int64)
        histories: list[npt.NDArray[np.int64]] = []
        while not lengths.all() and len(histories) < _MOST_SCATTERED:
            noise = draws.random(self.masks.shape)
            histories.append(np.where(self.masks, noise, -1.0).argmax(axis=1))
            _, terminated, truncated = self.step(histories[-1])
            lengths[(lengths == 0) & (terminated | truncated)] = len(histories)
        lengths[lengths == 0] = len(histories)
        kept = (draws.random(self.num) * lengths).astype(np.int64)
        actions = np.stack(histories)
        for env, entry in enumerate(position):
            entry["actions"] = actions[: kept[env], env].tolist()
        self.restore(position)

    def position(self) -> list[dict[str, Any]]:
        """Return the seed, the episode and its actions so far, for every environment."""
        return [
            {"seed": seed, "episode": episode, "actions": list(self._since[env])}
            for env in range(self.num)
            for seed, episode in [self._vector.episode_key(env)]
        ]

    def restore(self, position: list[dict[str, Any]]) -> None:
        """Restore a position: begin the episodes and repeat the actions."""
        histories = [entry["actions"] for entry in position]
        longest = max(map(len, histories))
        actions = np.zeros(self.num, np.int64)
        # All finish together: an environment with fewer actions to repeat begins later.
        for time in range(longest + 1):
            begin = [env for env, h in enumerate(histories) if len(h) == longest - time]
            for env in begin:
                self._envs.seed(env, position[env]["seed"], position[env]["episode"])
            if begin:
                self._envs.reset(begin)
                self._look()
                self._returns[begin] = 0.0
            if time == longest:
                break
            for env, history in enumerate(histories):
                at = time - (longest - len(history))
                actions[env] = history[at] if at >= 0 else 0
            self._step(actions)
        self._since = [list(history) for history in histories]
