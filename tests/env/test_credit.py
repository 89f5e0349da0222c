"""Credit: each decision is rewarded with what it changes if an expert decides from then on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.environments import expert_actions
from berthline.errors import ConfigError, PolicyError

EXPERTS = {
    "pick": "sjf",
    "backfill": "sjf",
    "gate": "sqrt-area?express-lane:T=1200:r=0.3",
    "meta": "sjf+easy",
}


def random_action(mask: npt.NDArray[np.bool_], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def episode(env: SchedulingEnv, seed: int, choose: Any) -> tuple[list[Any], list[float], Any]:
    """Play an episode; return what was seen, the rewards and the scores."""
    observation, info = env.reset(seed=seed)
    seen, rewards, over = [observation], [], False
    while not over:
        observation, reward, terminated, truncated, info = env.step(choose(env))
        seen.append(observation)
        rewards.append(reward)
        over = terminated or truncated
    return seen, rewards, info["sched"]


@pytest.mark.parametrize("seat", EXPERTS)
def test_the_sum_is_the_return_less_that_of_the_expert(seat: str) -> None:
    expert = EXPERTS[seat]
    credited = SchedulingEnv(seat, credit=expert)
    plain = SchedulingEnv(seat, experts=[expert])
    rewarded = 0
    for seed in (1, 2):
        rng, same = np.random.default_rng(seed), np.random.default_rng(seed)
        seen, rewards, scores = episode(
            credited, seed, lambda env, rng=rng: random_action(env.action_masks(), rng)
        )
        seen_plain, _, own = episode(
            plain, seed, lambda env, rng=same: random_action(env.action_masks(), rng)
        )
        _, _, theirs = episode(plain, seed, lambda env: expert_actions(env, expert))
        assert sum(rewards) == pytest.approx(own["return"] - theirs["return"], rel=1e-9, abs=1e-9)
        assert scores["return"] == pytest.approx(sum(rewards), rel=1e-9, abs=1e-9)
        assert scores["mean_jct"] == own["mean_jct"]
        rewarded += sum(reward != 0 for reward in rewards)
        for one, other in zip(seen, seen_plain, strict=True):  # nothing of the future is seen
            for name in one:
                np.testing.assert_array_equal(one[name], other[name])
    assert rewarded > 3


@pytest.mark.parametrize("seat", EXPERTS)
def test_the_expert_itself_gets_exactly_0(seat: str) -> None:
    expert = EXPERTS[seat]
    env = SchedulingEnv(seat, credit=expert, experts=[expert])
    _, rewards, _ = episode(env, 5, lambda env: expert_actions(env, expert))
    assert rewards
    assert set(rewards) == {0.0}


def test_a_decision_costs_what_it_adds_to_the_waits_under_the_expert() -> None:
    """The same number, from forks that are played on by hand."""
    options: dict[str, Any] = {"experts": ["sjf"]}
    env = SchedulingEnv("pick", **options, credit="sjf")
    plain = SchedulingEnv("pick", **options)
    env.reset(seed=9)
    plain.reset(seed=9)
    rng = np.random.default_rng(0)

    def wait_under_sjf() -> float:
        rest, over = plain.fork(), False
        while not over:
            *_, terminated, truncated, info = rest.step(expert_actions(rest, "sjf"))
            over = terminated or truncated
        return float(info["sched"]["mean_wait"]) / 3600

    changed = 0
    for _ in range(25):
        before, action = wait_under_sjf(), random_action(plain.action_masks(), rng)
        _, reward, *_ = env.step(action)
        plain.step(action)
        assert reward == pytest.approx(before - wait_under_sjf(), abs=1e-9)
        changed += reward != 0
    assert changed > 3


def test_batches_on_threads_and_forks_get_the_same() -> None:
    batch = SchedulingVectorEnv(6, "pick", num_threads=2, episode_jobs=64, load=4.0, credit="sjf")
    batch.reset(seed=[*range(6)])
    rngs = [np.random.default_rng(i) for i in range(6)]
    singles = [SchedulingEnv("pick", episode_jobs=64, load=4.0, credit="sjf") for _ in range(6)]
    for i, env in enumerate(singles):
        env.reset(seed=i)
    fork = None
    for step in range(16):
        masks = batch.action_masks()
        actions = np.array([random_action(m, rng) for m, rng in zip(masks, rngs, strict=True)])
        _, rewards, terminated, truncated, _ = batch.step(actions)
        if fork is not None:
            np.testing.assert_array_equal(fork.step(actions)[1], rewards)
        assert not (terminated | truncated).any()
        assert rewards.tolist() == [
            env.step(int(a))[1] for env, a in zip(singles, actions, strict=True)
        ]
        if step == 8:
            fork = batch.fork()


@pytest.mark.parametrize(
    ("seat", "options", "error", "words"),
    [
        ("pick", {"semantics": "mask"}, ConfigError, "credit is 'sjf'"),
        ("place", {}, ConfigError, "credit is 'sjf'"),
        ("pickplace", {}, ConfigError, "credit is 'sjf'"),
        ("preempt", {}, ConfigError, "credit is 'sjf'"),
        ("meta", {}, PolicyError, "is not among the choices"),
        ("pick", {"credit": "nonsense"}, PolicyError, "nonsense"),
        ("pick", {"knowledge": "none"}, PolicyError, "needs run times"),
    ],
)
def test_what_cannot_be_credited_is_refused(
    seat: str, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        SchedulingEnv(seat, **{"credit": "sjf", **options})
