"""Which rows a snapshot holds."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.model.schedule import SUBMIT
from berthline.sim.snapshots.take import _unique_rows

LATE = 2.0**40
"""At this time, a run time of a microsecond does not change the clock."""


@pytest.mark.parametrize("simulator", ["native", "reference"])
def test_snapshot__is_before_the_first_decision_of_its_instant(simulator: str) -> None:
    """The second job starts and ends at LATE: its end follows the decision that starts it."""
    jobs = bl.Workload.from_columns(submit=[0, LATE, LATE + 1], run=[5, 1e-6, 3], gpus=[1, 1, 1])
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=1)
    result = bl.simulate(jobs, cluster, "fcfs")
    assert result.log.time[result.log.job == 1].tolist() == [LATE] * 3

    snapshot = result.snapshot(LATE)
    assert snapshot.log.kind.tolist() == [SUBMIT]
    assert snapshot.decides

    decision = bl.decide(snapshot, simulator=simulator)
    assert [(action.kind, action.job) for action in decision.actions] == [("start", 0)]
    later = bl.Workload.from_columns(submit=[LATE + 1], run=[3], gpus=[1], rebase=False)
    resumed = bl.resume(snapshot, arrivals=later, simulator=simulator)
    assert resumed.log.kind.tolist() == result.log.kind.tolist()[3:]


def test_rows_are_counted_as_numpy_counts_them():
    rng = np.random.default_rng(0)
    for large in range(60):
        table = rng.integers(-3, 5, (1 + large, 6))
        if large % 3 == 0:
            table[:, 3] = rng.choice([2**60, 2**38, -1], len(table))  # too large for one number
        if large % 2 == 0:
            table[:, 1:3] = rng.choice([2**31 - 1, -(2**31)], (len(table), 2))
        unique, kind = _unique_rows(table)
        expected, inverse = np.unique(table, axis=0, return_inverse=True)
        np.testing.assert_array_equal(unique, expected)
        np.testing.assert_array_equal(kind, inverse.reshape(-1))
