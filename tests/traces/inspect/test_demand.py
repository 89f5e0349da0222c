"""Demand over time, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from berthline.model.workload import Workload
from berthline.traces.inspect.demand import Demand


def small(**columns):
    """Four jobs over 100 s.

    GPUs   0    20    40    60    80   100   s
      8    .    [C..............]            C: 8 GPUs
      2    [A.........]          .     D     A: 2, D: 1 at 100
      4    .    [B....]                      B: 4
    """
    given = {"submit": [0, 20, 20, 100], "run": [40, 20, 50, 10], "gpus": [2, 4, 8, 1]} | columns
    return Workload.from_columns(**given)


class TestDemand:
    def test_levels_by_hand(self):
        demand = Demand.of(small())
        # 2 for 20 s, 14 for 20 s, 8 for 30 s, 0 for 30 s; D begins where the trace ends.
        assert demand.mean == pytest.approx((2 * 20 + 14 * 20 + 8 * 30) / 100)
        assert demand.max == 14
        assert demand.quantile(0.5) == 2
        assert demand.quantile(0.8) == 8
        assert demand.quantile(0.95) == 14
        assert demand.time_above(8) == pytest.approx(0.2)
        assert demand.time_above(14) == 0
        means = demand.means(np.array([0.0, 40.0, 100.0]))
        assert means == pytest.approx([(2 * 20 + 14 * 20) / 40, 8 * 30 / 60])

    def test_of_some_jobs_over_the_same_time(self):
        demand = Demand.of(small(), np.array([False, True, False, False]))
        assert demand.mean == pytest.approx(4 * 20 / 100)

    def test_all_at_once(self):
        demand = Demand.of(Workload.from_columns(submit=[0, 0], run=[5, 6], gpus=[2, 3]))
        assert (demand.mean, demand.max, demand.quantile(0.95)) == (5, 5, 5)
        assert demand.time_above(4) == 1

    def test_mean_is_work_over_span_when_jobs_end_in_time(self):
        generator = np.random.default_rng(0)
        submit = np.sort(generator.uniform(0, 1000, 500))
        run = generator.uniform(1, 50, 500)
        gpus = generator.integers(1, 9, 500)
        submit[-1], run = 1000.0, np.minimum(run, 1000 - submit)
        run[-1] = 1e-9
        workload = Workload.from_columns(submit=submit, run=np.maximum(run, 1e-9), gpus=gpus)
        span = workload.submit[-1]
        assert Demand.of(workload).mean == pytest.approx(workload.work / span, rel=1e-6)
