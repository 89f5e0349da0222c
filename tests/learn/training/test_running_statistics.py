"""Discounts of later rewards, and the size of discounted sums."""

import math

import numpy as np
import pytest

from berthline.learn.training.running_statistics import RewardScale, fading, for_ever


def test_rewards_fade_with_simulated_time_or_with_steps():
    seconds = np.array([0.0, 60.0, 7200.0])
    assert fading(1.0, 7200.0, seconds) == pytest.approx([1.0, math.exp(-1 / 120), 1 / math.e])
    assert fading(0.9, 7200.0, seconds)[2] == pytest.approx(0.9 / math.e)
    assert fading(0.9, None, seconds).tolist() == [0.9, 0.9, 0.9]


def test_two_steps_of_an_hour_are_one_of_two():
    one, two = fading(1.0, 5000.0, np.array([3600.0])), fading(1.0, 5000.0, np.array([7200.0]))
    assert one**2 == pytest.approx(two)


def test_the_scale_is_the_root_mean_square_of_faded_sums():
    """Rewards 1, -2, 3 and then, in another episode, -4; discount 1/2 per step."""
    scale = RewardScale(1)
    for reward, ended in ((1, False), (-2, False), (3, True), (-4, False)):
        scale.update(np.array([float(reward)]), np.array([0.5]), np.array([ended]))
    sums = [1, -1.5, 2.25, -4]
    assert scale.size == pytest.approx(math.sqrt(sum(x * x for x in sums) / 4))


def test_sums_that_have_just_begun_are_not_taken_for_small():
    """Rewards of -1 with discount 0.9: the sum so far is -1, its limit is -10."""
    scale = RewardScale(20)
    scale.update(np.full(20, -1.0), np.full(20, 0.9), np.zeros(20, np.bool_))
    assert scale.size == pytest.approx(10.0)
    assert scale.usual == pytest.approx(-1.0)
    for _ in range(200):
        scale.update(np.full(20, -1.0), np.full(20, 0.9), np.zeros(20, np.bool_))
    assert scale.size == pytest.approx(10.0)


def test_what_ends_fades_wholly():
    """Episodes of 5 steps with reward 1 each: without discount, values are at most 5."""
    scale = RewardScale(1)
    for step in range(50):
        scale.update(np.ones(1), np.ones(1), np.array([step % 5 == 4]))
    assert scale.size == pytest.approx(5.0)


def test_rewards_for_ever_where_nothing_fades_are_those_so_far():
    assert for_ever(-12.0, 3.0, 4) == -4.0
    assert for_ever(-12.0, 0.5, 4) == -3.0
