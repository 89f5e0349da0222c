"""Where the no-op is allowed, and how long steps take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.env import by_hand
from tests.env.agents import options_of, random_action

import berthline as bl
from berthline.env.episodes_source import batch_seeds
from berthline.env.options import NO_OPS, ONLY_OF
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.environments import DiscountBySeconds, DiscountBySecondsVector
from berthline.errors import ConfigError

SEATS = ONLY_OF["no_op"]


def no_ops(seat: str, no_op: str, **more: Any) -> tuple[int, int]:
    """Play at random; return how many questions allowed the no-op, and how many there were."""
    env = SchedulingEnv(seat, **options_of(seat, no_op=no_op, **more))
    rng = np.random.default_rng(0)
    allowed = asked = 0
    for seed in range(4):
        _, info = env.reset(seed=seed)
        is_over = False
        while not is_over:
            mask = info["action_mask"]
            is_asked = mask.sum() > 1  # an episode that asks nothing has one step, the no-op
            allowed += is_asked and bool(mask[env.plan.num_actions - 1])
            asked += is_asked
            *_, terminated, truncated, info = env.step(random_action(rng, mask, seat))
            is_over = terminated or truncated
    return allowed, asked


@pytest.mark.parametrize("seat", SEATS)
def test_no_op__always_and_never(seat: str) -> None:
    allowed, asked = no_ops(seat, "always")
    assert 0.5 * asked < allowed <= asked
    assert no_ops(seat, "never")[0] == 0


@pytest.mark.parametrize("seat", ["pick", "pickplace", "backfill"])
def test_no_op__when_blocked_is_never_where_some_job_can_start(seat: str) -> None:
    assert no_ops(seat, "when_blocked")[0] == 0


def test_no_op__when_blocked_in_preempt_is_always() -> None:
    assert no_ops("preempt", "when_blocked") == no_ops("preempt", "always")


def test_no_op__when_blocked_waits_for_an_event_where_no_row_can_start() -> None:
    """Job 0 has both GPUs until 10 s. Named now, job 1 would start then, and job 2 after it."""
    jobs = bl.Workload.from_columns(submit=[0, 1, 2], run=[10, 5, 5], gpus=[2, 1, 1])
    asked = {}
    for no_op in NO_OPS:
        env = by_hand.make(
            "pick",
            jobs,
            cluster="uniform:1x2:V100",
            semantics="wait",
            knowledge="none",
            window=2,
            no_op=no_op,
        )
        _, info = env.reset(seed=0)
        masks = [info["action_mask"].tolist()]
        *_, info = env.step(0)  # job 0 starts; the next question is about job 1, which cannot
        masks.append(info["action_mask"].tolist())
        asked[no_op] = masks
    assert asked["never"] == [[True, False, False], [True, False, False]]
    assert asked["when_blocked"] == [[True, False, False], [True, False, True]]
    assert asked["always"] == [[True, False, True], [True, False, True]]


@pytest.mark.parametrize("seat", ["place", "meta", "gate"])
def test_no_op__other_seats_have_no_such_option(seat: str) -> None:
    with pytest.raises(ConfigError, match="only in the environments Pick, PickPlace, Backfill and"):
        SchedulingEnv(seat, no_op="never")


@pytest.mark.parametrize("seat", ["pick", "place", "meta", "backfill", "gate", "preempt"])
def test_seconds__are_the_time_between_questions(seat: str) -> None:
    env = SchedulingEnv(seat, **options_of(seat))
    _, info = env.reset(seed=3)
    total, is_over = env.question()["now"], False
    rng = np.random.default_rng(2)
    while not is_over:
        *_, terminated, truncated, info = env.step(random_action(rng, info["action_mask"], seat))
        is_over = terminated or truncated
        total += info["seconds"]
        assert info["seconds"] >= 0
        np.testing.assert_allclose(total, env.question()["now"])


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_seconds__of_a_batch_are_those_of_its_environments(mode: str) -> None:
    """In the step that only begins an episode no time passes."""
    envs = SchedulingVectorEnv(3, "pick", autoreset_mode=mode, **options_of("pick"))
    _, infos = envs.reset(seed=5)
    single = SchedulingEnv("pick", **options_of("pick"))
    _, info = single.reset(seed=batch_seeds(5, 3)[1])
    is_over = False
    for _ in range(200):
        actions = infos["action_mask"].argmax(axis=1)
        *_, infos = envs.step(actions)
        assert infos["_seconds"].all()
        if is_over and mode == "next_step":
            assert infos["seconds"][1] == 0.0
            _, info = single.reset()
            is_over = False
            continue
        *_, terminated, truncated, info = single.step(int(actions[1]))
        assert infos["seconds"][1] == info["seconds"]
        is_over = terminated or truncated
        if is_over and mode == "same_step":
            _, info = single.reset()
            is_over = False


def test_discount_by_seconds__is_exponential_in_the_time_that_passed() -> None:
    env = DiscountBySeconds(SchedulingEnv("pick", **options_of("pick")), horizon=600)
    envs = DiscountBySecondsVector(SchedulingVectorEnv(2, "pick", **options_of("pick")), 600)
    _, info = env.reset(seed=1)
    _, infos = envs.reset(seed=1)
    faded, seconds = [], []
    for _ in range(30):
        action = int(info["action_mask"].argmax())
        *_, terminated, truncated, info = env.step(action)
        *_, infos = envs.step(infos["action_mask"].argmax(axis=1))
        assert info["discount"] == np.exp(-info["seconds"] / 600)
        np.testing.assert_array_equal(infos["discount"], np.exp(-infos["seconds"] / 600))
        faded.append(info["discount"])
        seconds.append(info["seconds"])
        if terminated or truncated:
            break
    np.testing.assert_allclose(np.prod(faded), np.exp(-sum(seconds) / 600))
    assert min(faded) < 1.0


@pytest.mark.parametrize("horizon", [0, -1, None, "long"])
def test_discount_by_seconds__needs_a_horizon(horizon: Any) -> None:
    with pytest.raises(ConfigError, match="horizon"):
        DiscountBySeconds(SchedulingEnv("pick"), horizon=horizon)
