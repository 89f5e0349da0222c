"""Play: episodes of an environment with an agent of a few lines, a rule, or a learned policy.

All run in native batches with the environment's own reward, so that they can be compared. A rule
that fills all seats plays as the only entry of a menu in Meta: the log is that of `simulate`, and
the reward is counted as in any other seat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.deploy.run_policy import load_policy
from berthline.deploy.trained_policy import read_policy
from berthline.env.experts import expert_actions
from berthline.env.observation_layout import ObservationLayout
from berthline.env.options import ONLY_OF, resolve_options
from berthline.env.pick_place_actions import Pairs
from berthline.env.vector import SchedulingVectorEnv

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.policies.learned import Learned

    Actions = npt.NDArray[np.int64]
    Choose = Callable[["Players"], Actions]

BATCH = 256
"""Episodes that are played together, at most."""
EVALUATION_SEED = 970_000_000
"""Seed of the first evaluation episode; the others have the next ones. REPORT of training has
seeds below (learn/training/episode_seeds.py), so nothing was trained or chosen on these."""
NEVER = 2**31 - 1

OF_THE_TASK = (
    *("workload", "cluster", "episode_jobs", "start", "warm_rule", "load", "dials", "slice"),
    *("split", "split_gap", "split_fractions", "missing_types", "conditions", "knowledge"),
    *("reward", "reward_weights", "baseline", "horizon_factor", "max_steps"),
)
"""Options that say what is to be done, and not how a policy sees and does it."""

_LEAST: dict[str, Any] = {
    "features": {"jobs": ["gpus"], "nodes": [], "running": [], "globals": []},
    "window": 1,
    "observation": "flat",
}
"""The smallest observation, for what does not read it."""


class Played(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes that were played.

    Attributes:
        name: of the policy.
        returns: the sum of rewards of each episode.
        decisions: how many questions there were.
        choices: how many of them had more than one allowed action.
    """

    name: str
    returns: list[float]
    decisions: int
    choices: int


class Players:
    """A batch of environments that are asked what comes next.

    Attributes:
        num: how many.
        masks: (num, actions), of pairs in PickPlace; overwritten by every step.
        observations: (num, size), flat; also overwritten.
        vector: the batch itself.
    """

    def __init__(self, seat: str, options: Mapping[str, Any], num: int) -> None:
        flat = {**options, "observation": "flat"}
        self.vector = SchedulingVectorEnv(num, seat, copy=False, **flat)
        self.num = num
        native = self.vector._envs
        self._pairs = Pairs(native) if seat == "pickplace" else None
        self.masks = native.mask if self._pairs is None else self._pairs.masks
        self.observations = native.observation
        self._native = native

    def play(self, choose: Choose, seeds: list[int], name: str) -> Played:
        """Play the first episode of each of these seeds to its end."""
        self.vector.reset(seed=[*seeds])
        left = np.ones(self.num, np.bool_)
        returns = np.zeros(self.num)
        decisions = choices = 0
        while left.any():
            if self._pairs is not None:
                self._pairs.look()
            allowed = np.count_nonzero(self.masks, axis=1)
            decisions += int(left.sum())
            choices += int((allowed[left] > 1).sum())
            actions = choose(self)
            if self._pairs is not None:
                actions = self._pairs.split(actions)
            self._native.step(actions)
            returns[left] += self._native.reward[left]
            left &= ~self._native.ended
        return Played(name=name, returns=returns.tolist(), decisions=decisions, choices=choices)


def play(
    seat: str,
    options: Mapping[str, Any],
    choose: Choose,
    *,
    name: str,
    episodes: int,
    seed: int = EVALUATION_SEED,
) -> Played:
    """Play evaluation episodes.

    Args:
        seat: of the environment.
        options: of the environment.
        choose: returns the actions of all environments.
        name: of what plays.
        episodes: how many.
        seed: of the first episode.
    """
    found: list[Played] = []
    players = None
    for first in range(0, episodes, BATCH):
        count = min(BATCH, episodes - first)
        if players is None or players.num != count:
            players = Players(seat, options, count)
        seeds = [seed + first + number for number in range(count)]
        found.append(players.play(choose, seeds, name))
    return Played(
        name=name,
        returns=[value for part in found for value in part.returns],
        decisions=sum(part.decisions for part in found),
        choices=sum(part.choices for part in found),
    )


def first_allowed(players: Players) -> Actions:
    """Return the first allowed action, the agent that does not choose."""
    found: Actions = players.masks.argmax(axis=1)
    return found


def last_allowed(players: Players) -> Actions:
    """Return the last allowed action: start in Gate, the no-op where there is one."""
    size: int = players.masks.shape[1]
    found: Actions = size - 1 - players.masks[:, ::-1].argmax(axis=1)
    return found


def at_random(seed: int) -> Choose:
    """Return an agent whose actions are all equally likely."""
    draws = np.random.Generator(np.random.Philox(seed))

    def choose(players: Players) -> Actions:
        noise = draws.random(players.masks.shape, np.float32)
        found: Actions = np.where(players.masks, noise, -1.0).argmax(axis=1)
        return found

    return choose


def as_expert(expert: str) -> Choose:
    """Return an agent that does what a rule would do; it must be among the options `experts`."""

    def choose(players: Players) -> Actions:
        actions = np.ascontiguousarray(expert_actions(players.vector, expert), np.int64)
        return actions if players._pairs is None else players._pairs.joined(actions)

    return choose


def rule_environment(options: Mapping[str, Any], scheduler: str) -> dict[str, Any]:
    """Return the options of Meta in which a scheduler runs the jobs of another environment."""
    others = {"placement", "order", "discipline", "gate", "window_policy", "window_formulas"}
    others |= {
        "lookahead",
        "lookahead_size",
        "lookahead_seconds",
        "experts",
        "running_order",
        "credit",
    }
    kept = {
        key: value for key, value in options.items() if key not in ONLY_OF and key not in others
    }
    return {
        **kept,
        **_LEAST,
        "schedulers": [scheduler],
        "every_events": NEVER,
    }


def policy_environment(learned: Learned, seat: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the environment of a policy, with the jobs and the reward of another environment."""
    own = dict(read_policy(learned).facts["config"]["options"])
    task = resolve_options(seat, options)
    return (
        own | {name: getattr(task, name) for name in OF_THE_TASK} | {"experts": (), "credit": None}
    )


def as_policy(learned: Learned, seat: str, options: Mapping[str, Any]) -> Choose:
    """Return an agent that is a learned policy: the action with the highest score.

    Args:
        learned: the policy.
        seat: its seat.
        options: of the environment that it plays in.
    """
    layout = ObservationLayout.of(SchedulingVectorEnv(1, seat, **options).plan)
    answer = load_policy(learned, layout).choose

    def choose(players: Players) -> Actions:
        rows = zip(players.observations, players.masks, strict=True)
        return np.array([answer(row, mask) for row, mask in rows], np.int64)

    return choose
