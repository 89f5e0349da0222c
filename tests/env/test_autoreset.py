"""What a batch returns for episodes that end: final observations, infos, masks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from tests.env.agents import SEATS, options_of, plain, random_action

import berthline  # noqa: F401  # registers the environments
from berthline.env.episodes_source import batch_seeds
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, SimulationError


def equal(one: Any, other: Any) -> bool:
    """Whether two observations are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[k], other[k]) for k in one)
    return np.array_equal(one, other)


def of_env(observations: Any, env: int) -> Any:
    """Return the observation of one environment."""
    if isinstance(observations, dict):
        return {name: table[env] for name, table in observations.items()}
    return observations[env]


@pytest.mark.parametrize("max_steps", [None, 7])
@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("seat", SEATS)
def test_same_step__shows_the_last_of_the_old_and_the_first_of_the_new(
    seat: str, observation: str, max_steps: int | None
) -> None:
    options = options_of(seat, observation=observation, max_steps=max_steps)
    envs = SchedulingVectorEnv(3, seat, **options)
    singles = [SchedulingEnv(seat, **options) for _ in range(3)]
    rngs = [np.random.default_rng(i) for i in range(3)]
    observations, infos = envs.reset(seed=30)
    for i, single in enumerate(singles):
        first, _ = single.reset(seed=batch_seeds(30, 3)[i])
        assert equal(of_env(observations, i), first)
    ended = 0
    for _ in range(150):
        masks = infos["action_mask"]
        np.testing.assert_array_equal(masks, envs.action_masks())
        assert masks.any(axis=1).all()
        actions = np.stack([random_action(r, m, seat) for r, m in zip(rngs, masks, strict=True)])
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert envs.observation_space.contains(observations)
        assert ("final_obs" in infos) == bool((terminated | truncated).any())
        if "final_obs" in infos:
            assert infos["final_obs"].shape == (3,)
            assert infos["final_obs"].dtype == object
            kept = [last is not None for last in infos["final_obs"]]
            assert kept == infos["_final_obs"].tolist() == (terminated | truncated).tolist()
        for i, single in enumerate(singles):
            last, reward, done, cut, info = single.step(actions[i])
            assert (rewards[i], terminated[i], truncated[i]) == (reward, done, cut)
            np.testing.assert_array_equal(infos["reward_terms"][i], info["reward_terms"])
            if not (done or cut):
                assert equal(of_env(observations, i), last)
                continue
            ended += 1
            assert infos["_final_obs"][i]
            assert infos["_final_info"][i]
            assert equal(infos["final_obs"][i], last)
            assert envs.single_observation_space.contains(infos["final_obs"][i])
            final = infos["final_info"]
            assert not any(table[~final["_sched"]].any() for table in final["sched"].values())
            assert {name: table[i] for name, table in final["sched"].items()} == info["sched"]
            assert final["episode"]["r"][i] == info["sched"]["return"]
            assert final["episode"]["l"][i] == info["sched"]["length"]
            first, info = single.reset()
            assert equal(of_env(observations, i), first)
            np.testing.assert_array_equal(infos["action_mask"][i], info["action_mask"])
    assert ended >= 3
    assert envs.metadata["autoreset_mode"] == AutoresetMode.SAME_STEP


@pytest.mark.parametrize("seat", SEATS)
def test_next_step__shows_the_last_then_ignores_an_action(seat: str) -> None:
    options = options_of(seat, observation="flat")
    envs = SchedulingVectorEnv(2, seat, autoreset_mode="next_step", **options)
    singles = [SchedulingEnv(seat, **options) for _ in range(2)]
    rngs = [np.random.default_rng(i) for i in range(2)]
    _, infos = envs.reset(seed=4)
    for i, single in enumerate(singles):
        single.reset(seed=batch_seeds(4, 3)[i])
    is_over = [False, False]
    resets = 0
    for _ in range(120):
        masks = infos["action_mask"]
        actions = np.stack([random_action(r, m, seat) for r, m in zip(rngs, masks, strict=True)])
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert "final_obs" not in infos
        for i, single in enumerate(singles):
            if is_over[i]:
                expected, _ = single.reset()
                reward, done, cut = 0.0, False, False
                resets += 1
                assert not infos["reward_terms"][i].any()
            else:
                expected, reward, done, cut, info = single.step(actions[i])
                if done or cut:
                    assert infos["_sched"][i]
                    assert infos["sched"]["mean_jct"][i] == info["sched"]["mean_jct"]
            np.testing.assert_array_equal(observations[i], expected)
            assert (rewards[i], terminated[i], truncated[i]) == (reward, done, cut)
            is_over[i] = done or cut
    assert resets >= 2
    assert envs.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


def test_next_step__an_environment_ahead_of_the_others_begins_its_episodes_in_a_step_too() -> None:
    # The first starts jobs while the others wait: it finishes two episodes before new ones are
    # drawn.
    options = {**plain("pick"), "episode_jobs": 30}
    envs = SchedulingVectorEnv(16, "pick", autoreset_mode="next_step", **options)
    _, infos = envs.reset(seed=3)
    had_ended = np.zeros(16, np.bool_)
    ends = np.zeros(16, np.int64)
    for _ in range(150):
        masks = infos["action_mask"]
        waits = masks[:, -1] & (np.arange(16) > 0)
        before = envs.log(0)
        _, rewards, terminated, truncated, infos = envs.step(
            np.where(waits, masks.shape[1] - 1, masks.argmax(axis=1))
        )
        if had_ended[0]:
            assert len(envs.log(0).time) < len(before.time)  # the next episode's, and not before
        assert not rewards[had_ended].any()
        had_ended = terminated | truncated
        ends += had_ended
    assert ends[0] >= 3
    assert ends[0] > 2 * ends[1:].max()


def test_make_vec__gives_the_native_batch_and_its_mode() -> None:
    for mode in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        envs = gymnasium.make_vec(
            "berthline/Pick-v0", num_envs=2, autoreset_mode=mode, **options_of("pick")
        )
        assert isinstance(envs, SchedulingVectorEnv)
        assert envs.metadata["autoreset_mode"] == mode


@pytest.mark.parametrize("mode", ["sometimes", 1, None])
def test_autoreset_mode__others_are_refused(mode: Any) -> None:
    with pytest.raises(ConfigError, match="autoreset_mode"):
        SchedulingVectorEnv(2, "pick", autoreset_mode=mode, **options_of("pick"))


@pytest.mark.parametrize("seat", SEATS)
def test_disabled__an_episode_stays_over_until_it_is_reset(seat: str) -> None:
    options = options_of(seat, observation="flat")
    envs = SchedulingVectorEnv(3, seat, autoreset_mode="disabled", **options)
    singles = [SchedulingEnv(seat, **options) for _ in range(3)]
    assert envs.metadata["autoreset_mode"] == AutoresetMode.DISABLED
    rngs = [np.random.default_rng(i) for i in range(3)]
    _, infos = envs.reset(seed=4)
    for i, single in enumerate(singles):
        single.reset(seed=batch_seeds(4, 3)[i])
    resets = 0
    for _ in range(150):
        masks = infos["action_mask"]
        actions = np.stack([random_action(r, m, seat) for r, m in zip(rngs, masks, strict=True)])
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert "final_obs" not in infos
        over = terminated | truncated
        for i, single in enumerate(singles):
            expected, reward, done, cut, info = single.step(actions[i])
            np.testing.assert_array_equal(observations[i], expected)
            assert (rewards[i], terminated[i], truncated[i]) == (reward, done, cut)
            if done or cut:
                assert infos["sched"]["mean_jct"][i] == info["sched"]["mean_jct"]
        if not over.any():
            continue
        log = envs.log(int(np.argmax(over))).sha256()
        with pytest.raises(SimulationError, match="whose episode is over") as raised:
            envs.step(actions)
        assert "reset_mask" in raised.value.expected
        assert envs.log(int(np.argmax(over))).sha256() == log
        observations, infos = envs.reset(options={"reset_mask": over})
        resets += int(over.sum())
        for i in np.flatnonzero(over):
            expected, _ = singles[i].reset()
            np.testing.assert_array_equal(observations[i], expected)
    assert resets >= 3


def test_disabled__agrees_with_gymnasiums_own_batch() -> None:
    options = {"autoreset_mode": AutoresetMode.DISABLED}
    native = gymnasium.make_vec("berthline/Pick-v0", num_envs=3, **options, **options_of("pick"))
    separate = gymnasium.make_vec(
        "berthline/Pick-v0",
        num_envs=3,
        vectorization_mode="sync",
        vector_kwargs=options,
        **options_of("pick"),
    )
    observations, _ = native.reset(seed=2)
    separate.reset(seed=batch_seeds(2, 3))
    for _ in range(100):
        actions = observations["action_mask"].argmax(axis=1)
        observations, *outcome, _ = native.step(actions)
        others, *other, _ = separate.step(actions)
        over = outcome[1] | outcome[2]
        if over.any():
            observations, _ = native.reset(options={"reset_mask": over})
            others, _ = separate.reset(options={"reset_mask": over})
        assert equal(observations, others)
        for one, two in zip(outcome, other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_disabled__a_fork_of_what_is_over_is_over() -> None:
    envs = SchedulingVectorEnv(2, autoreset_mode="disabled", **options_of("pick", max_steps=1))
    _, infos = envs.reset(seed=1)
    envs.step(infos["action_mask"].argmax(axis=1))
    with pytest.raises(SimulationError, match="whose episode is over"):
        envs.fork(0).step(np.zeros(1, np.int64))


def test_copy__what_became_of_episodes_stays_as_it_was() -> None:
    envs = SchedulingVectorEnv(3, "pick", **options_of("pick"))
    _, infos = envs.reset(seed=1)
    kept = []  # of every step that ended an episode
    for _ in range(500):
        *_, infos = envs.step(np.argmax(infos["action_mask"], axis=1))
        if "final_info" in infos:
            final = infos["final_info"]
            arrays = [*final["sched"].values(), final["_sched"], final["action_mask"]]
            kept.append([(array, array.copy()) for array in arrays])
    assert len(kept) > 5
    for array, then in (pair for step in kept for pair in step):
        np.testing.assert_array_equal(array, then)


def test_copy__observations_stay_as_they_were() -> None:
    kept = SchedulingVectorEnv(2, "pick", **options_of("pick", observation="flat"))
    shared = SchedulingVectorEnv(2, "pick", copy=False, **options_of("pick", observation="flat"))
    before, infos = kept.reset(seed=1)
    mask = infos["action_mask"]
    first, first_mask = before.copy(), mask.copy()
    view, _ = shared.reset(seed=1)
    for _ in range(5):
        actions = np.argmax(kept.action_masks(), axis=1)
        after = kept.step(actions)[0]
        shared.step(actions)
    np.testing.assert_array_equal(before, first)
    np.testing.assert_array_equal(mask, first_mask)
    np.testing.assert_array_equal(view, after)
