"""Holm's procedure by hand, by its definition, and by its error rate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.evaluate.statistics.multiple_comparisons import LEVEL, corrected_verdicts, holm
from berthline.evaluate.statistics.paired import Ratio, paired_ratio


def step_down(p_values: list[float]) -> list[bool]:
    """Holm as published: go up from the smallest while p <= level / (number left), then stop."""
    rejected = [False] * len(p_values)
    for rank, index in enumerate(np.argsort(p_values, kind="stable").tolist()):
        if p_values[index] > LEVEL / (len(p_values) - rank):
            break
        rejected[index] = True
    return rejected


def test_holm__by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == [0.03, 0.06, 0.06]
    assert holm([0.6, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm__rejects_what_the_step_down_rejects(p_values: list[float]) -> None:
    adjusted = [p <= LEVEL for p in holm(p_values)]
    expected = step_down(p_values)
    close = [abs(p * k - LEVEL) < 1e-12 for p in p_values for k in range(1, len(p_values) + 1)]
    assert any(close) or adjusted == expected


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm__never_lowers_a_p_value_and_keeps_their_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(a >= p for a, p in zip(adjusted, p_values, strict=True))
    order = np.argsort(p_values, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_p_value__is_that_of_the_paired_t_test() -> None:
    """Differences 1, 2, 3: mean 2, s = 1, t = 2 sqrt 3 with 2 degrees of freedom: p = 0.0742."""
    ratio = paired_ratio(np.exp([1.0, 2.0, 3.0]), np.ones(3))
    assert ratio.p_value == pytest.approx(0.0741799, abs=1e-6)
    assert paired_ratio([1.0, 2.0], [1.0, 2.0]).p_value == 1.0
    assert paired_ratio([1.0, 2.0], [2.0, 4.0]).p_value == 0.0
    assert paired_ratio([1.0], [2.0]).p_value is None


def test_p_value__interval_and_test__agree_on_normal_log_ratios() -> None:
    """Both say the same in nearly all of 300 samples, some of which are near the line."""
    rng = np.random.default_rng(0)
    agree = 0
    for seed in range(300):
        ratio = paired_ratio(np.exp(rng.normal(-0.08, 0.2, 20)), np.ones(20), seed=seed)
        agree += (ratio.high < 1 or ratio.low > 1) == (ratio.p_value < 0.05)
    assert agree >= 285


def test_corrected_verdicts__say_what_does_not_survive() -> None:
    strong = Ratio(ratio=0.8, low=0.75, high=0.86, windows=30, p_value=1e-6)
    weak = Ratio(ratio=0.9, low=0.82, high=0.99, windows=30, p_value=0.03)
    none = Ratio(ratio=1.01, low=0.9, high=1.1, windows=30, p_value=0.8)
    assert corrected_verdicts([None, strong, weak, none]) == [
        None,
        "better by 20 % [14, 25]",
        "better by 10 % [1, 18], but not after correction for 3 comparisons",
        "not distinguishable [-10, +10] %",
    ]
    assert corrected_verdicts([weak]) == ["better by 10 % [1, 18]"]
    assert corrected_verdicts([weak], higher_is_better=True) == ["worse by 10 % [1, 18]"]
    assert corrected_verdicts([paired_ratio([1.0], [2.0])]) == [
        "1 window: no interval (50 % lower)"
    ]


def test_corrected_verdicts__equal_schedulers__rarely_say_anything() -> None:
    """Of 200 families of ten that differ by chance alone, about 5 % have a verdict, not 40 %."""
    rng = np.random.default_rng(7)
    wrong = plain = 0
    for family in range(200):
        ratios = [
            paired_ratio(np.exp(rng.normal(0, 0.2, 20)), np.ones(20), seed=family, resamples=300)
            for _ in range(10)
        ]
        plain += any(ratio.high < 1 or ratio.low > 1 for ratio in ratios)
        words = corrected_verdicts(ratios)
        wrong += any(w.startswith(("better", "worse")) and "not after" not in w for w in words)
    assert plain > 60
    assert wrong <= 20
