"""Arguments of environments: invalid seeds, actions and masks are refused."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from tests.env.agents import SEATS, SMALL, first_allowed, options_of

from berthline.env.episodes_source import MOST_SLOTS, batch_seeds, slot_of
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError

NUM = 3
LARGE = [2**30 + 5, 2**31 - 1, 2**31 + 5, 2**32 + 5, MOST_SLOTS - 1, MOST_SLOTS, 2**70]


def single(seat: str = "pick") -> SchedulingEnv:
    return SchedulingEnv(seat, **SMALL)


def batch(seat: str = "pick") -> SchedulingVectorEnv:
    return SchedulingVectorEnv(NUM, seat, **SMALL)


@pytest.mark.parametrize(
    "given",
    [
        {"num_envs": 2.5},
        {"num_envs": None},
        {"num_envs": True},
        {"num_envs": 2**40},
        {"num_threads": 2.5},
        {"num_threads": 2**40},
        {"copy": "no"},
        {"autoreset_mode": ["same_step"]},
    ],
)
def test_batch__arguments_of_the_wrong_kind_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        SchedulingVectorEnv(**{"num_envs": NUM, **given}, **SMALL)


def test_batch__takes_numbers_of_numpy() -> None:
    envs = SchedulingVectorEnv(np.int64(NUM), num_threads=np.int32(2), **SMALL)  # type: ignore[arg-type]
    assert envs.reset(seed=np.int64(1))[1]["action_mask"].shape[0] == NUM  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [-1, 1.5, math.nan, "1", True, object(), [1, -1, 2], [0.5, 1, 2]])
def test_seeds__wrong_ones_are_refused(seed: Any) -> None:
    with pytest.raises(ConfigError, match="seed is"):
        batch().reset(seed=seed)
    with pytest.raises(ConfigError, match="seed is"):
        single().reset(seed=seed)


def test_seeds__small_ones_are_their_own_slot() -> None:
    for seed in (0, 5, 2**31, MOST_SLOTS - 1):
        assert slot_of(seed) == seed


def test_seeds__large_ones_have_episodes_of_their_own() -> None:
    env = single()
    runs = set()
    for seed in (5, *LARGE):
        env.reset(seed=seed)
        runs.add(tuple(env.workload().run.tolist()))
    assert len(runs) == 1 + len(LARGE)


@pytest.mark.parametrize("seed", LARGE)
def test_seeds__large_ones_are_the_same_alone_and_in_a_batch(seed: int) -> None:
    env, envs = single(), batch()
    envs.reset(seed=seed)
    for i, own in enumerate(batch_seeds(seed, NUM)):
        _, info = env.reset(seed=own)
        assert envs.episode_key(i) == tuple(info["episode_key"])
        env.reset(seed=int(info["episode_key"][0]))
        np.testing.assert_array_equal(env.workload().run, envs.workload(i).run)


def test_seeds__batches_of_different_seeds_share_no_episode() -> None:
    """Neither seeds, nor jobs: neighbouring seeds, and seeds that are as far apart as possible."""
    keys: list[tuple[int, int]] = []
    runs = set()
    for seed in (0, 1, 2, 3, 2**31 - 1):
        envs = SchedulingVectorEnv(64, **SMALL)
        envs.reset(seed=seed)
        keys += [envs.episode_key(i) for i in range(64)]
        runs |= {tuple(envs.workload(i).run.tolist()) for i in range(64)}
    assert len(set(keys)) == len(runs) == 5 * 64


def test_seeds__of_a_batch_do_not_depend_on_its_size() -> None:
    most = batch_seeds(5, 2**20)
    assert most[0] == 5
    assert most[:64] == batch_seeds(5, 64)
    assert max(most) < MOST_SLOTS
    assert not {*most} & {*batch_seeds(6, 2**20)}


def test_seeds__a_given_list_stays_as_given() -> None:
    envs = batch()
    envs.reset(seed=[4, 5, 2**40])
    assert [envs.episode_key(i) for i in range(NUM)] == [(4, 0), (5, 0), (2**40, 0)]


WRONG_ACTIONS: list[tuple[str, Any]] = [
    ("pick", None),
    ("pick", 0),
    ("pick", [0]),
    ("pick", [0, 0]),
    ("pick", [0.0, 1.0, 0.0]),
    ("pick", [math.nan] * NUM),
    ("pick", [None, 0, 0]),
    ("pick", ["0", "1", "0"]),
    ("pick", [[0], [0, 1], [0]]),
    ("pick", [2**70] * NUM),
    ("pick", np.zeros((NUM, 2), np.int64)),
    ("pick", np.zeros((NUM, 1), np.int64)),
    ("pick", np.zeros(NUM + 1, np.int64)),
    ("pick", np.zeros(NUM)),
    ("pick", np.zeros(NUM, np.bool_)),
    ("gate", [True] * NUM),
    ("pickplace", 0),
    ("pickplace", [0, 0]),
    ("pickplace", np.zeros(NUM, np.int64)),
    ("pickplace", np.zeros(2 * NUM, np.int64)),
    ("pickplace", np.zeros((2, NUM), np.int64)),
    ("pickplace", np.zeros((NUM, 3), np.int64)),
    ("pickplace", np.zeros((NUM, 2), np.float32)),
]


@pytest.mark.parametrize(("seat", "actions"), WRONG_ACTIONS)
def test_batch_step__wrong_actions_are_refused_with_the_shape(seat: str, actions: Any) -> None:
    envs = batch(seat)
    envs.reset(seed=1)
    before = [envs.question(i) for i in range(NUM)]
    with pytest.raises(ConfigError) as caught:
        envs.step(actions)
    shape = (NUM, 2) if seat == "pickplace" else (NUM,)
    assert caught.value.expected == f"int64, or other integers, of shape {shape}"
    assert [envs.question(i) for i in range(NUM)] == before


@pytest.mark.parametrize("seat", ["pick", "pickplace"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint64, ">i8", list, tuple])
def test_batch_step__integers_of_any_kind_are_the_same(seat: str, dtype: Any) -> None:
    plain, other = batch(seat), batch(seat)
    plain.reset(seed=1)
    other.reset(seed=1)
    # Every other number of an array: not contiguous.
    actions = np.zeros((NUM, 4), np.int64)[:, ::2]
    actions = actions if seat == "pickplace" else actions[:, 0]
    given = dtype(actions.tolist()) if dtype in (list, tuple) else actions.astype(dtype)
    seen, rewards, *_ = plain.step(actions)
    seen_too, rewards_too, *_ = other.step(given)
    np.testing.assert_array_equal(seen["jobs"], seen_too["jobs"])
    np.testing.assert_array_equal(rewards, rewards_too)


@pytest.mark.parametrize(
    ("seat", "action"),
    [
        *(("pick", a) for a in (2.7, "3", None, math.nan, [0], [0, 1], np.array([0]), 2**70)),
        *(("gate", a) for a in (True, False, np.True_, np.array(True))),
        *(("pickplace", a) for a in (0, 2.7, "ab", None, [0], [0, 1, 2], [0.5, 1], [0, None])),
        *(("pickplace", a) for a in ([True, 0], [0, False])),
    ],
)
def test_step__wrong_actions_are_refused(seat: str, action: Any) -> None:
    env = single(seat)
    env.reset(seed=1)
    before = env.question()
    with pytest.raises(ConfigError, match="integer"):
        env.step(action)
    assert env.question() == before


@pytest.mark.parametrize("action", [0, np.int32(0), np.array(0), np.uint8(0)])
def test_step__takes_integers_of_any_kind(action: Any) -> None:
    env = single()
    env.reset(seed=1)
    assert "illegal" not in env.step(action)[-1]


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        ([False] * NUM, "False everywhere"),
        ([True], "shape (1,)"),
        ([1, 0, 1], "int64"),
        ([[True], [True, False], []], "object"),
        (None, "object"),
    ],
)
def test_reset_mask__says_what_is_wrong(mask: Any, says: str) -> None:
    envs = batch()
    envs.reset(seed=1)
    with pytest.raises(ConfigError) as caught:
        envs.reset(options={"reset_mask": mask})
    assert says in caught.value.what


@pytest.mark.parametrize("seat", SEATS)
def test_actions__out_of_range_are_errors_that_change_nothing(seat: str) -> None:
    env, envs = SchedulingEnv(seat, **options_of(seat)), batch_of(seat)
    env.reset(seed=1)
    envs.reset(seed=1)
    num, nodes = env.plan.num_actions, env.plan.cluster.num_nodes
    wrong: list[Any] = [num, -1, 2**40, -(2**62)]
    if seat == "pickplace":
        wrong = [(choice, 0) for choice in wrong] + [(0, nodes), (0, -1)]
    before = env.log().sha256(), envs.log(0).sha256()
    for action in wrong:
        with pytest.raises(ConfigError, match="action is") as raised:
            env.step(action)
        assert f"0 to {num - 1}" in raised.value.expected
        actions = np.zeros(envs.action_space.shape, np.int64)
        actions[1] = action
        with pytest.raises(ConfigError, match="environment 1"):
            envs.step(actions)
    assert (env.log().sha256(), envs.log(0).sha256()) == before
    env.step(first_allowed(env.action_masks(), seat))


def batch_of(seat: str, **more: Any) -> SchedulingVectorEnv:
    return SchedulingVectorEnv(NUM, seat, **options_of(seat), **more)


@pytest.mark.parametrize("seat", SEATS)
def test_actions__out_of_range_are_illegal_ones_if_asked_for(seat: str) -> None:
    envs = batch_of(seat, out_of_range="illegal")
    envs.reset(seed=1)
    actions = np.full(envs.action_space.shape, -1)
    *_, infos = envs.step(actions)
    assert infos["illegal"].any()  # some episodes of Backfill ask nothing
    fork = envs.fork()
    fork.step(actions)


def test_actions__that_are_ignored_may_be_out_of_range() -> None:
    envs = SchedulingVectorEnv(1, autoreset_mode="next_step", **{**SMALL, "max_steps": 1})
    _, infos = envs.reset(seed=1)
    envs.step(infos["action_mask"].argmax(axis=1))
    envs.step(np.array([-1]))
    with pytest.raises(ConfigError, match="action is -1"):
        envs.step(np.array([-1]))


@pytest.mark.parametrize("make", [SchedulingEnv, lambda **more: SchedulingVectorEnv(2, **more)])
def test_out_of_range__other_values_are_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="out_of_range is 'clip'"):
        make(out_of_range="clip")


def test_max_episode_steps__is_gymnasiums_name_for_max_steps() -> None:
    envs = gymnasium.make_vec("berthline/Place-v0", num_envs=2, max_episode_steps=3, **SMALL)
    alone = gymnasium.make("berthline/Place-v0", max_episode_steps=3, **SMALL)
    observations, _ = envs.reset(seed=1)
    observation, _ = alone.reset(seed=1)
    for step in range(1, 4):
        action = int(observation["action_mask"].argmax())
        observation, *_, cut, _ = alone.step(action)
        observations, *_, truncated, _ = envs.step(observations["action_mask"].argmax(axis=1))
        assert truncated[0] == cut == (step == 3)
    assert (
        SchedulingEnv("place", max_episode_steps=3, max_steps=3, **SMALL).plan.options.max_steps
        == 3
    )
    with pytest.raises(ConfigError, match="max_episode_steps is 8"):
        SchedulingVectorEnv(2, max_episode_steps=8, max_steps=3, **SMALL)


def test_attributes__of_the_environments_of_a_batch() -> None:
    envs = batch()
    envs.reset(seed=1)
    assert envs.get_attr("reward_terms") == (envs.reward_terms,) * NUM
    assert envs.get_attr("render_mode") == (None,) * NUM == envs.call("render_mode")
    with pytest.raises(AttributeError):
        envs.get_attr("colour")
    with pytest.raises(AttributeError):
        envs.call("_envs")
    envs.set_attr("stage", [1, 2, 3])
    assert envs.get_attr("stage") == (1, 2, 3) == envs.call("stage")
    envs.set_attr("stage", 0)
    assert envs.get_attr("stage") == (0, 0, 0)
    assert envs.fork([2, 0]).get_attr("stage") == (0, 0)
    with pytest.raises(ConfigError, match="2 values"):
        envs.set_attr("stage", [1, 2])
    with pytest.raises(ConfigError, match="belongs to the batch") as raised:
        envs.set_attr("plan", None)
    assert "set_load" in raised.value.hint


def test_call__asks_every_environment() -> None:
    envs = batch()
    envs.reset(seed=1)
    assert envs.call("episode_key") == tuple(envs.episode_key(i) for i in range(NUM))
    assert [log.sha256() for log in envs.call("log")] == [envs.log(i).sha256() for i in range(NUM)]
    masks = envs.call("action_masks")
    assert len(masks) == NUM
    np.testing.assert_array_equal(masks, envs.action_masks())
    assert envs.call("set_load", 1.3) == (None,) * NUM
    other = batch()
    other.set_load(1.3)
    for one, seed in ((envs, 1), (other, 1)):
        one.reset(seed=seed)
    np.testing.assert_array_equal(envs.workload(0).submit, other.workload(0).submit)
