"""How often starts are inside the intervals that were forecast."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluate.explain.explained_runs import run_of

from berthline.errors import ConfigError
from berthline.evaluate.forecast.calibrate import Calibration, calibrate, instants, verdict
from berthline.evaluate.forecast.forecast import forecast
from berthline.evaluate.metrics.job_table import job_table
from berthline.random_streams import stream_key
from berthline.sim.simulate import Result, simulate
from berthline.traces.generators.synthetic import generate


@pytest.fixture(scope="module")
def busy() -> Result:
    workload = generate(
        "synthetic", cluster="uniform:8x8", jobs=1500, load=0.95, seed=3, estimate_error=0.5
    )
    return simulate(workload, "uniform:8x8", "fcfs+easy")


@pytest.fixture(scope="module")
def found(busy: Result) -> Calibration:
    return calibrate(busy, points=40, draws=40)


def test_coverage_is_near_the_level(found: Calibration) -> None:
    assert found.all.forecasts > 100
    assert abs(found.all.inside - 0.8) < 0.15
    assert found.all.inside + found.all.earlier + found.all.later == pytest.approx(1.0)
    assert 0 < found.error < 0.1
    for classes in (found.by_place, found.by_wait):
        assert sum(each.forecasts for each in classes) == found.all.forecasts
    assert found.worst in found.by_place


def test_narrow_intervals_hold_less(busy: Result, found: Calibration) -> None:
    half = calibrate(busy, points=40, draws=40, level=0.4)
    assert half.all.inside < found.all.inside - 0.2
    assert half.all.width < found.all.width
    # Intervals of draws that are almost all the same are told to be too short.
    assert "too short" not in verdict(found)
    few = calibrate(busy, points=40, draws=2)
    assert "too short" in verdict(few)


def test_counted_by_hand(busy: Result) -> None:
    """The share inside is that of the forecasts at the same instants."""
    start = job_table(busy.log, busy.workload).start
    found = calibrate(busy, points=6, draws=10, seed=2)
    last = busy.workload.submit[-1]
    inside = total = 0
    for number, at in enumerate(instants(busy, start, 6, 2)):
        seed = stream_key(2, f"calibrate/{number}") % 2**31
        each = forecast(busy.snapshot(at), history=busy, draws=10, seed=seed)
        for job in each:
            if job.low < last:
                total += 1
                inside += job.low <= min(start[job.job], last) <= min(job.high, last)
    assert found.all.forecasts == total
    assert found.all.inside == pytest.approx(inside / total)


def test_instants_are_those_at_which_jobs_wait(busy: Result) -> None:
    start, submit = job_table(busy.log, busy.workload).start, busy.workload.submit
    found = instants(busy, start, 100, 0)
    assert len(found) == 100
    assert found == sorted(found)
    assert found[0] >= submit[0] + 0.2 * (submit[-1] - submit[0])
    assert found[-1] <= submit[-1]
    for at in found:
        assert ((submit <= at) & (start > at)).any()
    assert instants(busy, start, 100, 1) != found


def test_no_job_waited() -> None:
    with pytest.raises(ConfigError, match="no job waited"):
        calibrate(run_of([1, 1, 1], "fcfs"))


def test_unfinished_runs(busy: Result) -> None:
    """Jobs that have not started when a run was cut are after every end."""
    cut = float(np.quantile(busy.workload.submit, 0.7))
    result = simulate(busy.workload, busy.cluster, "fcfs+easy", horizon=cut)
    found = calibrate(result, points=30, draws=10)
    assert found.all.forecasts > 0
    assert abs(found.all.inside - 0.8) < 0.25
