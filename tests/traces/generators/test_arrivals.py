"""Arrival processes: mean rates, shapes, and order."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.traces.generators import arrivals
from berthline.traces.generators.arrivals import Cycle
from berthline.traces.generators.draws import Draws

DRAWS = Draws(3, range(4), jobs=50_000)


def gaps_of(times):
    assert (np.diff(times, axis=1) >= 0).all()
    return np.diff(times, axis=1)


def test_poisson_gaps_are_exponential():
    gaps = gaps_of(arrivals.poisson(DRAWS, 10.0))
    assert gaps.mean() == pytest.approx(10, rel=0.02)
    assert gaps.std() == pytest.approx(10, rel=0.03)


def test_bursts_gather_about_centres():
    times = arrivals.centres(DRAWS, 2.0, count=6, share=0.8, width=0.01)
    gaps_of(times)
    window = 2.0 * DRAWS.jobs
    assert times.min() >= 0
    assert times.max() <= window
    for row in times:
        counts = np.histogram(row, bins=100, range=(0, window))[0]
        # 6 bursts of two deviations each way cover a quarter of the window at most.
        assert np.sort(counts)[-25:].sum() > 0.7 * len(row)
        assert np.median(counts) < 0.006 * len(row)


def test_centres_without_bursts_are_even_and_with_nothing_else_are_bursts_alone():
    times = arrivals.centres(DRAWS, 1.0, share=0.0)
    counts = np.histogram(times[0], bins=10, range=(0, DRAWS.jobs))[0]
    assert counts / DRAWS.jobs == pytest.approx(0.1, abs=0.01)
    alone = arrivals.centres(DRAWS, 1.0, count=1, share=1.0, width=0.0)
    assert all(len(np.unique(row)) == 1 for row in alone)


def test_bunches_come_at_ticks():
    times = arrivals.per_second(DRAWS, 2 / 51, most=50)
    gaps_of(times)
    ticks, counts = np.unique(times[0], return_counts=True)
    np.testing.assert_allclose(np.diff(ticks), 1.0)
    assert counts.max() == 50
    assert counts.mean() == pytest.approx(25.5, rel=0.03)
    # The tick is stretched to the gap asked for.
    assert gaps_of(arrivals.per_second(DRAWS, 7.0, most=3)).mean() == pytest.approx(7, rel=0.02)


def test_a_cycle_keeps_the_rate_over_whole_periods_and_has_its_shape():
    cycle = arrivals.on_off(high=3.0, low=0.3, seconds=300.0)
    even = np.arange(0.0, 6000.0, 0.1)[None, :]
    bent = cycle.bend(even)
    gaps_of(bent)
    assert bent[0, -1] == pytest.approx(6000, abs=2)
    high = (bent % 600) < 300
    assert high.mean() == pytest.approx(3.0 / 3.3, abs=0.001)
    np.testing.assert_allclose(cycle.bend(np.array([[600.0, 1200.0]])), [[600.0, 1200.0]])


@pytest.mark.parametrize(("shift", "highest"), [(0.0, 0.25), (0.25, 0.0)])
def test_diurnal_rises_like_a_sine(shift, highest):
    period, depth = 3600.0, 0.5
    cycle = arrivals.diurnal(period=period, depth=depth, shift=shift)
    bent = cycle.bend(np.arange(0.0, 100 * period, 0.7)[None, :])
    counts = np.histogram(bent % period, bins=20, range=(0, period))[0]
    middles = (np.arange(20) + 0.5) / 20
    expected = 1 + depth * np.sin(2 * np.pi * (middles + shift))
    np.testing.assert_allclose(counts / counts.mean(), expected, atol=0.02)
    assert abs((middles[np.argmax(counts)] - highest + 0.5) % 1 - 0.5) <= 0.05


def test_a_slot_without_jobs_is_skipped():
    bent = Cycle.of(100.0, [0.0, 1.0]).bend(np.linspace(1, 99, 50)[None, :])
    assert bent.min() >= 50


def test_gamma_quantiles():
    quantile = arrivals.gamma_quantile(DRAWS.normal("x"), 4.2, 0.94)
    assert quantile.mean() == pytest.approx(4.2 * 0.94, rel=0.01)
    assert quantile.std() == pytest.approx(np.sqrt(4.2) * 0.94, rel=0.02)
