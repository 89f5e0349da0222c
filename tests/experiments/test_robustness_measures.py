"""Measures against the clean twin, checked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from berthline.experiments.perturbations import begins_at, perturb
from berthline.experiments.robustness_measures import (
    COLUMNS,
    explodes,
    measures,
    queue_curve,
    recovery_seconds,
    twin_band,
    variation,
)
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload
from berthline.sim.simulate import simulate
from berthline.traces.generators.synthetic import generate

ONE = Cluster.parse("uniform:1x1:V100")


def run_of(submit, run, cluster=ONE):
    jobs = Workload.from_columns(submit=submit, run=run, gpus=np.ones(len(submit)))
    return simulate(jobs, cluster, "fcfs")


def test_a_queue_curve_is_the_mean_number_of_waiting_jobs():
    # One GPU, three jobs of 10 s: job 1 waits from 2 to 10, job 2 from 4 to 20.
    #
    #   GPU      0000000000 1111111111 2222222222
    #   waiting  0 0 1 1 2 2 2 2 2 2 | 1 x 10 | 0
    log = run_of([0, 2, 4], [10, 10, 10]).log
    assert queue_curve(log, 0, 30, parts=3) == pytest.approx([(8 + 6) / 10, 1, 0])
    assert queue_curve(log, 2, 4, parts=2) == pytest.approx([1, 1])
    assert queue_curve(log, 0, 60, parts=2) == pytest.approx([(14 + 10) / 30, 0])
    assert queue_curve(log, 0, 0, parts=2) == [0, 0]


def test_its_area_is_that_of_the_waits():
    cluster = Cluster.parse("uniform:4x4:V100")
    jobs = generate("bursty", cluster=cluster, jobs=300, load=1.1, seed=2)
    result = simulate(jobs, cluster, "sjf+easy")
    end = float(result.log.time[-1])
    area = np.mean(queue_curve(result.log, 0.0, end)) * end
    assert area == pytest.approx(result.metrics().wait.mean * 300)


def test_a_preempted_job_waits():
    jobs = Workload.from_columns(submit=[0, 90], run=[50, 1], gpus=[1, 1])
    cluster = Cluster.parse("uniform:2x1:V100")
    import dataclasses

    from berthline.model.limits import Outage

    down = dataclasses.replace(cluster, outages=(Outage(down=10, up=30, nodes=(0, 1)),))
    # It loses its 10 s, waits for a node until 30 and for its restart is a part of its run.
    curve = queue_curve(simulate(jobs, down, "fcfs").log, 0, 90, parts=9)
    assert curve == pytest.approx([0, 1, 1, 0, 0, 0, 0, 0, 0])


def test_measures_of_a_pair():
    clean = run_of([0, 10, 20], [10, 10, 10])
    worse = run_of([0, 0, 0, 20], [10, 10, 10, 10])
    found = measures(clean, worse)
    assert set(found) == set(COLUMNS)
    assert found["queue_max_ratio"] == math.inf  # 2 against 0
    assert found["queue_exploded"] == 0  # not more than 3 x 10
    assert found["queue_curve_seconds"] == 20
    assert found["twin_queue_curve"] == pytest.approx([0] * 100)
    assert found["queue_curve"] == pytest.approx([2] * 50 + [1] * 50)
    assert measures(clean, clean)["queue_max_ratio"] == 1


@pytest.mark.parametrize(
    ("longest", "usual", "exploded"),
    [(30, 0, False), (31, 0, True), (36, 12, False), (37, 12, True), (5, 1, False)],
)
def test_a_queue_explodes_beyond_three_times_the_longest_of_the_twin(longest, usual, exploded):
    assert explodes(longest, usual) == exploded


def test_the_band_is_a_prediction_interval():
    # Seeds 1, 2, 3: mean 2, deviation 1, t(0.975, 2) = 4.3027, times sqrt(4/3).
    band = twin_band([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    half = 4.302653 * math.sqrt(4 / 3)
    np.testing.assert_allclose(band.mean, [2, 5])
    np.testing.assert_allclose(band.low, [0, 5])
    np.testing.assert_allclose(band.high, [2 + half, 5], rtol=1e-6)
    assert twin_band([[1.0, 2.0]]) is None


def test_recovery_is_the_time_until_the_queue_stays_in_the_band():
    band = twin_band([[0.0] * 20, [0.0] * 20])

    def recovery(curve, begins=0.25):
        return recovery_seconds(curve, band, begins=begins, seconds=2000.0)

    calm = [0.0] * 20
    assert recovery(calm) == 0
    # Above in parts 5 to 8: back at 9 of 20, 4 parts of 100 s after part 5.
    once = calm[:5] + [3.0] * 4 + calm[9:]
    assert recovery(once) == pytest.approx(400)
    # In the band for 4 parts only (9 to 12), above again in 13: back at 14.
    again = [*once[:13], 1.0, *calm[14:]]
    assert recovery(again) == pytest.approx(900)
    # What was above before the perturbation does not count.
    assert recovery([9.0] * 5 + calm[5:]) == 0
    # Never back.
    assert recovery(calm[:5] + [1.0] * 15) == math.inf
    # Back for as many parts as are left.
    assert recovery(calm[:5] + [1.0] * 13 + calm[18:]) == pytest.approx(1300)


def test_a_dip_is_recovered_from_later_when_it_is_longer():
    cluster = Cluster.parse("uniform:10x2:V100")
    pairs = []
    for seed in range(6):
        jobs = generate("poisson", cluster=cluster, jobs=400, load=0.8, seed=seed)
        pairs.append((jobs, seed))
    times = {}
    for text in ("capacity-dip:50%/1h", "capacity-dip:50%/6h"):
        rows = []
        for jobs, seed in pairs:
            clean = simulate(jobs, cluster, "fcfs+easy")
            rows.append(measures(clean, simulate(*perturb(text, jobs, cluster, seed), "fcfs+easy")))
        band = twin_band([row["twin_queue_curve"] for row in rows])
        times[text] = np.median(
            [
                recovery_seconds(
                    row["queue_curve"],
                    band,
                    begins=begins_at(text),
                    seconds=row["queue_curve_seconds"],
                )
                for row in rows
            ]
        )
    assert times["capacity-dip:50%/6h"] > 6 * 3600
    assert times["capacity-dip:50%/6h"] > times["capacity-dip:50%/1h"]


def test_variation():
    assert variation([1.0, 3.0]) == pytest.approx(math.sqrt(2) / 2)
    assert variation([1.0]) is None
    assert variation([0.0, 0.0]) is None
