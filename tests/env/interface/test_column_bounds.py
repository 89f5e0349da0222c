"""Bounds of columns: by hand, against values of formulas, and of whole observations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.agreement.random_formulas import random_formula
from tests.env.agents import SEATS, options_of, random_action

from berthline.env.columns import COLUMN_SETS
from berthline.env.interface.column_bounds import bounds_of
from berthline.env.reference_env import cut
from berthline.env.single import SchedulingEnv
from berthline.model.cluster import Cluster
from berthline.policies.formulas import Formula

MOST = 1e6


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("wait / (wait + 3600)", (0, 1)),
        ("wait / (3600 + gpus + wait)", (0, 1)),
        ("wait / (wait - 3600)", (-MOST, MOST)),
        ("wait / (wait + slack)", (-MOST, MOST)),
        ("free_gpus / total_gpus", (0, 1)),
        ("1 - utilization", (0, 1)),
        ("utilization - can_start", (-1, 1)),
        ("clip(slack / 60, -1, 2)", (-1, 2)),
        ("min(wait / 60, 1)", (0, 1)),
        ("tanh(queue_len / 50)", (0, 1)),
        ("1 + can_start", (0, 2)),
        ("-utilization * 3", (-3, 0)),
        ("where(gpus > 4, 0.5, -0.5)", (-0.5, 0.5)),
        ("wait > 60", (0, 1)),
        ("log2(1 + gpus)", (0, MOST)),
        ("abs(slack)", (0, MOST)),
        ("abs(utilization - 0.25)", (0, 0.75)),
        ("sqrt(utilization)", (0, 1)),
        ("slack ** 2", (-MOST, MOST)),
        ("2 / (1 + can_start)", (0, 2)),
        ("priority / max_priority", (-MOST, 1)),
        ("exp(-utilization)", (0, 1)),
        ("min(queue_len, 0 / 0)", (0, MOST)),  # queue_len, as the second is no number
        ("max(-can_start, utilization / utilization)", (-1, 1)),
    ],
)
def test_by_hand(text: str, expected: tuple[float, float]) -> None:
    assert bounds_of(Formula.parse(text), has_plain_waits=True) == pytest.approx(expected)


def test_a_wait__that_is_a_difference_of_sums_may_be_rounded_below_0() -> None:
    assert bounds_of(Formula.parse("wait"), has_plain_waits=False) == (-MOST, MOST)


def test_gpus__are_bounded_by_the_cluster() -> None:
    cluster = Cluster.parse("uniform:4x8:V100")
    found = bounds_of(Formula.parse("log2(gpus) / 10"), has_plain_waits=True, cluster=cluster)
    assert found.high == pytest.approx(0.5)


EXTREMES = st.sampled_from([0.0, 1e-300, 0.5, 1.0, 7.0, 3600.0, 1e18, 1e308, math.inf])
SHARES = ("can_start", "running", "utilization", "fragmentation", "random")


@given(st.integers(0, 10**6), st.lists(EXTREMES, min_size=8, max_size=8))
def test_values__never_leave_the_bounds(number: int, values: list[float]) -> None:
    words = ("wait", "estimate", "gpus", "restarts", "queue_len", *SHARES[:3])
    rng = np.random.default_rng(number)
    formula = Formula.parse(random_formula(rng, words, depth=int(rng.integers(1, 5))))
    given_values = dict(zip(words, values, strict=True))
    for word in SHARES:
        if word in given_values:
            given_values[word] = min(given_values[word], 1.0)
    low, high = bounds_of(formula, has_plain_waits=True)
    assert low <= cut(formula.evaluate(given_values.__getitem__)) <= high


@pytest.mark.parametrize("name", COLUMN_SETS)
@pytest.mark.parametrize("seat", SEATS)
def test_observations__of_named_columns_never_leave_the_space(seat: str, name: str) -> None:
    options = options_of(seat, features=name, lookahead="sorted", start="warm")
    env = SchedulingEnv(seat, **options)
    space = env.observation_space
    rng = np.random.default_rng(1)
    observation, info = env.reset(seed=2)
    for _ in range(30):
        assert space.contains(observation)
        observation, _, *over, info = env.step(random_action(rng, info["action_mask"], seat))
        if any(over[:2]):
            observation, info = env.reset()


def test_spaces__of_the_default_have_shares_where_they_are_known() -> None:
    space = SchedulingEnv("pick", **options_of("pick")).observation_space
    shares = np.array([True, False, False, False, False, True, True, True])
    np.testing.assert_array_equal(space["jobs"].high[0] == 1, shares | (np.arange(8) == 4))
    assert (space["globals"].low == 0).all()
    flat = SchedulingEnv("pick", **options_of("pick", observation="flat")).observation_space
    np.testing.assert_array_equal(flat.high[:8], space["jobs"].high[0])
