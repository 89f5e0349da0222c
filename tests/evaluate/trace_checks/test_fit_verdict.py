"""The verdict on a fitted generator: the worst of what schedulers react to, waits included."""

from __future__ import annotations

import dataclasses

import pytest

import berthline as bl
from berthline.evaluate.trace_checks.closeness import Closeness, report
from berthline.evaluate.trace_checks.fit_verdict import NO_WAITS, fit_verdict
from berthline.evaluate.trace_checks.wait_check import WaitCheck


def same(**changes: object) -> Closeness:
    """Return the closeness of a workload to itself, with changes."""
    jobs = bl.generate("poisson", cluster="uniform:4x8", jobs=300, load=0.8, seed=1)
    waits = WaitCheck(32, 0.8, "exact", 3600.0, [3600.0])
    return dataclasses.replace(report(jobs, jobs, waits), **changes)


def test_equal_workloads_are_good():
    assert str(fit_verdict(same())) == "good"


@pytest.mark.parametrize(
    ("made", "grade"), [(4400.0, "good"), (2000.0, "fair"), (7000.0, "fair"), (800.0, "poor")]
)
def test_waits_decide_even_if_all_distributions_are_right(made, grade):
    found = fit_verdict(same(waits=WaitCheck(32, 0.8, "exact", 3600.0, [made])))
    assert found.grade == grade
    if grade == "poor":
        assert str(found) == "poor: the mean wait is 0.22 times that of the trace"


def test_no_waits_at_all_are_infinitely_far_off():
    assert fit_verdict(same(waits=WaitCheck(32, 0.8, "exact", 3600.0, [0.0]))).grade == "poor"


def test_the_worst_decides_and_is_named():
    found = fit_verdict(same(run_distance=0.3, gap_distance=0.1, demand=(10.0, 15.0)))
    assert found.grade == "poor"
    assert found.because == [
        "the demand is 1.50 times that of the trace",
        "run time: distance 0.30",
    ]


@pytest.mark.parametrize("waits", [None, WaitCheck(32, 0.1, "exact", 0.0, [0.0])])
def test_where_no_job_waits_the_verdict_says_so(waits):
    found = fit_verdict(same(waits=waits))
    assert (found.grade, found.not_judged) == ("good", NO_WAITS)
    assert str(found).endswith("so waits cannot be judged")
