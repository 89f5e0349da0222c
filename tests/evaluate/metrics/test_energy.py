"""Energy: nodes that sleep, go down and share GPUs, by hand and against a replay by the second."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.evaluate.metrics.by_the_second import second_by_second
from tests.evaluate.schedules import random_case, schedule

from berthline.evaluate.metrics.energy import energy_cost, job_energy_kwh
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.node_states import down_times, sleep_times
from berthline.evaluate.metrics.stretches import stretches
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

TWO_NODES = Cluster.uniform(nodes=2, gpus_per_node=2, gpu_type="T4")  # 10 W idle, 70 W at most
SLEEPY = TWO_NODES.with_conditions({"sleep_after": 5, "sleep_w": 3})
JOBS = Workload.from_columns(
    submit=[0, 20, 20], run=[4, 10, 10], gpus=1, gpu_milli=[1000, 250, 500]
)
ROWS = [
    (0, "submit", 0),
    (0, "start", 0, {0: 1}),
    (4, "finish", 0),
    (20, "submit", 1),
    (20, "submit", 2),
    (20, "start", 1, {0: 1}, 0),
    (20, "start", 2, {0: 1}, 0),
    (30, "finish", 1),
    (30, "finish", 2),
]


def test_energy__a_shared_gpu__draws_by_the_share_in_use():
    m = measure(schedule(ROWS), JOBS, TWO_NODES)
    # Node 0: 70 + 10 W for 4 s, idle for 16 s, then a GPU at 3/4 beside an idle one; node 1 idle.
    joules = 80 * 4 + 20 * 16 + (10 + 60 * 0.75 + 10) * 10 + 20 * 30
    assert m.energy_kwh == pytest.approx(joules / 3.6e6, rel=1e-12)


def test_energy__sleeping_nodes__draw_sleep_power_from_sleep_after_to_the_next_start():
    m = measure(schedule(ROWS), JOBS, SLEEPY)
    # Node 0 sleeps from 9 to 20, node 1 from 5 to 30.
    node0 = 80 * 4 + 20 * 5 + 3 * 11 + 65 * 10
    node1 = 20 * 5 + 3 * 25
    assert m.energy_kwh == pytest.approx((node0 + node1) / 3.6e6, rel=1e-12)


def test_sleep_times__a_job_without_gpus_keeps_its_node_awake():
    jobs = Workload.from_columns(submit=[0], run=[30], gpus=[0], cpus=[1])
    rows = [(0, "submit", 0), (0, "start", 0, {1: 0}), (30, "finish", 0)]
    assert _sleeps(schedule(rows), jobs, SLEEPY) == [(0, 5.0, 30.0)]


def test_sleep_times__count_from_when_a_node_came_up_and_stop_when_it_goes_down():
    rows = sorted([*ROWS, (8, "node down", 1), (12, "node up", 1)], key=lambda row: row[0])
    log = schedule(rows)
    assert _sleeps(log, JOBS, SLEEPY) == [(0, 9.0, 20.0), (1, 5.0, 8.0), (1, 17.0, 30.0)]
    m = measure(log, JOBS, SLEEPY)
    node0 = 80 * 4 + 20 * 5 + 3 * 11 + 65 * 10
    node1 = 20 * 5 + 3 * 3 + 0 * 4 + 20 * 5 + 3 * 13
    assert m.energy_kwh == pytest.approx((node0 + node1) / 3.6e6, rel=1e-12)
    assert m.utilization.available == pytest.approx(1 - 2 * 4 / (4 * 30))
    assert m.outages == 1


def test_sleep_times__idle_for_exactly_sleep_after__does_not_sleep():
    jobs = Workload.from_columns(submit=[0, 9], run=[4, 4], gpus=1)
    rows = [
        (0, "submit", 0),
        (0, "start", 0, {0: 1}),
        (4, "finish", 0),
        (9, "submit", 1),
        (9, "start", 1, {0: 1}),
        (13, "finish", 1),
    ]
    assert _sleeps(schedule(rows), jobs, SLEEPY) == [(1, 5.0, 13.0)]


def test_down_times__down_at_the_end__is_down_until_there():
    rows = [*ROWS[:3], (25, "node down", 1), (40, "node up", 1)]
    jobs = Workload.from_columns(submit=[0], run=[4], gpus=1)
    # The run ends with its last finish, at 4: what happens later is not part of it.
    assert down_times(schedule(rows), 4.0).per_node(2).tolist() == [0, 0]
    assert measure(schedule(rows), jobs, TWO_NODES).utilization.available == 1
    assert down_times(schedule(rows[:-1]), 30.0).per_node(2).tolist() == [0, 5]
    assert down_times(schedule(rows), 50.0).per_node(2).tolist() == [0, 15]


@given(seed=st.integers(0, 10**9))
def test_energy__random_runs__equal_the_sum_over_seconds(seed: int):
    log, workload, cluster = random_case(seed)
    seen = second_by_second(log, workload, cluster)
    m = measure(log, workload, cluster)
    assert m.energy_kwh == pytest.approx(math.fsum(seen.watts) / 3.6e6, rel=1e-9)
    assert m.utilization.gpu * cluster.total_gpus * seen.end == pytest.approx(
        sum(seen.busy), rel=1e-9
    )
    ours = job_energy_kwh(log, workload, cluster, stretches(log, job_table(log, workload)))
    theirs = [seen.job_joules.get(job, 0.0) / 3.6e6 for job in range(len(workload))]
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)


@given(seed=st.integers(0, 10**9), factor=st.floats(1e-3, 1e3))
def test_energy__time_stretched__is_stretched_likewise(seed: int, factor: float):
    """Events at other than whole seconds: all times, in any unit, give energy in that unit."""
    log, workload, cluster = random_case(seed)
    slower = dataclasses.replace(log, time=log.time * factor, horizon=log.horizon * factor)
    times = {"submit": workload.submit * factor, "deadline": workload.deadline * factor}
    later = dataclasses.replace(workload, **times)
    sleep_after = cluster.conditions.sleep_after * factor
    patient = cluster.with_conditions({"sleep_after": sleep_after})
    ours, theirs = measure(log, workload, cluster), measure(slower, later, patient)
    assert theirs.energy_kwh == pytest.approx(factor * ours.energy_kwh, rel=1e-9, abs=1e-15)
    assert theirs.utilization.gpu == pytest.approx(ours.utilization.gpu, rel=1e-9)
    assert theirs.utilization.available == pytest.approx(ours.utilization.available, rel=1e-9)
    assert theirs.queue.mean == pytest.approx(ours.queue.mean, rel=1e-9, abs=1e-12)


@given(seed=st.integers(0, 10**9), data=st.data())
def test_energy_cost__random_runs_and_rates__equal_the_sum_over_seconds(
    seed: int, data: st.DataObject
):
    log, workload, cluster = random_case(seed)
    seen = second_by_second(log, workload, cluster)
    steps = data.draw(st.lists(st.integers(1, 20), min_size=0, max_size=12))
    times = np.cumsum([data.draw(st.integers(-20, 0)), *steps])
    values = data.draw(st.lists(st.integers(-50, 500), min_size=len(times), max_size=len(times)))
    repeats = data.draw(st.booleans())
    period = float(times[-1] - times[0] + data.draw(st.integers(1, 9))) if repeats else math.inf

    def rate_at(second: int) -> int:
        if repeats:
            second = int((second - times[0]) % period + times[0])
        return [v for t, v in zip(times, values, strict=True) if t <= second][-1]

    cost = energy_cost(log, workload, cluster, EnergyRate(times, values, period))
    joules = [watts * rate_at(second) for second, watts in enumerate(seen.watts)]
    largest = max(map(abs, joules), default=0.0) * len(joules) / 3.6e6
    assert cost == pytest.approx(math.fsum(joules) / 3.6e6, rel=1e-9, abs=1e-9 * largest)


def test_energy_cost__one_rate_for_all_time__is_energy_times_rate():
    for seed in range(20):
        log, workload, cluster = random_case(seed)
        kwh = measure(log, workload, cluster).energy_kwh
        cost = energy_cost(log, workload, cluster, EnergyRate([0], [0.25]))
        assert cost == pytest.approx(0.25 * kwh, rel=1e-12)


def _sleeps(log, workload, cluster) -> list[tuple[int, float, float]]:
    table = job_table(log, workload)
    down = down_times(log, table.end)
    found = sleep_times(log, cluster, stretches(log, table), down, table.end)
    return list(zip(found.node.tolist(), found.begin.tolist(), found.stop.tolist(), strict=True))
