"""Frames of environments: every seat and mode, single and batched, and Gymnasium's wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import RenderCollection
from tests.env.agents import SEATS, first_allowed, options_of, random_action

from berthline.env.episodes_source import batch_seeds
from berthline.env.registration import SEATS as NAMES
from berthline.env.registration import env_id
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError, SimulationError

ID_OF = {seat: env_id(name) for name, seat in NAMES.items()}


def evenly(observation: Any, mask: Any) -> Any:
    """Return the same probability for all allowed answers."""
    return mask / mask.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
@pytest.mark.parametrize("seat", SEATS)
def test_frames__of_a_batch_are_those_of_single_environments(seat: str, mode: str) -> None:
    options = options_of(seat, render_mode=mode)
    envs = SchedulingVectorEnv(2, seat, autoreset_mode="next_step", **options)
    singles = [SchedulingEnv(seat, **options) for _ in range(2)]
    for one in (envs, *singles):
        one.show_policy(evenly)
    _, infos = envs.reset(seed=3)
    for single, seed in zip(singles, batch_seeds(3, 2), strict=True):
        single.reset(seed=seed)
    rng = np.random.default_rng(3)
    first = envs.render()
    terminated = truncated = np.zeros(2, np.bool_)
    for _ in range(12):
        actions = np.stack([random_action(rng, mask, seat) for mask in infos["action_mask"]])
        over = terminated | truncated
        _, _, terminated, truncated, infos = envs.step(actions)
        for single, action, is_over in zip(singles, actions, over, strict=True):
            if is_over:
                single.reset()
            else:
                single.step(action)
    frames = envs.render()
    assert isinstance(frames, tuple)
    assert len(frames) == 2
    for frame, single, before in zip(frames, singles, first, strict=True):
        np.testing.assert_array_equal(frame, single.render())
        assert np.array_equal(frame, before) is False
        if mode == "rgb_array":
            assert frame.dtype == np.uint8
            assert frame.shape == before.shape
            assert frame.shape[2] == 3
            assert not any(size % 2 for size in frame.shape[:2])  # video formats need it


@pytest.mark.parametrize("mode", [None, "ansi", "rgb_array"])
@pytest.mark.parametrize("seat", SEATS)
def test_rendering__changes_nothing(seat: str, mode: str | None) -> None:
    plain = SchedulingEnv(seat, **options_of(seat))
    shown = SchedulingEnv(seat, **options_of(seat), render_mode=mode)
    shown.show_policy(evenly)
    _, info = plain.reset(seed=5)
    shown.reset(seed=5)
    for _ in range(40):
        action = first_allowed(info["action_mask"], seat)
        observation, reward, terminated, _, info = plain.step(action)
        other, reward_too, *_ = shown.step(action)
        assert reward == reward_too
        for name, table in observation.items():
            np.testing.assert_array_equal(table, other[name])
        if mode is not None:
            shown.render()
        if terminated:
            break
    assert plain.log().sha256() == shown.log().sha256()


@pytest.mark.parametrize("seat", SEATS)
def test_frames__of_the_end_and_of_the_next_episode(seat: str) -> None:
    env = SchedulingEnv(seat, **options_of(seat, max_steps=5), render_mode="ansi")
    _, info = env.reset(seed=1)
    is_over = False
    while not is_over:
        *_, terminated, truncated, info = env.step(first_allowed(info["action_mask"], seat))
        is_over = terminated or truncated
    assert "last: " in env.render()
    env.reset()
    text = env.render()
    assert "episode 1" in text
    assert "last: " not in text


def test_frames__of_pick_say_what_is_asked_and_what_the_policy_thinks() -> None:
    env = SchedulingEnv("pick", **options_of("pick", no_op="always"), render_mode="ansi")
    _, info = env.reset(seed=2)
    while info["action_mask"].sum() < 3:
        *_, info = env.step(first_allowed(info["action_mask"], "pick"))
    rows = env.question()["jobs"]
    mask = info["action_mask"]
    allowed = [job for job, may in zip(rows, mask, strict=False) if may]
    text = env.render()
    assert "question (pick): which waiting job starts next" in text
    assert [line.split()[0] for line in text.splitlines() if line.endswith("yes")] == [
        str(job) for job in allowed
    ]
    env.show_policy(lambda observation, mask: np.where(np.arange(len(mask)) == mask.argmax(), 1, 0))
    text = env.render()
    (certain,) = [line for line in text.splitlines() if "100 %" in line]
    assert certain.split()[0] == str(allowed[0])
    env.step(int(mask.argmax()))
    assert f"last: job {allowed[0]}" in env.render()
    env.step(env.plan.num_actions - 2)  # a row without a job
    assert "last: no job (not allowed)" in env.render()


def test_frames__of_a_warm_start_show_the_jobs_that_run_already() -> None:
    env = SchedulingEnv("pick", **options_of("pick", start="warm"), render_mode="ansi")
    env.reset(seed=1)
    held = env.start().cluster
    text = env.render()
    assert held.total_gpus == 12
    busy = int(text.split(" of 12 GPUs busy")[0].splitlines()[-1])
    assert busy > 0


def test_a_policy_shown__with_numbers_of_another_size_is_refused() -> None:
    env = SchedulingEnv("pick", **options_of("pick"), render_mode="ansi")
    env.reset(seed=1)
    env.show_policy(lambda *_: [0.5, 0.5])
    with pytest.raises(ConfigError, match=r"numbers of shape \(2,\)"):
        env.render()


@pytest.mark.parametrize("make", [SchedulingEnv, lambda **more: SchedulingVectorEnv(2, **more)])
def test_render_mode__others_are_refused(make: Any) -> None:
    with pytest.raises(ConfigError, match="render_mode is 'rgb'") as raised:
        make(render_mode="rgb")
    assert "'rgb_array'" in raised.value.expected


@pytest.mark.parametrize("make", [SchedulingEnv, lambda: SchedulingVectorEnv(2)])
def test_render__without_a_mode_warns_and_returns_nothing(make: Any) -> None:
    env = make()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="without a render mode"):
        assert env.render() is None


def test_render__before_the_first_episode_is_refused() -> None:
    with pytest.raises(SimulationError, match="no episode yet"):
        SchedulingEnv(render_mode="ansi").render()


@pytest.mark.parametrize("seat", SEATS)
def test_metadata_and_gymnasiums_checks(seat: str) -> None:
    env = gym.make(ID_OF[seat], **options_of(seat), render_mode="rgb_array")
    assert env.metadata["render_modes"] == ["ansi", "rgb_array"]
    assert env.render_mode == "rgb_array"
    check_env(env.unwrapped)
    envs = gym.make_vec(ID_OF[seat], num_envs=2, **options_of(seat), render_mode="ansi")
    assert envs.metadata["render_modes"] == ["ansi", "rgb_array"]
    assert envs.metadata["render_fps"] == 4
    assert envs.render_mode == "ansi"


def test_a_list_of_frames__through_gymnasiums_wrapper() -> None:
    env = gym.make("berthline/Pick-v0", **options_of("pick"), render_mode="ansi_list")
    assert isinstance(env, RenderCollection)
    env.reset(seed=1)
    env.step(0)
    frames = env.render()
    assert len(frames) == 2
    assert frames[0] != frames[1]


def test_a_fork__renders_its_own_episode() -> None:
    env = SchedulingEnv("pick", **options_of("pick"), render_mode="ansi")
    _, info = env.reset(seed=1)
    fork = env.fork()
    before = env.render()
    fork.step(first_allowed(info["action_mask"], "pick"))
    assert env.render() == before != fork.render()
