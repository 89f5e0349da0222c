"""VAL has as many episodes as the difference between the best rules asks for."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the extra `train` is not installed")

from berthline.learn.training.validation import Scores
from berthline.learn.training.validation_size import (
    FIRST_EPISODES,
    MOST_EPISODES,
    WANTED_ERROR,
    episodes_needed,
)


def rule(name, jct):
    return Scores(name=name, episode_return=[], metrics={"mean_jct": [float(x) for x in jct]})


def differences_with(error):
    """Two rules on 64 episodes; the standard error of their difference is a share of the mean."""
    apart = np.array([1.0, -1.0] * 32)
    apart *= error * 100 * np.sqrt(64) / apart.std(ddof=1)
    return [rule("best", [100.0] * 64), rule("next", 101.0 + apart)]


def test_a_difference_that_is_known_well_enough_takes_the_fewest():
    assert episodes_needed(differences_with(WANTED_ERROR / 2), "mean_jct") == FIRST_EPISODES


def test_more_scatter_takes_more_episodes():
    # (1.3 x the wanted error)^2 x 64 = 108.2, in steps of 32
    assert episodes_needed(differences_with(1.3 * WANTED_ERROR), "mean_jct") == 128
    # (1.2 x)^2 x 64 = 92.2
    assert episodes_needed(differences_with(1.2 * WANTED_ERROR), "mean_jct") == 96


def test_there_is_a_limit():
    assert episodes_needed(differences_with(10 * WANTED_ERROR), "mean_jct") == MOST_EPISODES


def test_rules_that_decide_the_same_say_nothing():
    same = [rule("best", [100.0] * 64), rule("same", [100.0] * 64)]
    assert episodes_needed(same, "mean_jct") == FIRST_EPISODES
    noisy = [*same, differences_with(1.2 * WANTED_ERROR)[1]]
    assert episodes_needed(noisy, "mean_jct") == 96


def test_the_best_is_the_one_with_the_highest_where_higher_is_better():
    best = Scores(name="b", episode_return=[], metrics={"utilization": [0.9] * 64})
    near = Scores(name="n", episode_return=[], metrics={"utilization": [0.8, 0.9] * 32})
    far = Scores(name="f", episode_return=[], metrics={"utilization": [0.1] * 64})
    assert episodes_needed([far, near, best], "utilization") == MOST_EPISODES
