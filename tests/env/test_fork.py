"""Forks: copies of environments in the middle of an episode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.agreement.random_agent_runs import random_agent_run
from tests.agreement.test_agent_agreement import SideBySide
from tests.agreement.test_start_agreement import started
from tests.env.agents import SEATS, options_of, random_action

from berthline.env.native_envs import SCORES
from berthline.env.reference_env import ReferenceEpisode
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, SimulationError
from berthline.sim.reference_agent import Answer, Question

STEPS = 40


def play(env: SchedulingEnv, rng: np.random.Generator, steps: int) -> list[Any]:
    """Return everything that an environment shows in some steps, and its logs, for comparison."""
    shown: list[Any] = [env.log().sha256()]
    mask = env.action_masks()
    for _ in range(steps):
        window = env.plan.options.window
        if env.plan.seat == "pickplace":
            row = int(rng.choice(np.flatnonzero(mask[: window + 1])))
            action: Any = [row, int(rng.integers(env.plan.cluster.num_nodes))]
        else:
            action = int(rng.choice(np.flatnonzero(mask)))
        observation, reward, terminated, truncated, info = env.step(action)
        mask = info["action_mask"]
        told = (info["reward_terms"].tobytes(), info.get("illegal"), repr(info.get("sched")))
        shown += [observation, mask, repr(reward), terminated, truncated, told, env.question()]
        if terminated or truncated:
            shown.append(env.log().sha256())
            observation, info = env.reset()
            mask = info["action_mask"]
            shown += [observation, mask]
    return [*shown, env.log().sha256()]


def are_equal(one: list[Any], other: list[Any]) -> bool:
    """Whether both have shown the same, bit for bit."""
    return len(one) == len(other) and all(
        np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
        for a, b in zip(one, other, strict=True)
    )


def check_fork(number: int) -> bool:
    """Check forks of a random environment at a random step; return whether they had to choose.

    Episodes of every third environment begin in the middle.
    """
    run, rng = random_agent_run(number), np.random.default_rng(number)
    if number % 3 == 0:
        run = started(run, rng) or run
    env = SchedulingEnv(run.seat, **run.options, observation="flat")
    env.reset(seed=run.seed)
    play(env, rng, int(rng.integers(0, 60)))
    question, log, mask = env.question(), env.log().sha256(), env.action_masks()
    fork, other = env.fork(), env.fork()
    play(other, np.random.default_rng(number + 1), int(rng.integers(1, 50)))
    assert env.question() == question
    assert env.log().sha256() == log
    np.testing.assert_array_equal(env.action_masks(), mask)
    other = env.fork(into=other)
    assert fork.workload().submit.tolist() == env.workload().submit.tolist()
    choices = int(rng.integers(2**40))
    expected = play(fork, np.random.default_rng(choices), STEPS)
    assert are_equal(play(env, np.random.default_rng(choices), STEPS), expected), number
    assert are_equal(play(other, np.random.default_rng(choices), STEPS), expected), number
    return not are_equal(play(env, rng, 5), play(fork, np.random.default_rng(1), 5))


def test_forks__continue_with_the_same_bits_and_disturb_nothing() -> None:
    differ = [check_fork(number) for number in range(60)]
    assert sum(differ) > 20


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_forks__of_many_environments(block: int) -> None:
    for number in range(1000 + block * 100, 1000 + (block + 1) * 100):
        check_fork(number)


class ForkedSideBySide(SideBySide):
    """Both simulators side by side, from a fork of both on."""

    def __init__(self, played: SideBySide, rng: np.random.Generator) -> None:
        self.env = played.env.fork()
        self.rng = rng
        self.reference = played.reference.fork(self.answer)
        self.observation, self.mask = played.observation, played.mask
        self.steps, self.illegal, self.is_over = played.steps, played.illegal, False
        self.reward, self.terms, self.info = played.reward, played.terms, played.info
        self.total = played.total


class _TimeToForkError(Exception):
    """The episode has come to the step at which it is forked."""


class Interrupted(SideBySide):
    """Both simulators side by side, until a step."""

    until = 0

    def answer(self, question: Question) -> Answer:
        """Answer, unless the time has come."""
        if self.steps == self.until:
            self.compare(question)
            raise _TimeToForkError
        return super().answer(question)


def check_fork_of_both(number: int) -> bool:
    """Fork both simulators at a step and play the rest in both; return whether it came so far."""
    rng = np.random.default_rng(number)
    played = Interrupted(random_agent_run(number))
    played.until = int(rng.integers(0, 12))
    try:
        played.play()
    except _TimeToForkError:
        ForkedSideBySide(played, rng).play()
        return True
    return False


def test_forks_of_the_reference__continue_like_those_of_the_core() -> None:
    assert sum(check_fork_of_both(number) for number in range(40)) > 20


def step_all(envs: SchedulingVectorEnv, actions: npt.NDArray[Any]) -> list[Any]:
    """Return everything that a batch shows in a step."""
    observations, rewards, terminated, truncated, infos = envs.step(actions)
    scores = infos.get("final_info", infos).get("sched", {})
    last = [*infos["final_obs"]] if "final_obs" in infos else []
    return [
        observations,
        infos["action_mask"],
        rewards,
        terminated,
        truncated,
        np.array([scores.get(name, 0 * rewards) for name in SCORES]),
        last,
    ]


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
@pytest.mark.parametrize("seat", SEATS)
def test_forks_of_batches__continue_with_the_same_bits(seat: str, mode: str) -> None:
    options = options_of(seat, observation="flat", autoreset_mode=mode)
    envs = SchedulingVectorEnv(6, seat, **options)
    envs.reset(seed=5)
    rng = np.random.default_rng(1)
    for _ in range(70):
        envs.step(np.stack([random_action(rng, mask, seat) for mask in envs.action_masks()]))
    which = [4, 1]
    forks = [envs.fork(which, count=3), envs.fork(which, 3, num_threads=2)]
    forks[1].step(np.stack([random_action(rng, m, seat) for m in forks[1].action_masks()]))
    assert envs.fork(which, 3, into=forks[1]) is forks[1]
    assert [forks[0].episode_key(i) for i in (0, 2, 3)] == [envs.episode_key(i) for i in (4, 4, 1)]
    for _ in range(120):
        actions = np.stack([random_action(rng, mask, seat) for mask in envs.action_masks()])
        expected = step_all(envs, actions)
        for fork in forks:
            shown = step_all(fork, np.repeat(actions[which], 3, axis=0))
            for theirs, own in zip(expected[:5], shown[:5], strict=True):
                np.testing.assert_array_equal(np.repeat(theirs[which], 3, axis=0), own)
            np.testing.assert_array_equal(np.repeat(expected[5][:, which], 3, axis=1), shown[5])
            for k, last in enumerate(shown[6]):
                if last is not None:
                    np.testing.assert_array_equal(last, expected[6][which[k // 3]])
    assert forks[0].log(5).sha256() == envs.log(1).sha256()


def test_forks_draw_the_same_later_episodes_whatever_is_set_on_the_other() -> None:
    env = SchedulingEnv("pick", **options_of("pick", observation="flat"))
    env.reset(seed=3)
    fork = env.fork()
    env.set_load(0.3)
    as_before = SchedulingEnv("pick", **options_of("pick", observation="flat"))
    as_before.reset(seed=3)
    for one in (env, fork, as_before):
        one.reset()
    assert fork.workload().submit.tolist() == as_before.workload().submit.tolist()
    assert env.workload().submit.tolist() != fork.workload().submit.tolist()


def test_forks__outlive_the_original() -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    env.reset(seed=3)
    fork = env.fork()
    env.close()
    fork.step(int(np.argmax(fork.action_masks())))
    fork.close()


def test_forks__of_nothing_or_into_something_else_are_refused() -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    with pytest.raises(SimulationError, match="no episode yet"):
        env.fork()
    env.reset(seed=1)
    other = SchedulingEnv("pick", **options_of("pick"))
    for into in (other, env, SchedulingVectorEnv(1, "pick", **options_of("pick")), 7):
        with pytest.raises(ConfigError, match="into is"):
            env.fork(into=into)  # type: ignore[arg-type]
    envs = SchedulingVectorEnv(3, "pick", **options_of("pick"))
    with pytest.raises(SimulationError, match="no episode yet"):
        envs.fork(0)
    envs.reset(seed=1)
    for which in (3, [-1], "all", [0.5]):
        with pytest.raises(ConfigError, match="no environment"):
            envs.fork(which)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no environments"):
        envs.fork([])
    with pytest.raises(ConfigError, match="into has 3 environments"):
        envs.fork(0, into=envs.fork())
    env.close()
    with pytest.raises(SimulationError, match="closed"):
        env.fork()


def test_reference_forks__are_new_episodes() -> None:
    env = SchedulingEnv("pick", **options_of("pick", observation="flat"))
    env.reset(seed=1)
    first = ReferenceEpisode(env.plan, env.workload(), 2**32, lambda q: Answer(q.mask.index(True)))
    log = first.play()
    again = first.fork(lambda _: pytest.fail("all questions have been answered"))
    assert again.play().sha256() == log.sha256()
