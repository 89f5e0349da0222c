"""Intervals are stretched by what earlier forecasts of the run missed."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.evaluate.forecast.calibrate import calibrate
from berthline.evaluate.forecast.correction import (
    FEWEST_INSTANTS,
    LEAST_SECONDS,
    Forecasts,
    correction_of,
)
from berthline.evaluate.forecast.forecast import forecast
from berthline.sim.simulate import Result, simulate
from berthline.traces.generators.synthetic import generate


def forecasts(starts: list[float], *, seconds: float = 40.0, gap: float = 10_000.0) -> Forecasts:
    """Return one forecast an instant, of a median 1,000 s on, with `seconds` either side."""
    number = np.arange(len(starts), dtype=float)
    time = number * gap
    median = time + 1000
    start = time + np.array(starts)
    return Forecasts(number, time, start, median - seconds, median, median + seconds)


def test_factors_by_hand() -> None:
    """Starts 0, 100, ... 1,900 s after the instant, medians at 1,000 s, parts of 40 + 60 s."""
    past = forecasts([100.0 * k for k in range(20)])
    found = correction_of(past, now=1e9, level=0.8)
    assert found is not None
    assert LEAST_SECONDS == 60.0
    assert found.instants == 20
    # 18 of 20 are at most 700 s late, and 18 of 20 at most 800 s early.
    assert found.later == pytest.approx(7.0)
    assert found.earlier == pytest.approx(8.0)
    assert found.high(np.array([1000.0]), np.array([1040.0])) == pytest.approx([1700.0])
    assert found.low(0.0, np.array([960.0]), np.array([1000.0])) == pytest.approx([200.0])
    assert found.low(500.0, np.array([960.0]), np.array([1000.0])) == pytest.approx([500.0])
    exact = correction_of(forecasts([1000.0] * 20), now=1e9, level=0.8)
    assert exact is not None
    assert exact.earlier == exact.later == 1.0
    unknown = np.array([np.inf])
    assert found.high(unknown, unknown) == unknown
    assert found.low(0.0, np.array([960.0]), unknown) == 960.0


def test_nothing_is_read_that_is_not_known() -> None:
    starts = [100.0 * (k % 20) for k in range(40)]
    now = 20.5 * 10_000.0
    before = correction_of(forecasts(starts), now=now, level=0.8)
    changed = [*starts[:21], *([9e9] * 19)]
    assert correction_of(forecasts(changed), now=now, level=0.8) == before
    # A job that waits longer by now than its interval says so, but not yet by how much.
    late = [1e9] * 20
    found = correction_of(forecasts(late), now=25 * 10_000.0, level=0.8)
    assert found is not None
    assert 500 < found.later < 2500
    assert correction_of(forecasts(starts[: FEWEST_INSTANTS - 1]), now=1e9, level=0.8) is None


@pytest.fixture(scope="module")
def busy() -> Result:
    workload = generate(
        "synthetic", cluster="uniform:8x8", jobs=1500, load=0.95, seed=3, estimate_error=0.5
    )
    return simulate(workload, "uniform:8x8", "fcfs+easy")


def test_short_intervals_are_mended(busy: Result) -> None:
    """Two draws say too little; the forecasts of the past say by how much."""
    found = calibrate(busy, points=60, draws=2)
    assert found.corrected is not None
    assert found.uncorrected is not None
    assert found.corrected.forecasts == found.uncorrected.forecasts < found.all.forecasts
    assert found.uncorrected.inside < 0.6
    assert 0.65 < found.corrected.inside < 0.95
    assert found.correction is not None
    assert found.correction.later > 1

    snapshot = busy.snapshot(busy.workload.submit[1000])
    plain = forecast(snapshot, history=busy, draws=2)
    wide = forecast(snapshot, history=busy, draws=2, correction=found.correction)
    np.testing.assert_array_equal(wide.starts, plain.starts)
    np.testing.assert_array_equal(
        wide.high, plain.median + found.correction.later * (plain.high - plain.median + 60)
    )
    assert (wide.low >= snapshot.now).all()
    assert [one.high for one in wide] == wide.high.tolist()


def test_until_an_instant__is_the_calibration_of_the_run_until_then(busy: Result) -> None:
    at = float(busy.workload.submit[800])
    stopped = simulate(busy.workload, "uniform:8x8", "fcfs+easy", horizon=at)
    found = calibrate(busy, points=25, draws=10, until=at)
    assert found.correction is not None
    assert found.correction == calibrate(stopped, points=25, draws=10, until=at).correction
