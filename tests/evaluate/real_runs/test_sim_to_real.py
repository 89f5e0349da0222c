"""A real run against its simulation, with runs whose numbers are worked out by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from berthline.evaluate.real_runs.real_metrics import energy_of, entropy, real_metrics
from berthline.evaluate.real_runs.sim_to_real import RealRun, same_order, sim_to_real
from berthline.model.cluster import Cluster
from berthline.model.schedule import FINISH, START, SUBMIT, Schedule
from berthline.model.workload import Workload

CLUSTER = Cluster.parse("uniform:1x1:V100")


def log_of(rows: list[tuple[float, int, int]]) -> Schedule:
    """Return a log on one GPU."""
    kinds = [kind for _, kind, _ in rows]
    count = kinds.count(START)
    place = np.cumsum([kind == START for kind in kinds]) - 1
    return Schedule(
        time=np.array([time for time, _, _ in rows]),
        kind=np.array(kinds, np.uint8),
        job=np.array([job for _, _, job in rows], np.int32),
        detail=np.where(np.array(kinds) == START, place, -1).astype(np.int32),
        alloc_node=np.zeros(count, np.int32),
        alloc_gpus=np.ones(count, np.int32),
        alloc_slot=np.full(count, -1, np.int32),
        horizon=np.inf,
        decisions=0,
    )


# One GPU, three jobs at once: 10, 2 and 4 s. Each start takes 0.5 s, each stop 0.25 s.
JOBS = Workload.from_columns(
    submit=[0, 0, 0],
    run=[10, 2, 4],
    estimate=[8, 2, 4],
    gpus=[1, 1, 1],
    deadline=[20, 5, np.inf],
    reference_type="recorded",
)
REAL = RealRun(
    workload=JOBS,
    log=log_of(
        [
            *((0.0, SUBMIT, job) for job in range(3)),
            (0.0, START, 0),
            (10.75, FINISH, 0),
            (10.75, START, 1),
            (13.5, FINISH, 1),
            (13.5, START, 2),
            (18.25, FINISH, 2),
        ]
    ),
    cluster=CLUSTER,
    scheduler="fcfs+strict",
    start_delay=0.5,
    stop_delay=0.25,
)


def test_a_run_that_the_simulation_meets_exactly():
    found = sim_to_real(REAL)
    assert found.jct_real == pytest.approx((10.75 + 13.5 + 18.25) / 3)
    assert found.jct_simulated == found.jct_real
    assert found.error == 0
    assert (found.pairs, found.pairs_in_order) == (3, 3)
    assert found.jct_from_estimates == pytest.approx(found.jct_real - 2), "the first is 2 s shorter"


def test_delays_count():
    found = sim_to_real(REAL._replace(start_delay=0.0, stop_delay=0.0))
    assert found.jct_simulated == pytest.approx((10 + 12 + 16) / 3)
    assert found.error < 0


def test_another_scheduler_starts_in_another_order():
    found = sim_to_real(REAL._replace(scheduler="sjf+strict"))
    assert found.pairs_in_order == 1, "of the second and the third"


def test_decisions_have_a_tick_and_a_phase():
    run = REAL._replace(tick=4.0, phase=1.0, start_delay=0.0, stop_delay=0.0)
    log = run.simulated()
    # Decisions at 1, 5, 9, ...: starts at 1, 13 (after 11) and 17 (after 15).
    assert log.time[log.kind == START].tolist() == [1, 13, 17]
    assert log.time[log.kind == SUBMIT].tolist() == [0, 0, 0]
    assert log.time[log.kind == FINISH].tolist() == [11, 15, 21]


def test_metrics_by_hand():
    samples = [
        (0.0, [{"utilization": 0.5, "power_w": 100.0}]),
        (10.0, [{"utilization": 1.0, "power_w": 300.0}]),
    ]
    found = real_metrics(
        REAL, samples=samples, decision_seconds=[1.0, 2.0, 3.0], choices={"sjf": 1, "edf": 1}
    )
    jct = np.array([10.75, 13.5, 18.25])
    assert found.jct_mean == pytest.approx(jct.mean())
    assert found.jct_variation == pytest.approx(jct.std() / jct.mean())
    assert found.slowdown == pytest.approx((jct / [10, 2, 4]).mean())
    assert found.deadlines_met == 0.5
    assert found.jain == pytest.approx(jct.sum() ** 2 / (3 * (jct**2).sum()))
    assert (found.queue_max, found.queue_exploded) == (2, False)
    assert found.gpus_held == 1
    assert (found.gpu_utilization, found.power_w) == (0.75, 200)
    assert found.energy_kwh == pytest.approx(2000 / 3.6e6)
    assert found.decision_s == 2
    assert found.meta_entropy == 1
    # Shortest first: ends at 2.75, 7.5 and 18.25.
    assert found.best_fixed == "sjf"
    assert found.fixed["sjf"] == pytest.approx((2.75 + 7.5 + 18.25) / 3)
    assert found.gap_to_best_fixed == pytest.approx(jct.sum() / (2.75 + 7.5 + 18.25) - 1)


def test_what_was_not_measured_is_none():
    silent = [(0.0, [{"utilization": None, "power_w": None}])] * 2
    for samples in ((), silent):
        found = real_metrics(REAL, samples=samples)
        assert found.gpu_utilization is found.power_w is found.energy_kwh is None
        assert found.decision_s is found.meta_entropy is None
    jobs = dataclasses.replace(JOBS, deadline=np.full(3, np.inf))
    assert real_metrics(REAL._replace(workload=jobs)).deadlines_met is None


def test_energy_and_entropy():
    assert energy_of([(0, 100), (3600, 100)]) == pytest.approx(0.1)
    assert entropy({"a": 1, "b": 1, "c": 2}) == 1.5
    assert entropy({"a": 7}) == 0


def test_same_order_leaves_out_jobs_that_did_not_start():
    assert same_order(np.array([0, 1, 2, np.nan]), np.array([1, 0, 2, 3])) == (3, 2)
