"""Bandits at work: rules that learn within the run, from what a scheduler can observe then.

A bandit is asked like a learned policy of the seat Meta: while jobs wait, at most every 10 minutes.
It learns when it is asked again, T seconds later. Its reward compares how much waiting the choice
has avoided with how much its choices avoid on average:

    r = V / (V + mean of V so far), between 0 and 1: 0.5 = as usual
    V = (W0 - W) / T^2, about half of the jobs started per second
    W = seconds that jobs have waited since, summed over jobs
    W0 = the same if none had started: those that waited and those that came, until now

No run time is in it, neither of finished nor of other jobs; all of it is known when it is used. The
share avoided, 1 - W / W0, would be next to 0 whatever the choice where the queue is long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from berthline.env.presets import PRESETS
from berthline.env.seat_defaults import SEAT_DEFAULTS
from berthline.errors import PolicyError
from berthline.policies.scheduler import Scheduler
from berthline.random_streams import stream_key, uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.deploy.policy_run import PolicyRun
    from berthline.policies.bandits import Bandit

Floats = npt.NDArray[np.float64]

FEATURES = (
    "utilization",
    "queue_len / (queue_len + 32)",
    "queued_gpus / (queued_gpus + total_gpus)",
    "tanh(arrival_rate * 6)",
    "tanh(arrival_burstiness / 4)",
)
"""What LinUCB sees, besides a constant 1. No word of it depends on run times."""

_QUEUE = "queue_len"
_REWARD = {"waiting": ("second", _QUEUE)}


def menu_of(bandit: Bandit, knowledge: str) -> tuple[str, ...]:
    """Return the schedulers that a bandit chooses from.

    Without run times, those that need them are left out.

    Raises:
        PolicyError: fewer than two are left.
    """
    if bandit.menu == "meta":
        own = SEAT_DEFAULTS["meta"]
        texts = list(own["schedulers"])
    else:
        own = PRESETS[bandit.menu].options
        texts = [f"{order}+{own['discipline']}" for order in own["schedulers"]]
    menu = [Scheduler.parse(text) for text in texts]
    if knowledge == "none":
        menu = [one for one in menu if not one.needs_run_times]
    if len(menu) < 2:
        raise PolicyError(
            f"{len(texts) - len(menu)} of {len(texts)} schedulers on the menu need run times, but "
            "knowledge is 'none'",
            where=bandit.text,
            expected="two schedulers or more",
            hint="the menu rlmetadqn has four without run times: "
            f"bandit:{bandit.kind}:menu=rlmetadqn",
        )
    return tuple(map(str, menu))


def options_of(bandit: Bandit, knowledge: str) -> dict[str, Any]:
    """Return the options of the environment that asks a bandit."""
    return {
        "knowledge": knowledge,
        "schedulers": menu_of(bandit, knowledge),
        "every_seconds": bandit.options["every"],
        "features": {"jobs": [], "nodes": [], "running": [], "globals": [*FEATURES, _QUEUE]},
        "reward": _REWARD,
    }


class Learner(Protocol):
    """Chooses one of several arms again and again."""

    def choose(self, context: Floats) -> int:
        """Return an arm."""

    def learn(self, arm: int, context: Floats, reward: float) -> None:
        """Learn from the reward, between 0 and 1, of an arm chosen in a context."""


class EpsilonGreedy:
    """The best mean so far, or any; each arm is tried once first. Of equal ones, the first."""

    def __init__(self, arms: int, *, seed: int, epsilon: float) -> None:
        self._key = stream_key(seed, "bandit/epsilon-greedy")
        self._epsilon, self._asked = epsilon, 0
        self._count, self._sum = np.zeros(arms), np.zeros(arms)

    def choose(self, context: Floats) -> int:  # noqa: ARG002 - one signature
        """Return an arm."""
        asked, self._asked = self._asked, self._asked + 1
        if (self._count == 0).any():
            return int(np.argmin(self._count > 0))
        if uniform(self._key, asked, 0) < self._epsilon:
            return int(uniform(self._key, asked, 1) * len(self._count))
        return int(np.argmax(self._sum / self._count))

    def learn(self, arm: int, context: Floats, reward: float) -> None:  # noqa: ARG002
        """Learn from a reward."""
        self._count[arm] += 1
        self._sum[arm] += reward


class Exp3:
    """EXP3 (Auer, Cesa-Bianchi, Freund and Schapire, SIAM Journal on Computing 32(1), 2002)."""

    def __init__(self, arms: int, *, seed: int, gamma: float) -> None:
        self._key = stream_key(seed, "bandit/exp3")
        self._gamma, self._asked = gamma, 0
        self._logs = np.zeros(arms)  # of the weights, which would overflow
        self._shares = np.full(arms, 1 / arms)

    def choose(self, context: Floats) -> int:  # noqa: ARG002
        """Return an arm."""
        weights = np.exp(self._logs - self._logs.max())
        arms = len(weights)
        self._shares = (1 - self._gamma) * weights / weights.sum() + self._gamma / arms
        asked, self._asked = self._asked, self._asked + 1
        draw = uniform(self._key, asked)
        found = int(np.searchsorted(np.cumsum(self._shares), draw, side="right"))
        return min(found, arms - 1)

    def learn(self, arm: int, context: Floats, reward: float) -> None:  # noqa: ARG002
        """Learn from a reward."""
        self._logs[arm] += self._gamma * reward / (self._shares[arm] * len(self._logs))


class LinUcb:
    """LinUCB with disjoint models (Li, Chu, Langford and Schapire, WWW 2010)."""

    def __init__(self, arms: int, *, features: int, alpha: float) -> None:
        self._alpha = alpha
        self._inverse = np.stack([np.eye(features)] * arms)
        self._sum = np.zeros((arms, features))

    def choose(self, context: Floats) -> int:
        """Return an arm; of equal ones, the first."""
        seen = self._inverse @ context
        bounds = (self._sum * seen).sum(axis=1) + self._alpha * np.sqrt(seen @ context)
        return int(np.argmax(bounds))

    def learn(self, arm: int, context: Floats, reward: float) -> None:
        """Learn from a reward; the inverse is updated by Sherman and Morrison's formula."""
        seen = self._inverse[arm] @ context
        self._inverse[arm] -= np.outer(seen, seen) / (1 + context @ seen)
        self._sum[arm] += reward * context


_LEARNERS: Mapping[str, Callable[[int, int, Mapping[str, float]], Learner]] = {
    "epsilon-greedy": lambda arms, seed, options: EpsilonGreedy(
        arms, seed=seed, epsilon=options["epsilon"]
    ),
    "exp3": lambda arms, seed, options: Exp3(arms, seed=seed, gamma=options["gamma"]),
    "linucb": lambda arms, _, options: LinUcb(
        arms, features=1 + len(FEATURES), alpha=options["alpha"]
    ),
}


class BanditChoice:
    """Answers the questions of a run, and learns from each when the next one comes.

    Args:
        bandit: the rule of learning.
        running: the run; its questions tell the clock and how long jobs have waited since.
        submit: when jobs are submitted; read up to the clock only.
        seed: of the run.

    Attributes:
        choices: (time, arm) of each answer.
        rewards: of each answer but the last.
    """

    def __init__(
        self, bandit: Bandit, running: PolicyRun, submit: npt.NDArray[np.float64], *, seed: int
    ) -> None:
        self._running, self._submit = running, submit
        self._learner = _LEARNERS[bandit.kind](len(running.mask), seed, bandit.options)
        self._context, self._queue, self._avoided = np.zeros(0), 0.0, 0.0
        self.choices: list[tuple[float, int]] = []
        self.rewards: list[float] = []

    def choose(self, observation: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_]) -> int:  # noqa: ARG002 - every choice is allowed
        """Learn from what the last answer led to, and return the next one."""
        asked = self._running.question()
        now = float(asked["now"])
        if self.choices:
            since, arm = self.choices[-1]
            reward = self._reward(since, now, waited=float(asked["reward"]))
            self._learner.learn(arm, self._context, reward)
            self.rewards.append(reward)
        self._context = np.concatenate(([1.0], observation[:-1].astype(np.float64)))
        self._queue = float(observation[-1])
        arm = self._learner.choose(self._context)
        self.choices.append((now, arm))
        return arm

    def _reward(self, since: float, now: float, *, waited: float) -> float:
        first, last = np.searchsorted(self._submit, (since, now), side="right")
        came = float((now - self._submit[first:last]).sum())
        most = self._queue * (now - since) + came
        avoided = max(most - waited, 0.0) / (now - since) ** 2
        self._avoided += avoided
        both = avoided + self._avoided / (1 + len(self.rewards))
        return avoided / both if both > 0 else 0.5
