"""Simulated against recorded waits."""

import numpy as np
import pytest

from berthline.evaluate.whatif.fidelity import (
    CANNOT,
    daily_error,
    fidelity,
    grade,
    group_error_factor,
    rank_correlation,
)


def test_fidelity__by_hand():
    recorded = np.array([0.0, 60.0, 540.0, 3540.0])
    simulated = np.array([0.0, 180.0, 1140.0, 840.0])
    found = fidelity(simulated, recorded)
    # With a minute added: 60/60, 240/120, 1200/600, 900/3600; three are within a factor of 2.
    assert found.jobs == 4
    assert found.recorded_mean == 1035.0
    assert found.mean_ratio == pytest.approx(540 / 1035)
    assert found.median_ratio == pytest.approx((510 + 60) / (300 + 60))
    assert found.within_2x == 0.75
    assert found.error_factor == pytest.approx((1 * 2 * 2 * 4) ** 0.25)
    assert found.rank_correlation == pytest.approx(0.8)


def test_a_perfect_model():
    waits = np.linspace(0, 900, 40)
    found = fidelity(waits, waits, np.arange(40) % 2)
    assert (found.mean_ratio, found.within_2x, found.error_factor) == (1.0, 1.0, 1.0)
    assert found.class_error_factor == 1.0
    assert grade(found) == "good"


@pytest.mark.parametrize("seconds", [0.0, 50.0])
def test_where_nobody_waits_there_is_nothing_to_judge(seconds):
    found = fidelity(np.zeros(300), np.full(300, seconds))
    assert found.waited == 0
    assert grade(found) == CANNOT
    few = np.where(np.arange(300) < 19, 7200.0, 0.0)
    assert grade(fidelity(few, few)) == CANNOT


def test_waits_on_one_side_only_can_be_judged():
    waits, none = np.linspace(0, 7200, 300), np.zeros(300)
    for pair in ((waits, none), (none, waits)):
        found = fidelity(*pair)
        assert found.rank_correlation is None
        assert grade(found) == "poor"


@pytest.mark.parametrize(("factor", "word"), [(1.2, "good"), (1.9, "fair"), (3.0, "poor")])
def test_grade__by_the_mean_and_the_share_that_is_close(factor, word):
    waits = np.linspace(1e4, 2e4, 50)
    assert grade(fidelity(factor * waits, waits)) == word


def test_grade__by_the_order_of_the_waits():
    """Means and most single waits are right, but not which jobs wait longer than others."""
    waits = np.linspace(1e4, 1.9e4, 50)
    assert grade(fidelity(waits, waits)) == "good"
    turned = fidelity(waits[::-1].copy(), waits)
    assert (turned.mean_ratio, turned.within_2x) == (1.0, 1.0)
    assert grade(turned) == "poor"
    partly = np.concatenate([waits[:25], waits[25:][::-1]])
    assert 0.4 < fidelity(partly, waits).rank_correlation < 0.8
    assert grade(fidelity(np.concatenate([waits[:20][::-1], waits[20:]]), waits)) == "good"


def test_grade__by_the_means_of_classes():
    """Few large jobs wait ten times too long: the mean hardly shows it."""
    size = np.repeat([1, 8], [490, 10])
    recorded = np.linspace(1e4, 2e4, 500)
    simulated = np.where(size == 8, 10 * recorded, recorded)
    assert fidelity(simulated, recorded).mean_ratio < 1.25
    assert grade(fidelity(simulated, recorded)) == "good"
    assert grade(fidelity(simulated, recorded, size)) == "poor"
    rare = np.repeat([1, 8], [491, 9])  # too few for a mean
    assert grade(fidelity(simulated, recorded, rare)) == "good"


def test_rank_correlation__equal_values_share_their_rank():
    a, b = np.array([1.0, 1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0, 40.0])
    # Ranks 1.5 1.5 3 4 and 1 2 3 4: covariance 4.5, squares 4.5 and 5.
    assert rank_correlation(a, b) == pytest.approx(4.5 / np.sqrt(4.5 * 5))
    assert rank_correlation(a, -b) == pytest.approx(-4.5 / np.sqrt(4.5 * 5))


def test_group_error_factor__few_large_jobs_count_as_much_as_many_small_ones():
    size = np.array([1] * 98 + [8] * 2)
    recorded = np.where(size == 1, 60.0, 540.0)
    simulated = np.where(size == 1, 60.0, 9540.0)  # 600 and 9600 with the minute
    assert group_error_factor(simulated, recorded, size) == pytest.approx(4)
    assert fidelity(simulated, recorded).error_factor < 1.06


def test_daily_error__days_do_not_cancel():
    simulated, recorded = np.array([10.0, 10.0, 30.0]), np.array([20.0, 20.0, 10.0])
    assert daily_error(simulated, recorded, np.array([-1, -1, 0])) == pytest.approx(40 / 3)
    assert abs((simulated - recorded).mean()) == 0
