"""Interquartile mean, probability of improvement and profiles, by their published definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from berthline.errors import ConfigError
from berthline.evaluate.statistics.improvement import probability_of_improvement
from berthline.evaluate.statistics.interquartile_mean import (
    interquartile_mean,
    interquartile_mean_interval,
)
from berthline.evaluate.statistics.interval import stratified
from berthline.evaluate.statistics.profiles import performance_profile, ratios_to_best

TABLES = hnp.arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 9)
)


def trimmed_mean(values: list[float]) -> float:
    """A quarter at each end, rounded down, is left out."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    kept = ordered[cut : len(ordered) - cut]
    return math.fsum(kept) / len(kept)


@pytest.mark.parametrize(
    ("scores", "value"),
    [
        ([7], 7),
        ([1, 2, 9], 4),  # a quarter of three is none
        ([0, 1, 3, 100], 2),
        ([1, 2, 3, 4, 5, 6, 7, 800], 4.5),
        ([[1, 100], [3, 5]], 4),
    ],
)
def test_interquartile_mean__by_hand(scores: list, value: float) -> None:
    assert interquartile_mean(scores) == value


@given(TABLES)
def test_interquartile_mean__is_the_trimmed_mean_of_all_scores(table: np.ndarray) -> None:
    expected = trimmed_mean(table.ravel().tolist())
    assert interquartile_mean(table) == pytest.approx(expected)
    assert interquartile_mean_interval(table, resamples=20).value == pytest.approx(expected)


def test_resampling__is_stratified__every_window_keeps_its_own_runs() -> None:
    table = np.array([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0]])
    seen = [set(), set(), set()]
    for [part] in stratified([table], seed=0, resamples=200):
        assert part.shape[1:] == table.shape
        for window in range(3):
            seen[window] |= set(part[:, :, window].ravel().tolist())
    assert seen == [{1.0, 2.0}, {10.0, 20.0}, {100.0, 200.0}]


def test_resampling__windows_too__moves_whole_windows() -> None:
    table = np.array([[1.0, 10.0, 100.0]])
    drawn = np.concatenate(
        [part for [part] in stratified([table], seed=0, resamples=500, windows_too=True)]
    )
    kinds = {tuple(row) for row in drawn[:, 0].tolist()}
    assert kinds == set(itertools.product([1.0, 10.0, 100.0], repeat=3))


def test_resampling__runs_of_a_window_are_drawn_alike() -> None:
    """Each of the 2^2 ways to draw two runs of one window occurs about a quarter of the time."""
    table = np.array([[0.0], [1.0]])
    drawn = np.concatenate([part for [part] in stratified([table], seed=1, resamples=40_000)])
    shares = np.bincount((drawn[:, 0, 0] * 2 + drawn[:, 1, 0]).astype(int), minlength=4) / 40_000
    assert shares == pytest.approx([0.25] * 4, abs=0.01)


def test_interquartile_mean__interval__is_the_percentiles_of_all_resamples() -> None:
    """With 3 runs on 2 windows there are 3^3 x 3^3 equally likely resamples: all are computed."""
    table = np.array([[1.0, 4.0], [2.0, 8.0], [6.0, 5.0]])
    every = [
        trimmed_mean([*first, *second])
        for first in itertools.product(table[:, 0], repeat=3)
        for second in itertools.product(table[:, 1], repeat=3)
    ]
    found = interquartile_mean_interval(table, seed=3, resamples=60_000)
    assert found.value == trimmed_mean(table.ravel().tolist())
    low, high = np.quantile(every, (0.025, 0.975))
    assert (found.low, found.high) == pytest.approx((low, high), abs=0.13)
    assert (found.runs, found.windows) == (3, 2)


def test_interquartile_mean__normal_runs__interval_is_as_wide_as_theory_says() -> None:
    """The standard error of a 25 % trimmed mean of normal values is about 1.09 s / sqrt(n)."""
    widths = []
    for seed in range(20):
        table = np.random.default_rng(seed).normal(0, 1, (40, 5))
        found = interquartile_mean_interval(table, seed=seed, resamples=2000)
        assert found.low is not None
        assert found.high is not None
        widths.append(found.high - found.low)
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 1.093 / math.sqrt(200), rel=0.06)


def test_interval__one_run__resamples_windows__or_nothing() -> None:
    found = interquartile_mean_interval([1.0, 2.0, 3.0, 9.0])
    assert found.low is not None
    assert found.low < found.value < found.high
    kept = interquartile_mean_interval([1.0, 2.0, 3.0, 9.0], resample_windows=False)
    assert (kept.low, kept.high) == (None, None)
    alone = interquartile_mean_interval([[4.0]])
    assert (alone.value, alone.low, alone.high) == (4.0, None, None)


@settings(max_examples=60)
@given(TABLES, st.integers(1, 5), st.booleans(), st.randoms(use_true_random=False))
def test_improvement__is_mann_whitneys_u_per_window(ours, runs, higher, random) -> None:
    theirs = np.array([[random.randint(0, 9) for _ in range(ours.shape[1])] for _ in range(runs)])
    per_window = []
    for window in range(ours.shape[1]):
        u = 0.0
        for x, y in itertools.product(ours[:, window], theirs[:, window]):
            u += 0.5 if x == y else float((x > y) == higher)
        per_window.append(u / (len(ours) * runs))
    found = probability_of_improvement(ours, theirs, higher_is_better=higher, resamples=10)
    assert found.value == pytest.approx(np.mean(per_window))
    other = probability_of_improvement(theirs, ours, higher_is_better=higher, resamples=10)
    assert found.value + other.value == pytest.approx(1.0)


def test_improvement__shifted_normal_runs__is_the_closed_form() -> None:
    """P(X < Y) = Phi(d / sqrt 2) for unit normals that are d apart."""
    rng = np.random.default_rng(4)
    found = probability_of_improvement(
        rng.normal(0, 1, (200, 20)), rng.normal(1, 1, (200, 20)), resamples=200
    )
    assert found.value == pytest.approx(0.5 * math.erfc(-1 / 2), abs=0.01)
    assert found.low < 0.5 * math.erfc(-1 / 2) < found.high


def test_improvement__windows_differ__is_refused() -> None:
    with pytest.raises(ConfigError, match="2 windows against 3"):
        probability_of_improvement([1.0, 2.0], [1.0, 2.0, 3.0])


@given(TABLES, st.lists(st.integers(-1, 10), min_size=1, max_size=5))
def test_profile__is_the_share_of_scores(table: np.ndarray, at: list[int]) -> None:
    lower = performance_profile(table, at, resamples=20)
    higher = performance_profile(table, at, higher_is_better=True, resamples=20)
    flat = table.ravel().tolist()
    for index, threshold in enumerate(at):
        below = sum(score <= threshold for score in flat) / len(flat)
        above = sum(score > threshold for score in flat) / len(flat)
        assert lower.share[index] == pytest.approx(below)
        assert higher.share[index] == pytest.approx(above)
        if lower.low is not None:
            assert lower.low[index] <= lower.high[index]


def test_profile__band__is_binomial_for_one_window() -> None:
    """A share of 100 runs on one window: the bootstrap's spread is sqrt(p (1 - p) / n)."""
    table = np.repeat([0.0, 1.0], [70, 30])[:, np.newaxis]
    found = performance_profile(table, [0.5], resamples=20_000)
    half = 1.96 * math.sqrt(0.7 * 0.3 / 100)
    assert found.share == [0.7]
    assert found.low[0] == pytest.approx(0.7 - half, abs=0.011)
    assert found.high[0] == pytest.approx(0.7 + half, abs=0.011)


def test_ratios_to_best__by_hand() -> None:
    times = [[10.0, 4.0, 0.0], [20.0, 2.0, 0.0], [10.0, 6.0, 1.0]]
    expected = np.array([[1, 2, 1], [2, 1, 1], [1, 3, math.inf]])
    assert (ratios_to_best(times) == expected).all()
    shares = ratios_to_best([[0.5, 0.0], [1.0, 0.5]], higher_is_better=True)
    assert (shares == np.array([[2, math.inf], [1, 1]])).all()
    with pytest.raises(ConfigError, match="below 0"):
        ratios_to_best([[1.0, -1.0]])


@pytest.mark.parametrize("scores", [[], [[]], [[[1.0]]], [1.0, math.nan]])
def test_scores__missing_or_of_another_shape__are_refused(scores: list) -> None:
    with pytest.raises(ConfigError, match=r"scores"):
        interquartile_mean(scores)


def test_same_seed_same_bits__other_seed_others() -> None:
    table = np.random.default_rng(0).normal(1, 1, (4, 6)) ** 2
    for figure in (
        lambda seed: interquartile_mean_interval(table, seed=seed, resamples=500),
        lambda seed: probability_of_improvement(table, table[::-1] + 0.3, seed=seed, resamples=500),
        lambda seed: performance_profile(table, [0.5, 1.0], seed=seed, resamples=500),
    ):
        assert figure(3) == figure(3)
    assert interquartile_mean_interval(table, seed=3) != interquartile_mean_interval(table, seed=4)


def test_drawing_in_chunks__bounds_memory_and_keeps_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("berthline.evaluate.statistics.interval.DRAWS_PER_CHUNK", 100)
    parts = list(stratified([np.zeros((5, 4))], seed=0, resamples=23))
    assert [len(part) for [part] in parts] == [5, 5, 5, 5, 3]
