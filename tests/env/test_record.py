"""Recorded decisions give the same rewards and the same schedule when they are repeated."""

from __future__ import annotations

import json
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import berthline as bl
from berthline.env.datasets.dataset import Dataset
from berthline.env.datasets.record import record
from berthline.env.episodes_source import batch_seeds
from berthline.errors import ConfigError, MissingExtraError, OutputError, PolicyError

SMALL = {"episode_jobs": 24, "load": 2.0, "cluster": "uniform:2x4", "window": 24}


def was_seen(dataset, episode, step, observation, info):
    """Compare the record with what the environment shows."""
    np.testing.assert_array_equal(episode.action_masks[step], info["action_mask"])
    flat = observation
    if isinstance(observation, dict):
        flat = np.concatenate([observation[name].ravel() for name in dataset.metadata["tables"]])
    np.testing.assert_array_equal(episode.observations[step], flat)
    if episode.pair_masks is not None:
        np.testing.assert_array_equal(episode.pair_masks[step], observation["pair_mask"])


def replay(dataset, episode):
    """Repeat the decisions of a recorded episode; return the environment after it."""
    env = gym.make(gym.envs.registration.EnvSpec.from_json(dataset.metadata["env_spec"])).unwrapped
    observation, info = env.reset(seed=episode.seed)
    for _ in range(episode.number):
        observation, info = env.reset()
    assert tuple(info["episode_key"]) == (episode.seed, episode.number)
    was_seen(dataset, episode, 0, observation, info)
    for step, action in enumerate(episode.actions):
        observation, reward, terminated, truncated, info = env.step(action)
        assert reward == episode.rewards[step]
        np.testing.assert_array_equal(info["reward_terms"], episode.reward_terms[step])
        assert (terminated, truncated) == (episode.terminations[step], episode.truncations[step])
        was_seen(dataset, episode, step + 1, observation, info)
    assert info["sched"] == episode.scores
    return env


@pytest.mark.parametrize(
    ("name", "expert"),
    [
        ("Pick", "sjf"),
        ("PickPlace", "sjf+easy@worst-fit"),
        ("Place", "fcfs@first-fit"),
        ("Meta", "sjf+easy"),
        ("Backfill", "sjf"),
        ("Gate", "fcfs?express-lane"),
    ],
)
def test_replaying_gives_the_same(name, expert, tmp_path):
    dataset = record(
        f"berthline/{name}-v0", expert, tmp_path / "set", episodes=5, seed=40, num_envs=3, **SMALL
    )
    first, second, third = batch_seeds(40, 3)
    assert [(one.seed, one.number) for one in dataset] == [
        (first, 0),
        (first, 1),
        (second, 0),
        (second, 1),
        (third, 0),
    ]
    for episode in dataset:
        replay(dataset, episode)
    assert dataset.metadata["total_steps"] == sum(len(one.actions) for one in dataset)
    assert dataset.metadata["algorithm_name"] == expert


def test_pairs_that_were_possible_when_an_episode_was_cut_off(tmp_path):
    options = {**SMALL, "max_steps": 6}
    dataset = record("berthline/PickPlace-v0", "sjf", tmp_path / "set", episodes=4, **options)
    assert all(episode.truncations[-1] for episode in dataset)
    assert any(episode.pair_masks[-1].any() for episode in dataset)
    for episode in dataset:
        replay(dataset, episode)


def test_the_recorded_schedule_is_the_schedulers(tmp_path):
    dataset = record("berthline/Pick-v0", "sjf", tmp_path / "set", episodes=2, num_envs=1, **SMALL)
    for episode in dataset:
        env = replay(dataset, episode)
        result = bl.simulate(
            env.workload(), env.plan.cluster, "sjf+easy@best-fit", knowledge="estimate"
        )
        np.testing.assert_array_equal(env.log().time, result.log.time)
        np.testing.assert_array_equal(env.log().job, result.log.job)
        np.testing.assert_array_equal(env.log().alloc_node, result.log.alloc_node)
        assert episode.scores["mean_jct"] == pytest.approx(result.metrics().jct.mean)


def test_what_json_has_no_word_for_comes_back(tmp_path):
    """A range of loads is a tuple, and so is a term of a reward; JSON has lists only."""
    options = {**SMALL, "load": (0.8, 1.2), "reward": {"queue": ("second", "-queue_len")}}
    options["max_restarts"] = float("inf")
    dataset = record("berthline/Pick-v0", "sjf", tmp_path / "set", episodes=3, **options)
    for episode in Dataset(tmp_path / "set"):
        env = replay(dataset, episode)
    assert env.plan.options.load == (0.8, 1.2)


def test_threads_record_the_same(tmp_path):
    one, two = (
        record("berthline/Pick-v0", "sjf", tmp_path / name, episodes=6, num_threads=num, **SMALL)
        for name, num in (("one", 1), ("two", 2))
    )
    assert one.metadata == two.metadata
    for name, column in one.columns.items():
        np.testing.assert_array_equal(column, two.columns[name])
    replay(two, two[-1])


@pytest.mark.parametrize("option", [{"copy": False}, {"autoreset_mode": "next_step"}])
def test_how_a_batch_hands_things_over_is_not_an_option(option, tmp_path):
    with pytest.raises(ConfigError, match=f"unknown option '{next(iter(option))}'"):
        record("berthline/Pick-v0", "sjf", tmp_path / "set", episodes=1, **SMALL, **option)
    assert not (tmp_path / "set").exists()


def test_any_function_can_be_recorded(tmp_path):
    def first_allowed(observations, masks):
        assert observations.shape[0] == len(masks)
        return masks.argmax(axis=1)

    dataset = record(
        "berthline/Pick-v0",
        first_allowed,
        tmp_path / "set",
        episodes=3,
        observation="flat",
        max_steps=10,
        **SMALL,
    )
    assert dataset.metadata["algorithm_name"] == "first_allowed"
    observations, masks, actions = dataset.decisions()
    assert len(observations) == len(masks) == len(actions) == 30
    assert masks[np.arange(30), actions].all()
    assert all(one.truncations[-1] and not one.terminations.any() for one in dataset)
    np.testing.assert_array_equal(observations[10:20], dataset[1].observations[:-1])
    assert dataset[-1].id == 2


def test_cloning_by_hand_finds_the_rule(tmp_path):
    """The targets can be learnt: the shortest allowed job, read from the columns, is the action."""
    dataset = record(
        "berthline/Pick-v0", "sjf", tmp_path / "set", episodes=4, knowledge="exact", **SMALL
    )
    observations, masks, actions = dataset.decisions()
    rows, width = dataset.metadata["tables"]["jobs"]
    column = dataset.metadata["columns"]["jobs"].index("log10(1 + estimate) / 6")
    estimates = observations[:, : rows * width].reshape(-1, rows, width)[:, :, column]
    shortest = np.where(masks[:, :rows], estimates, np.inf).argmin(axis=1)
    assert (shortest == actions).mean() > 0.95  # ties go by the job's number


def test_a_dataset_is_whole_or_not_there(tmp_path):
    out = tmp_path / "set"
    record("berthline/Pick-v0", "sjf", out, episodes=1, **SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set"]
    assert json.loads((out / "data/metadata.json").read_text())["total_episodes"] == 1
    with pytest.raises(ConfigError, match="already exists"):
        record("berthline/Pick-v0", "sjf", out, episodes=1, **SMALL)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot write the dataset"):
        record("berthline/Pick-v0", "sjf", tmp_path / "file" / "set", episodes=1, **SMALL)


def test_objects_among_the_options_are_not_pretended_to_be_written(tmp_path):
    cluster = bl.Cluster.uniform(nodes=2, gpus_per_node=4)
    workload = bl.generate("synthetic", cluster=cluster, jobs=64, load=1.0, seed=1)
    options = {**SMALL, "workload": workload, "load": None}
    dataset = record("berthline/Pick-v0", "sjf", tmp_path / "set", episodes=1, **options)
    assert dataset.metadata["env_spec"] is None
    assert not dataset.metadata["options_are_complete"]
    assert len(dataset) == 1


def test_what_cannot_be_recorded(tmp_path):
    with pytest.raises(ConfigError, match="did you mean 'berthline/Pick-v0'"):
        record("berthline/Pik-v0", "sjf", tmp_path / "set", episodes=1)
    with pytest.raises(ConfigError, match="episodes is 0"):
        record("berthline/Pick-v0", "sjf", tmp_path / "set", episodes=0)
    with pytest.raises(PolicyError, match="no experts"):
        record("berthline/Preempt-v0", "sjf", tmp_path / "set", episodes=1)
    with pytest.raises(ConfigError, match="cannot read a dataset"):
        Dataset(tmp_path / "nothing")


def test_minari(tmp_path, monkeypatch):
    """With Minari installed, it becomes a Minari dataset; without, the error says how."""
    options = {**SMALL, "load": (1.5, 2.0)}
    dataset = record(
        "berthline/Pick-v0", "sjf", tmp_path / "set", episodes=3, num_envs=2, **options
    )
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    try:
        import h5py  # noqa: F401
        import minari
    except ModuleNotFoundError:
        with pytest.raises(MissingExtraError, match=r"(?s)pip install 'berthline\[minari\]'"):
            dataset.to_minari("berthline/pick/sjf-v0")
        return
    details = {"author": "a", "author_email": "a@b.c", "code_permalink": "none"}
    dataset.to_minari("berthline/pick/sjf-v0", description="shortest first", **details)
    again = minari.load_dataset("berthline/pick/sjf-v0")
    assert again.total_episodes == 3
    for mine, theirs in zip(dataset, again.iterate_episodes(), strict=True):
        np.testing.assert_array_equal(mine.actions, theirs.actions)
        np.testing.assert_array_equal(mine.rewards, theirs.rewards)
        np.testing.assert_array_equal(mine.action_masks, theirs.observations["action_mask"])
    assert again.recover_environment().unwrapped.plan.options.load == (1.5, 2.0)
    seeds = [one.get("seed") for one in again.storage.get_episode_metadata(range(3))]
    assert seeds == [0, None, 1]  # the second is not the first of its seed


@pytest.mark.parametrize(
    "option",
    [
        {"episode_jobs": np.int64(10)},
        {"reward": {"q": ("second", "-queue_len")}, "reward_weights": {"q": np.float32(2)}},
        {"dials": {"users": np.int64(5)}},
        {"cluster": Path("uniform:2x4")},
    ],
)
def test_numbers_of_numpy_and_paths_are_recorded(option, tmp_path):
    dataset = record(
        "berthline/Pick-v0", "sjf", tmp_path / "set", episodes=2, **{**SMALL, **option}
    )
    assert dataset.metadata["options_are_complete"]
    assert "experts" not in dataset.metadata["options"]
    for episode in dataset:
        replay(dataset, episode)
