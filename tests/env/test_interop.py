"""Every environment follows Gymnasium's interface, alone and in a batch."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector

from berthline.env.episodes_source import batch_seeds
from berthline.env.registration import SEATS, env_id

IDS = [env_id(name) for name in SEATS]
SMALL = {"episode_jobs": 24, "load": 2.0, "cluster": "uniform:2x4", "window": 8}


def random_actions(rng, envs, masks):
    """Return an allowed action for each mask."""
    space = getattr(envs, "single_action_space", envs.action_space)
    if isinstance(space, gym.spaces.Discrete):
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in masks])
    jobs = space.nvec[0]
    return np.array(
        [
            [rng.choice(np.flatnonzero(mask[:jobs])), rng.choice(np.flatnonzero(mask[jobs:]))]
            for mask in masks
        ]
    )


@pytest.mark.parametrize("observation", ["dict", "flat"])
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_nothing_to_warn_of(name, observation):
    check_env(gym.make(name, observation=observation, **SMALL).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_a_spec_makes_the_same_environment_again(name):
    env = gym.make(name, **SMALL)
    assert env.spec.id == name
    spec = pickle.loads(pickle.dumps(copy.deepcopy(env.spec)))
    again = gym.make(gym.envs.registration.EnvSpec.from_json(spec.to_json()))
    assert again.observation_space == env.observation_space
    assert again.action_space == env.action_space
    first, _ = env.reset(seed=5)
    second, _ = again.reset(seed=5)
    for name in first:
        np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("mode", [None, "sync", "vector_entry_point"])
@pytest.mark.parametrize("name", IDS)
def test_a_batch_however_it_is_made(name, mode):
    envs = gym.make_vec(name, num_envs=3, vectorization_mode=mode, **SMALL)
    assert envs.num_envs == 3
    assert envs.spec.id == name
    assert envs.metadata["autoreset_mode"] == (
        AutoresetMode.NEXT_STEP if mode == "sync" else AutoresetMode.SAME_STEP
    )
    rng = np.random.default_rng(1)
    observations, infos = envs.reset(seed=4)
    ended = 0
    for _ in range(120):
        assert envs.observation_space.contains(observations)
        masks = infos["action_mask"]
        np.testing.assert_array_equal(masks, observations["action_mask"])
        actions = random_actions(rng, envs, masks)
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert rewards.shape == terminated.shape == truncated.shape == (3,)
        over = terminated | truncated
        if over.any() and mode != "sync":
            np.testing.assert_array_equal(infos["_final_obs"], over)
            for env in np.flatnonzero(over):
                assert envs.single_observation_space.contains(infos["final_obs"][env])
        ended += over.sum()
    assert ended
    envs.close()


WRAPPERS = {
    "RecordEpisodeStatistics": vector.RecordEpisodeStatistics,
    "DictInfoToList": lambda envs: vector.DictInfoToList(vector.RecordEpisodeStatistics(envs)),
    "NormalizeReward": vector.NormalizeReward,
    "FlattenObservation": vector.FlattenObservation,
    "TransformObservation": lambda envs: vector.TransformObservation(envs, copy.deepcopy),
}
ONLY_NEXT_STEP = ("FlattenObservation", "TransformObservation")  # Gymnasium says so


def of_env(infos, env):
    """Return what the infos of a batch say about one environment."""
    return {
        name: of_env(value, env) if isinstance(value, dict) else value[env]
        for name, value in infos.items()
    }


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", ["berthline/Pick-v0", "berthline/PickPlace-v0"])
def test_wrappers_of_batches(name, wrapper, mode):
    plain = gym.make_vec(name, num_envs=3, autoreset_mode=mode, **SMALL)
    if wrapper in ONLY_NEXT_STEP and mode == "same_step":
        with pytest.raises(ValueError, match="NEXT_STEP"):
            WRAPPERS[wrapper](plain)
        return
    envs = WRAPPERS[wrapper](plain)
    rng = np.random.default_rng(5)
    envs.reset(seed=4)
    seen = set()
    for _ in range(120):
        actions = random_actions(rng, plain, plain.action_masks())
        observations, _, terminated, truncated, infos = envs.step(actions)
        assert envs.observation_space.contains(observations)
        for env in np.flatnonzero(terminated | truncated):
            seen.add(env)
            info = infos[env] if isinstance(infos, list) else of_env(infos, env)
            sched = info.get("final_info", info)["sched"]
            if "episode" in info:
                assert info["episode"]["r"] == pytest.approx(sched["return"])
                assert info["episode"]["l"] == sched["length"]
            assert ("episode" in info) == (wrapper in ("RecordEpisodeStatistics", "DictInfoToList"))
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("name", IDS)
def test_statistics_of_episodes_of_one_environment(name):
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(name, **SMALL))
    rng = np.random.default_rng(6)
    _, info = env.reset(seed=4)
    is_over = False
    while not is_over:
        (action,) = random_actions(rng, env, [info["action_mask"]])
        _, _, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated
    assert info["episode"]["r"] == pytest.approx(info["sched"]["return"])
    assert info["episode"]["l"] == info["sched"]["length"]


@pytest.mark.parametrize("name", IDS)
def test_ways_of_batching_agree(name):
    """In NEXT_STEP mode, separate environments and the native batch do the same."""
    native = gym.make_vec(name, num_envs=3, autoreset_mode="next_step", **SMALL)
    separate = gym.make_vec(name, num_envs=3, vectorization_mode="sync", **SMALL)
    rng = np.random.default_rng(2)
    first, infos = native.reset(seed=8)
    second, _ = separate.reset(seed=batch_seeds(8, 3))  # an integer is 8, 9, 10 to Gymnasium
    for _ in range(100):
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])
        actions = random_actions(rng, native, infos["action_mask"])
        first, *outcome, infos = native.step(actions)
        second, *other, _ = separate.step(actions)
        for one, two in zip(outcome, other, strict=True):
            np.testing.assert_array_equal(one, two)
