"""Simulated against recorded waits."""

import numpy as np
import pytest

from berthline.evaluate.whatif.fidelity import (
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
    waits = np.array([0.0, 5.0, 70.0])
    found = fidelity(waits, waits)
    assert (found.mean_ratio, found.within_2x, found.error_factor) == (1.0, 1.0, 1.0)
    assert grade(found) == "good"


def test_nobody_waited():
    found = fidelity(np.zeros(3), np.zeros(3))
    assert found.mean_ratio is None
    assert found.rank_correlation is None
    assert grade(found) == "good"


@pytest.mark.parametrize(("factor", "word"), [(1.2, "good"), (1.9, "fair"), (3.0, "poor")])
def test_grade__by_the_mean_and_the_share_that_is_close(factor, word):
    waits = np.linspace(1e4, 2e4, 50)
    assert grade(fidelity(factor * waits, waits)) == word


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
