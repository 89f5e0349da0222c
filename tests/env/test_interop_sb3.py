"""Stable-Baselines3 takes the environments, and learns with their masks."""

from __future__ import annotations

import inspect
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from tests.env.test_interop import IDS, SMALL, random_actions

import berthline as bl
from berthline.env.episodes_source import batch_seeds
from berthline.env.experts import expert_actions
from berthline.errors import ConfigError, SimulationError

pytest.importorskip("sb3_contrib", reason="the extra sb3 is not installed")


@pytest.fixture(autouse=True)
def _one_thread():
    """More threads than free cores make torch many times slower."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("name", IDS)
def test_its_checker_passes(name, observation):
    from stable_baselines3.common.env_checker import check_env

    # It warns that it will flatten tables in a dict; there must be no other warning.
    check_env(
        gym.make(name, observation=observation, **SMALL).unwrapped, warn=observation == "flat"
    )


@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("name", IDS)
def test_the_batch_is_a_vec_env(name, observation):
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    from berthline.compat import sb3

    options = {**SMALL, "observation": observation, "max_steps": 40}
    envs = sb3.make(name, num_envs=3, **options)
    plain = gym.make_vec(name, num_envs=3, **options)
    assert is_masking_supported(envs)
    assert envs.seed(11) == batch_seeds(11, 3)
    observations = envs.reset()
    expected, _ = plain.reset(seed=11)
    rng = np.random.default_rng(3)
    truncations = []
    for _ in range(100):
        for env in range(3):
            one = (
                observations[env]
                if observation == "flat"
                else {name: table[env] for name, table in observations.items()}
            )
            assert envs.observation_space.contains(one)
        masks = get_action_masks(envs)
        np.testing.assert_array_equal(masks, plain.action_masks())
        np.testing.assert_array_equal(envs.env_method("action_masks", indices=[2])[0], masks[2])
        np.testing.assert_array_equal(envs.get_attr("action_masks")[1](), masks[1])
        actions = random_actions(rng, plain, masks)
        observations, rewards, dones, infos = envs.step(actions)
        expected, gains, terminated, truncated, more = plain.step(actions)
        np.testing.assert_equal(observations, expected)
        np.testing.assert_array_equal(rewards, gains.astype(np.float32))
        np.testing.assert_array_equal(dones, terminated | truncated)
        for env in np.flatnonzero(dones):
            info = infos[env]
            np.testing.assert_equal(info["terminal_observation"], more["final_obs"][env])
            assert info["TimeLimit.truncated"] == truncated[env]
            assert info["episode"]["l"] <= 40
            assert info["episode"]["r"] == pytest.approx(info["sched"]["return"])
            truncations.append(truncated[env])
    assert truncations


def test_what_environments_have_in_common_and_what_not():
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecMonitor

    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=2, **SMALL)
    envs.seed(7)
    envs.reset()
    assert envs.env_method("episode_key") == [(seed, 0) for seed in batch_seeds(7, 2)]
    assert envs.env_is_wrapped(Monitor) == [True, True]
    assert envs.env_is_wrapped(MaskablePPO, indices=0) == [False]
    assert not envs.has_attr("no_such_thing")
    envs.set_attr("note", 1)
    assert envs.get_attr("note") == [1, 1]
    with pytest.raises(ConfigError, match="all environments"):
        envs.set_attr("note", 2, indices=0)
    with pytest.warns(UserWarning, match="already wrapped"):
        assert VecMonitor(envs).reset()["jobs"].shape == (2, 8, 8)
    with pytest.raises(ConfigError, match="did you mean 'berthline/Pick-v0'"):
        sb3.make("berthline/Pik-v0")


def test_without_a_seed_environments_differ():
    from sb3_contrib import MaskablePPO

    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=8, **SMALL)
    envs.reset()
    keys = envs.env_method("episode_key")
    assert len({seed for seed, _ in keys}) == 8
    envs.reset()
    assert envs.env_method("episode_key") == [(seed, 1) for seed, _ in keys]
    envs = sb3.make("berthline/Pick-v0", num_envs=4, **SMALL)
    MaskablePPO("MultiInputPolicy", envs, n_steps=2, batch_size=8, n_epochs=1).learn(8)
    assert len({seed for seed, _ in envs.env_method("episode_key")}) == 4


def test_every_method_about_one_environment_can_be_called():
    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=3, **SMALL)
    envs.seed(7)
    envs.reset()
    names = [
        name
        for name, method in inspect.getmembers(type(envs.envs), inspect.isfunction)
        if not name.startswith("_") and "env" in inspect.signature(method).parameters
    ]
    assert {"episode_key", "log", "question", "workload"} <= {*names}
    for name in names:
        assert len(envs.env_method(name)) == 3
        assert len(envs.env_method(name, indices=[2])) == 1
    expected = envs.envs.workload(1).submit
    for workload in (envs.env_method("workload", indices=1)[0], envs.get_attr("workload")[1]()):
        np.testing.assert_array_equal(workload.submit, expected)
    assert envs.env_method("set_load", 0.5, 0.7) == [None] * 3
    with pytest.raises(ConfigError, match="all environments"):
        envs.env_method("set_load", 0.5, indices=[1])


@pytest.mark.parametrize("actions", [[np.nan, 0], [0.9, 0], ["a", "b"], [True, False]])
def test_actions_that_are_not_whole_numbers_are_refused(actions):
    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=2, **SMALL)
    envs.reset()
    with pytest.raises(ConfigError, match="whole numbers"):
        envs.step(np.array(actions))


@pytest.mark.parametrize("option", [{"autoreset_mode": "next_step"}, {"copy": False}])
def test_batches_that_its_algorithms_would_misread_are_refused(option):
    from berthline.compat import sb3

    with pytest.raises(ConfigError, match=next(iter(option))):
        sb3.make("berthline/Pick-v0", num_envs=2, **SMALL, **option)


def all_at_once(jobs=8):
    """A problem with a known optimum: one GPU, all jobs submitted at the start, shortest first."""
    run = np.round(10 ** np.random.default_rng(5).uniform(1, 4, 4096))
    workload = bl.Workload.from_columns(
        submit=np.zeros(4096), run=run, gpus=np.ones(4096, int), name="all at once"
    )
    return {
        "workload": workload,
        "cluster": "uniform:1x1",
        "episode_jobs": jobs,
        "window": jobs,
        "knowledge": "exact",
        "observation": "flat",
        "features": {
            "jobs": ["log10(1 + estimate) / 6", "can_start"],
            "nodes": [],
            "running": [],
            "globals": [],
        },
        "experts": ["sjf"],
    }


def mean_jct(envs, choose, episodes=4):
    """Return the mean JCT over the first episodes of each environment, the same in every call."""
    envs.seed(10_000)
    observations = envs.reset()
    scores = [[] for _ in range(envs.num_envs)]
    while min(map(len, scores)) < episodes:
        observations, _, _, infos = envs.step(choose(observations, envs.action_masks()))
        for own, info in zip(scores, infos, strict=True):
            if "sched" in info:
                own.append(info["sched"]["mean_jct"])
    return np.mean([own[:episodes] for own in scores])


def share_of_the_way(options, steps):
    """Train; return where the result is between random choices (0) and the optimum (1)."""
    from sb3_contrib import MaskablePPO

    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=64, **options)
    model = MaskablePPO(
        "MlpPolicy",
        envs,
        n_steps=32,
        batch_size=512,
        n_epochs=8,
        learning_rate=2e-3,
        gamma=1.0,
        seed=0,
        device="cpu",
    )
    model.learn(steps)
    rng = np.random.default_rng(0)
    others = sb3.make("berthline/Pick-v0", num_envs=64, **options)
    at_random = mean_jct(others, lambda _, masks: random_actions(rng, others, masks))
    optimum = mean_jct(others, lambda *_: expert_actions(others.envs, "sjf"))
    learnt = mean_jct(
        others,
        lambda seen, masks: model.predict(seen, action_masks=masks, deterministic=True)[0],
    )
    assert optimum < at_random
    return (at_random - learnt) / (at_random - optimum)


def test_maskable_ppo_learns_to_take_the_shortest_job():
    assert 0.85 < share_of_the_way(all_at_once(), 24_576) <= 1.0


@pytest.mark.slow
def test_maskable_ppo_comes_close_to_the_optimum():
    assert 0.97 < share_of_the_way(all_at_once(), 131_072) <= 1.0


def test_what_is_missing_is_named_with_the_command():
    code = (
        "import sys; sys.modules['stable_baselines3'] = None\n"
        "from berthline.errors import MissingExtraError\n"
        "try:\n    import berthline.compat.sb3\n"
        "except MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'berthline[sb3]'" in done.stdout


def test_the_vec_env__calls_out_of_turn_are_refused():
    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=3, **SMALL)
    with pytest.raises(SimulationError, match="a step without an episode"):
        envs.step(np.zeros(3, np.int64))
    envs.reset()
    for method in ("log", "workload", "action_masks"):
        assert len(envs.env_method(method)) == 3
        with pytest.raises(ConfigError, match="there is no environment 3"):
            envs.env_method(method, indices=[0, 3])
    envs.close()
    envs.close()
    for call in (envs.reset, envs.action_masks, lambda: envs.step(np.zeros(3, np.int64))):
        with pytest.raises(SimulationError, match="the environments are closed"):
            call()


def test_the_vec_env__without_a_seed_has_different_episodes():
    from berthline.compat import sb3

    envs = sb3.make("berthline/Pick-v0", num_envs=3, **SMALL)
    envs.reset()
    assert len(set(envs.env_method("episode_key"))) == 3
