"""Calls in the wrong order raise an error that says what to do; none ends the process."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pytest
from tests.env.agents import SEATS, first_allowed, options_of

import berthline  # noqa: F401  # registers the environments
from berthline.env.experts import expert_actions
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, SimulationError

if TYPE_CHECKING:
    from collections.abc import Callable

OF_ONE = ("log", "question", "workload", "episode_key")
"""Methods of a batch that are about one environment."""


def batch(num_envs: int = 3, seat: str = "pick", **more: Any) -> SchedulingVectorEnv:
    """Return a small batch."""
    return SchedulingVectorEnv(num_envs, seat, **options_of(seat, **more))


def no_ops(envs: SchedulingVectorEnv) -> Any:
    """Return actions, allowed or not."""
    return np.zeros(envs.action_space.shape or (), np.int64)


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("seat", SEATS)
def test_step__before_all_have_an_episode_is_refused(seat: str, num_threads: int) -> None:
    envs = batch(seat=seat, num_threads=num_threads)
    with pytest.raises(SimulationError, match="a step without an episode"):
        envs.step(no_ops(envs))
    envs.reset(seed=1, options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(SimulationError, match="a step without an episode"):
        envs.step(no_ops(envs))
    _, infos = envs.reset(options={"reset_mask": np.array([False, True, True])})
    envs.step(np.stack([first_allowed(mask, seat) for mask in infos["action_mask"]]))


@pytest.mark.parametrize("method", OF_ONE)
def test_questions_about_one__before_its_first_reset_are_refused(method: str) -> None:
    envs = batch()
    ask: Callable[[int], Any] = getattr(envs, method)
    with pytest.raises(SimulationError, match="has no episode yet"):
        ask(0)
    envs.reset(seed=1, options={"reset_mask": np.array([True, False, False])})
    ask(0)
    with pytest.raises(SimulationError, match="has no episode yet"):
        ask(1)


@pytest.mark.parametrize("method", ["log", "question", "workload"])
def test_questions_of_the_single_environment__before_its_first_reset_are_refused(
    method: str,
) -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    with pytest.raises(SimulationError, match="has no episode yet"):
        getattr(env, method)()


@pytest.mark.parametrize("seat", ["pick", "place", "pickplace", "backfill", "gate"])
def test_experts__before_the_first_reset_are_refused(seat: str) -> None:
    envs = batch(seat=seat, experts=["sjf"])
    with pytest.raises(SimulationError, match="has no episode yet"):
        expert_actions(envs, "sjf")


@pytest.mark.parametrize("env", [-1, 3, 700, 2**40, "a", 1.0, None, True, np.float64(1)])
@pytest.mark.parametrize("method", OF_ONE)
def test_what_is_no_number_of_an_environment__is_refused(method: str, env: Any) -> None:
    envs = batch()
    envs.reset(seed=1)
    with pytest.raises(ConfigError, match="there is no environment") as raised:
        getattr(envs, method)(env)
    assert "0 to 2" in raised.value.expected
    getattr(envs, method)(np.int64(2))


@pytest.mark.parametrize("env", [-1, 3, 2**40])
def test_a_number_out_of_range__is_refused_by_the_native_core_as_well(env: int) -> None:
    envs = batch(experts=["sjf"])
    envs.reset(seed=1)
    native = envs._envs._batch
    for call in (native.log, native.question, lambda env: native.advise(env, 0)):
        with pytest.raises(IndexError):
            call(env)
    with pytest.raises(IndexError):
        native.reset(np.array([0, env]))
    assert envs.episode_key(0) == (1, 0)


def test_close__of_a_batch_refuses_what_follows() -> None:
    envs = batch(num_threads=2)
    envs.reset(seed=1)
    envs.close()
    envs.close()
    calls: list[Callable[[], Any]] = [
        lambda: envs.step(no_ops(envs)),
        envs.reset,
        lambda: envs.reset(seed=1),
        envs.action_masks,
        lambda: envs.set_load(1.0),
        *(partial(getattr(envs, method), 0) for method in OF_ONE),
    ]
    for call in calls:
        with pytest.raises(SimulationError, match="the environments are closed"):
            call()


@pytest.mark.parametrize("is_over", [False, True])
def test_close__of_the_single_environment_refuses_what_follows(is_over: bool) -> None:
    env = SchedulingEnv("pick", **options_of("pick"))
    if not is_over:
        env.reset(seed=1)
    env.close()
    env.close()
    calls = [lambda: env.step(0), env.reset, env.action_masks, env.log, env.question, env.workload]
    for call in calls:
        with pytest.raises(SimulationError, match="the environments are closed"):
            call()


def test_close__through_wrappers() -> None:
    with gymnasium.make("berthline/Pick-v0", **options_of("pick")) as env:
        env.reset(seed=1)
    env.close()
    with pytest.raises(SimulationError, match="closed"):
        env.step(0)


def test_close__of_a_batch_that_could_not_be_made() -> None:
    """Some versions of Gymnasium close objects when they are garbage-collected."""
    envs = SchedulingVectorEnv.__new__(SchedulingVectorEnv)
    envs.close()


def test_a_batch_in_use_by_another_thread__is_refused() -> None:
    envs = batch()
    envs.reset(seed=1)
    found: list[BaseException] = []

    def use() -> None:
        for call in (lambda: envs.step(no_ops(envs)), envs.reset, envs.close):
            try:
                call()
            except SimulationError as error:
                found.append(error)

    with envs._envs._batch:  # as while it gets new episodes
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    assert ["two threads" in str(error) for error in found] == [True] * 3
    envs.step(no_ops(envs))


def test_num_threads__too_many_are_refused() -> None:
    with pytest.raises(ConfigError, match="num_threads is 40000"):
        batch(40000, num_threads=40000)
