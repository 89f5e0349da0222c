"""What is chosen on VAL, and the average of what several seeds have found."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.winning_choice import averaged, chosen, numbers_of
from benchmarks.winning_spaces import BLIND, RUSH, SURE

from berthline.learn.tuning.search_goal import Goal, WindowOutcome

REFERENCE = [WindowOutcome(100.0, 500.0, 4.0, 1000.0)] * 20


def outcomes(slowdowns):
    return [WindowOutcome(100.0, 500.0, float(slowdown), 1000.0) for slowdown in slowdowns]


def test_the_preferred_is_taken_unless_another_is_better_beyond_chance():
    random = np.random.default_rng(0)
    base = 4 * np.exp(random.normal(0, 0.5, 20))
    # On average 2 % better, one window this way and one that way: chance.
    lucky = base * np.exp(-0.02 + np.tile([0.3, -0.3], 10))
    better = base * 0.9
    found = {name: outcomes(x) for name, x in (("a", base), ("b", lucky), ("c", better))}
    assert chosen(["a", "b"], found, REFERENCE, Goal()) == "a"
    assert chosen(["b", "a"], found, REFERENCE, Goal()) == "b"
    assert chosen(["a", "b", "c"], found, REFERENCE, Goal()) == "c"
    assert chosen(["b", "c"], found, REFERENCE, Goal()) == "c"


def test_whoever_breaks_a_limit_is_not_taken():
    idle = [WindowOutcome(120.0, 500.0, 2.0, 1000.0)] * 20
    found = {"idle": idle, "fair": outcomes([3.9] * 20)}
    assert chosen(["idle", "fair"], found, REFERENCE, Goal()) == "fair"


@pytest.mark.parametrize("space", [BLIND, RUSH, SURE], ids=lambda space: space.name)
def test_numbers_are_read_back_whatever_their_signs(space):
    random = np.random.default_rng(0)
    for _ in range(50):
        point = random.random(len(space.parameters))
        assert numbers_of(space, space.scheduler(point)) == space.values(point)


def test_the_average_is_in_the_middle():
    low, high = (space_point(0.2), space_point(0.6))
    assert averaged(SURE, [low, high]) == space_point(0.4)


def space_point(share):
    return SURE.scheduler([share] * len(SURE.parameters))
