"""What an environment shows depends only on its seed and its actions."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.env.agents import (
    SEATS,
    Trajectory,
    options_of,
    play_many,
    play_one,
    play_single,
    play_vector,
    small_task,
)
from tests.shared_traces import REPOSITORY

from berthline.env.episodes_source import batch_seeds
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv

STEPS = 120
HARD = {
    "conditions": {"mtbf": 2000.0, "mttr": 300.0, "refusal_rate": 0.1, "tick": 2.0},
    "placement": "random",
    "order": "random",
}
"""Everything that draws random numbers."""


@pytest.mark.parametrize("seat", SEATS)
def test_batches_of_any_size_show_what_single_environments_show(seat: str) -> None:
    alone = [play_single(seat, seed, STEPS) for seed in batch_seeds(7, 3)]
    for num_envs in (1, 7, 64):
        together = play_vector(seat, 7, STEPS, num_envs)
        assert all(map(Trajectory.equals, together, alone[:num_envs]))
    assert sum(len(one.scores) for one in alone) >= 3


@pytest.mark.parametrize("seat", SEATS)
def test_defaults__batches_show_what_single_environments_show(seat: str) -> None:
    options = small_task(seat, observation="flat")
    alone = [play_one(SchedulingEnv(seat, **options), s, STEPS) for s in batch_seeds(7, 3)]
    together = play_many(SchedulingVectorEnv(7, seat, num_threads=2, **options), 7, STEPS)
    assert all(map(Trajectory.equals, together, alone))
    assert any(one.scores for one in alone)


@pytest.mark.parametrize("seat", SEATS)
def test_threads_change_nothing(seat: str) -> None:
    more = {} if seat in ("place", "pickplace") else HARD
    one = play_vector(seat, 3, STEPS, 13, num_threads=1, **more)
    two = play_vector(seat, 3, STEPS, 13, num_threads=2, **more)
    five = play_vector(seat, 3, STEPS, 13, num_threads=5, **more)
    assert all(map(Trajectory.equals, one, two))
    assert all(map(Trajectory.equals, one, five))


def test_batches_with_everything_random_show_what_single_environments_show() -> None:
    alone = [play_single("pick", seed, STEPS, **HARD) for seed in batch_seeds(11, 4)]
    together = play_vector("pick", 11, STEPS, 20, **HARD)
    assert all(map(Trajectory.equals, together, alone))


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**20), st.integers(2, 40), st.integers(1, 4), st.sampled_from(SEATS))
def test_any_batch_shows_what_a_single_environment_shows(
    seed: int, num_envs: int, num_threads: int, seat: str
) -> None:
    place = seed % num_envs
    together = play_vector(seat, seed, 60, num_envs, num_threads)
    own = batch_seeds(seed, num_envs)[place]
    assert together[place].equals(play_single(seat, own, 60))


def digest() -> str:
    """Return a hash of everything that a few batches show."""
    hashed = hashlib.sha256()
    for seat in SEATS:
        for one in play_vector(seat, 5, 40, 3, **(HARD if seat == "gate" else {})):
            for table in (*one.observations, *one.masks, np.array(one.rewards)):
                hashed.update(np.ascontiguousarray(table).data)
    return hashed.hexdigest()


def test_processes_show_the_same() -> None:
    root = REPOSITORY
    code = "from tests.env.test_batch_invariance import digest; print(digest())"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    assert found == {f"{digest()}\n"}


@pytest.mark.parametrize("seat", SEATS)
def test_autoreset_modes_differ_by_the_step_that_resets_only(seat: str) -> None:
    num_envs = 5
    same = play_vector(seat, 21, 100, num_envs)
    envs = SchedulingVectorEnv(
        num_envs, seat, autoreset_mode="next_step", **options_of(seat, observation="flat")
    )
    for i in range(num_envs):
        expected = same[i]
        actions = play_actions(seat, batch_seeds(21, num_envs)[i], expected)
        observations, infos = envs.reset(seed=21)
        step, was_over = 0, False
        while step < len(actions):
            assert np.array_equal(observations[i], expected.observations[step])
            assert np.array_equal(infos["action_mask"][i], expected.masks[step])
            everybody = np.stack([actions[step]] * num_envs)
            observations, rewards, terminated, truncated, infos = envs.step(everybody)
            assert rewards[i] == expected.rewards[step]
            assert (terminated[i], truncated[i]) == expected.ends[step]
            was_over = bool(terminated[i] or truncated[i])
            step += 1
            if was_over:
                observations, rewards, terminated, truncated, infos = envs.step(everybody)
                assert rewards[i] == 0
                assert not terminated[i]
                assert not truncated[i]


def play_actions(seat: str, seed: int, trajectory: Trajectory) -> list[np.ndarray]:
    """Return the actions of a trajectory: its agent draws them from its masks."""
    from tests.env.agents import random_action

    rng = np.random.default_rng(seed)
    return [np.asarray(random_action(rng, mask, seat)) for mask in trajectory.masks]
