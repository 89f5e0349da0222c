"""More processors in use than the header states."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import berthline as bl
from berthline.evaluate.trace_checks.trace_warnings import find_warnings
from berthline.model.history import History
from berthline.traces.inspect.impossible_records import impossible_use
from berthline.traces.inspect.infer_cluster import infer_cluster


def log(processors: int | None) -> bl.Workload:
    """In use: 4 from 0, 12 from 50 to 100, 8 until 150; then 10 from 200 to 210."""
    return bl.Workload.from_columns(
        submit=[0, 10, 160],
        run=[100, 100, 10],
        gpus=[4, 8, 10],
        history=History(np.array([0.0, 50.0, 200.0])),
        provenance={} if processors is None else {"max_procs": processors},
    )


def test_time_jobs_and_peak():
    found = impossible_use(log(10))
    assert found is not None
    assert (found.peak, found.processors, found.seconds) == (12, 10, 50)
    assert (found.jobs, found.first) == (2, 1)
    assert found.in_words().startswith("12 of 10 processors in use at once; for 0.0 hours")


@pytest.mark.parametrize("processors", [12, None])
def test_nothing_is_said_where_nothing_is_wrong(processors):
    assert impossible_use(log(processors)) is None


def test_nothing_is_said_without_recorded_starts():
    assert impossible_use(dataclasses.replace(log(10), history=None)) is None


def test_it_has_a_line_of_its_own():
    findings = infer_cluster(log(10)).findings
    assert [finding.found for finding in findings if finding.what == "records"] == [
        "impossible ones"
    ]
    assert any("impossible records" in warning.what for warning in find_warnings(log(10)))
    assert bl.trace_card(log(10)).impossible_use is not None
