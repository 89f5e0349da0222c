"""Paired ratios against closed forms, and verdicts word for word."""

from __future__ import annotations

import math

import numpy as np
import pytest

from berthline.errors import ConfigError
from berthline.evaluate.statistics.paired import Ratio, paired_ratio, verdict

STUDENT_T_975 = {9: 2.262157, 29: 2.045230, 199: 1.971957}  # by degrees of freedom


def log_normal_windows(count: int, *, seed: int) -> np.ndarray:
    return np.exp(np.random.default_rng(seed).normal(-0.1, 0.2, count))


def test_paired_ratio__is_the_geometric_mean_of_the_ratios():
    ratio = paired_ratio([2.0, 8.0], [4.0, 4.0])
    assert ratio.ratio == pytest.approx(1.0)
    assert ratio.windows == 2
    assert paired_ratio([1.0, 3.0, 9.0], [3.0, 3.0, 3.0]).ratio == pytest.approx(1.0)


def test_paired_ratio__constant_ratio__has_an_interval_of_no_width():
    ratio = paired_ratio([1.0, 10.0, 100.0], [2.0, 20.0, 200.0])
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((0.5, 0.5, 0.5))


@pytest.mark.parametrize("degrees", STUDENT_T_975)
def test_paired_ratio__normal_log_ratios__interval_is_close_to_the_t_interval(degrees: int):
    """Over 40 samples the ends differ from mean +- t s / sqrt(n) by little on average."""
    n = degrees + 1
    ends = []
    for seed in range(40):
        values = log_normal_windows(n, seed=seed)
        ratio = paired_ratio(values, np.ones(n), seed=seed)
        assert ratio.low is not None
        assert ratio.high is not None
        logs = np.log(values)
        mean, half = logs.mean(), STUDENT_T_975[degrees] * logs.std(ddof=1) / math.sqrt(n)
        ends.append((math.log(ratio.high) - mean) / half)
        ends.append((mean - math.log(ratio.low)) / half)
    # 10,000 resamples place an end to about 2 %; a skewed sample of 10 moves both to one side.
    assert np.mean(ends) == pytest.approx(1.0, abs=0.03)
    assert np.std(ends) < (0.12 if degrees < 20 else 0.08)


@pytest.mark.parametrize("windows", [8, 30])
def test_paired_ratio__covers_the_truth_as_often_as_it_says(windows: int):
    covered = 0
    for seed in range(500):
        values = log_normal_windows(windows, seed=1000 + seed)
        ratio = paired_ratio(values, np.ones(windows), seed=seed, resamples=1000)
        assert ratio.low is not None
        assert ratio.high is not None
        covered += ratio.low <= math.exp(-0.1) <= ratio.high
    assert 0.93 <= covered / 500 <= 0.97


def test_paired_ratio__same_seed_same_bits__other_seed_others():
    values, ones = log_normal_windows(20, seed=0), np.ones(20)
    assert paired_ratio(values, ones, seed=3) == paired_ratio(values, ones, seed=3)
    assert paired_ratio(values, ones, seed=3) != paired_ratio(values, ones, seed=4)


def test_paired_ratio__drawing_in_chunks__changes_nothing(monkeypatch: pytest.MonkeyPatch):
    values, ones = log_normal_windows(20, seed=0), np.ones(20)
    whole = paired_ratio(values, ones)
    monkeypatch.setattr("berthline.evaluate.statistics.paired._DRAWS_PER_CHUNK", 2000)
    assert paired_ratio(values, ones) == whole


def test_paired_ratio__one_window__has_no_interval():
    assert paired_ratio([3.0], [4.0]) == Ratio(ratio=0.75, low=None, high=None, windows=1)


def test_paired_ratio__zero_on_both_sides__is_equal():
    assert paired_ratio([0.0, 2.0], [0.0, 2.0]).ratio == 1.0


@pytest.mark.parametrize("bad", [0.0, math.nan, math.inf])
def test_paired_ratio__zero_on_one_side__has_no_ratio(bad: float):
    for ratio in (paired_ratio([bad, 2.0], [1.0, 2.0]), paired_ratio([1.0, 2.0], [bad, 2.0])):
        assert ratio == Ratio(ratio=None, low=None, high=None, windows=2)
        assert verdict(ratio).startswith("no ratio")


@pytest.mark.parametrize(("values", "baseline"), [([1.0], [1.0, 2.0]), ([], [])])
def test_paired_ratio__not_paired__is_refused(values: list[float], baseline: list[float]):
    with pytest.raises(ConfigError, match="values against"):
        paired_ratio(values, baseline)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "windows", "words"),
    [
        (0.88, 0.84, 0.93, 30, "better by 12 % [7, 16]"),
        (1.125, 1.016, 1.3, 30, "worse by 12 % [1.6, 30]"),
        (0.9, 0.8, 0.99, 3, "better by 10 % [1, 20] (only 3 windows)"),
        (1.02, 0.97, 1.05, 30, "not distinguishable [-3, +5] %"),
        # per cent say nothing here: "better by 100 % [100, 100]", "[-99, +31563] %"
        (1 / 90, 1 / 213, 1 / 41, 30, "better, 90 x lower [41, 213]"),
        (6.0, 1.25, 28.0, 30, "worse, 6 x higher [1.2, 28]"),
        (2.0, 1.1, 12.0, 30, "worse, 2 x higher [1.1, 12]"),
        (12.47, 0.54, 316.63, 30, "not distinguishable [46 % lower to 317 x higher]"),
        (0.14, None, None, 1, "1 window: no interval (7.1 x lower)"),
        (1.0, 1.0, 1.0, 30, "equal in every window"),
        (0.75, None, None, 1, "1 window: no interval (25 % lower)"),
        (1.25, None, None, 1, "1 window: no interval (25 % higher)"),
        (1.0, None, None, 1, "1 window: no interval (equal)"),
    ],
)
def test_verdict__in_words(
    ratio: float, low: float | None, high: float | None, windows: int, words: str
):
    assert verdict(Ratio(ratio=ratio, low=low, high=high, windows=windows)) == words


def test_verdict__higher_is_better__turns_the_word_round():
    lower = Ratio(ratio=0.88, low=0.84, high=0.93, windows=30)
    higher = Ratio(ratio=1.2, low=1.1, high=1.3, windows=30)
    assert verdict(lower, higher_is_better=True) == "worse by 12 % [7, 16]"
    assert verdict(higher, higher_is_better=True) == "better by 20 % [10, 30]"
