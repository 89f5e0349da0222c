"""Metrics against hand-computed schedules, and against a slow count second by second."""

from __future__ import annotations

import json
import math

import msgspec
import numpy as np
import pytest
from tests.evaluate.metrics.by_the_second import by_the_second
from tests.evaluate.schedules import random_case, schedule

from berthline.errors import ConfigError
from berthline.evaluate.metrics import groups, job_table
from berthline.evaluate.metrics.energy import energy_cost
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.evaluate.metrics.measure import Distribution, Metrics, measure
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import PREEMPT_REASONS, WHOLE_GPUS, Schedule
from berthline.model.workload import Workload

CLUSTER = Cluster.from_groups(
    [NodeGroup(count=1, gpus=2, gpu_type="V100"), NodeGroup(count=1, gpus=2, gpu_type="T4")]
)
JOULES_PER_KWH = 3.6e6


def five_jobs() -> Workload:
    """Job 4 asks for more GPUs than there are; jobs 0, 3 and 4 have deadlines."""
    return Workload.from_columns(
        submit=[0, 0, 1, 5, 6],
        run=[10, 20, 4, 10, 1],
        gpus=[2, 1, 1, 2, 8],
        user=[0, 0, 1, 1, 1],
        priority=[0, 0, 1.5, 1.5, 1.5],
        deadline=[10, np.inf, np.inf, 19, 100],
    )


FIVE_JOBS_ROWS = [
    (0, "submit", 0),
    (0, "submit", 1),
    (0, "start", 0, {0: 2}),
    (0, "start", 1, {1: 1}),
    (1, "submit", 2),
    (5, "submit", 3),
    (5, "start", 2, {1: 1}),
    (6, "submit", 4),
    (6, "reject", 4, 2),
    (9, "finish", 2),
    (10, "finish", 0),
    (10, "start", 3, {0: 2}),
    (20, "finish", 1),
    (20, "finish", 3),
]


def values(distribution: Distribution) -> tuple[float, ...]:
    return msgspec.structs.astuple(distribution)


def test_measure__run_to_the_end__as_computed_by_hand():
    """All metrics of one small run.

    second          0    5    10   15   20
    V100 node, gpu 0  0000000000 3333333333
               gpu 1  0000000000 3333333333
    T4 node,   gpu 0  1111111111 1111111111
               gpu 1  .....2222. ..........
    waiting           .2222                    job 2 from 1 to 5
                           33333               job 3 from 5 to 10
    rejected                ^ 6: job 4

    Busy GPU-seconds: V100 node 20 + 20 = 40 of 40, T4 node 20 + 4 = 24 of 40.
    """
    log = schedule(FIVE_JOBS_ROWS)
    m = measure(log, five_jobs(), CLUSTER)

    assert msgspec.structs.astuple(m.jobs) == (5, 4, 1, 0)
    # JCT 10, 20, 8, 15; the 95th percentile lies 0.85 of the way from 15 to 20.
    assert values(m.jct) == pytest.approx((13.25, 12.5, 19.25, 19.85, 20))
    # wait 0, 0, 4, 5
    assert values(m.wait) == pytest.approx((2.25, 2, 4.85, 4.97, 5))
    # slowdown 10/10, 20/20, 8/4, 15/10
    assert values(m.slowdown) == pytest.approx((1.375, 1.25, 1.925, 1.985, 2))
    # bounded slowdown 1, 1, max(1, 8/10), 1.5
    assert values(m.bounded_slowdown) == pytest.approx((1.125, 1, 1.425, 1.485, 1.5))
    assert m.makespan == 20
    assert m.utilization.gpu == pytest.approx(64 / 80)
    assert m.utilization.flops == pytest.approx((40 * 125 + 24 * 65) / (40 * 125 + 40 * 65))
    # V100 300 W busy; T4 70 W busy, 10 W idle
    joules = 300 * 40 + 70 * 24 + 10 * 16
    assert m.energy_kwh == pytest.approx(joules / JOULES_PER_KWH)
    # mean bounded slowdown: user 0 has 1, user 1 has 1.25
    assert m.fairness.jain == pytest.approx(2.25**2 / (2 * (1 + 1.25**2)))
    assert m.queue.mean == pytest.approx(9 / 20)
    # At 5, job 3 arrives and job 2 starts: one job is left waiting, not two.
    assert m.queue.max == 1
    assert m.preemptions == 0
    assert set(m.preemptions_by_reason.values()) == {0}
    assert (m.refusals, m.outages, m.utilization.available) == (0, 0, 1)
    assert msgspec.structs.astuple(m.starvation) == (5, 3, "3", 0, 0, False)
    # what the jobs held alone, over four counted jobs
    assert m.energy_per_job_kwh == pytest.approx((300 * 40 + 70 * 24) / 4 / JOULES_PER_KWH)
    # Job 0 ends at its deadline, job 3 one second late, job 4 is rejected.
    assert m.deadline_miss_rate == 0.5
    # busy fractions 1.0 and 0.6
    assert m.load_imbalance == pytest.approx(0.2)
    assert list(m.by_priority) == ["0", "1.5"]
    low, high = m.by_priority.values()
    assert (low.jobs, high.jobs) == (2, 2)
    assert values(low.jct) == pytest.approx((15, 15, 19.5, 19.9, 20))
    assert values(high.jct) == pytest.approx((11.5, 11.5, 14.65, 14.93, 15))
    assert (low.wait.mean, high.wait.mean) == (0, 4.5)
    assert (low.bounded_slowdown.mean, high.bounded_slowdown.mean) == (1, 1.25)
    assert (m.events, m.decisions, m.log_sha256) == (14, 7, log.sha256())


def test_measure__horizon__censors_unfinished_jobs_there():
    """The run above with two more jobs, cut off at 12.

    second          0    5    10  12
    V100 node, gpu 0  0000000000 33|     job 3 running since 10
               gpu 1  0000000000 33|
    T4 node,   gpu 0  1111111111 11|     job 1 running since 0
               gpu 1  .....2222. ..|
    waiting            2222        |
                           33333   |
                                  5|     job 5 waiting since 11
    not submitted                  |     job 6, at 15
    """
    jobs = Workload.from_columns(
        submit=[0, 0, 1, 5, 6, 11, 15],
        run=[10, 20, 4, 10, 1, 100, 1],
        gpus=[2, 1, 1, 2, 8, 4, 1],
        deadline=[np.inf, 12, 9, 13, 7, np.inf, 16],
        priority=[0, 0, 0, 0, 0, 0, 7],
    )
    rows = [*FIVE_JOBS_ROWS[:-2], (11, "submit", 5)]
    m = measure(schedule(rows, horizon=12), jobs, CLUSTER)

    assert msgspec.structs.astuple(m.jobs) == (6, 2, 1, 3)
    # JCT 10, 12 (so far), 8, 7 (so far), 1 (so far)
    assert m.jct.mean == pytest.approx(38 / 5)
    assert m.jct.max == 12
    # wait 0, 0, 4, 5, 1 (so far)
    assert m.wait.mean == pytest.approx(10 / 5)
    assert m.slowdown.mean == pytest.approx((1 + 12 / 20 + 2 + 7 / 10 + 1 / 100) / 5)
    assert m.bounded_slowdown.mean == 1
    assert m.makespan == 12
    assert m.utilization.gpu == pytest.approx((24 + 16) / 48)
    joules = 300 * 24 + 70 * 16 + 10 * 8
    assert m.energy_kwh == pytest.approx(joules / JOULES_PER_KWH)
    assert m.queue.mean == pytest.approx(10 / 12)
    assert m.queue.max == 1
    # Job 1 is known to be late at 12, job 2 was in time, job 3 still can be; 4 and 6 are out.
    assert m.deadline_miss_rate == pytest.approx(1 / 3)
    assert m.load_imbalance == pytest.approx((24 / 24 - 16 / 24) / 2)
    assert list(m.by_priority) == ["0"]
    assert m.by_priority["0"].jobs == 5


def test_measure__horizon_after_everything__changes_nothing():
    jobs = five_jobs()
    to_the_end = measure(schedule(FIVE_JOBS_ROWS), jobs, CLUSTER)
    assert measure(schedule(FIVE_JOBS_ROWS, horizon=1e9), jobs, CLUSTER) == to_the_end


def test_makespan__generated_workload__counts_from_the_clocks_zero():
    jobs = Workload.from_columns(submit=[50], run=[10], gpus=[1], rebase=False)
    rows = [(50, "submit", 0), (50, "start", 0, {0: 1}), (60, "finish", 0)]
    m = measure(schedule(rows), jobs, CLUSTER)
    assert (m.makespan, m.jct.mean, m.queue.max) == (60, 10, 0)
    assert m.utilization.gpu == pytest.approx(10 / (4 * 60))


def test_measure__every_job_rejected__has_no_means_but_counts_them():
    jobs = Workload.from_columns(submit=[0], run=[1], gpus=[99], deadline=[5])
    m = measure(schedule([(0, "submit", 0), (0, "reject", 0, 2)]), jobs, CLUSTER)
    assert msgspec.structs.astuple(m.jobs) == (1, 0, 1, 0)
    assert math.isnan(m.jct.mean)
    assert math.isnan(m.fairness.jain)
    assert (m.makespan, m.utilization.gpu, m.energy_kwh, m.queue.max) == (0, 0, 0, 0)
    assert m.deadline_miss_rate is None
    assert m.by_priority == {}
    assert json.loads(msgspec.json.encode(m))["jct"]["mean"] is None


def test_measure__empty_log__is_zero():
    jobs = Workload.from_columns(submit=[5], run=[1], gpus=[1], rebase=False)
    m = measure(schedule([], horizon=2), jobs, CLUSTER)
    assert m.jobs.submitted == 0
    assert m.queue.max == 0
    assert m.energy_kwh == pytest.approx((2 * 40 + 2 * 10) * 2 / JOULES_PER_KWH)


def test_job_table__holds_start_finish_and_status():
    table = job_table.job_table(schedule(FIVE_JOBS_ROWS), five_jobs())
    np.testing.assert_array_equal(table.start, [0, 0, 5, 10, np.nan])
    np.testing.assert_array_equal(table.finish, [10, 20, 9, 20, np.nan])
    names = [job_table.STATUSES[status] for status in table.status]
    assert names == ["completed"] * 4 + ["rejected"]
    assert table.end == 20


def test_metrics__json__has_the_documented_keys_and_reads_back():
    m = measure(schedule(FIVE_JOBS_ROWS), five_jobs(), CLUSTER)
    text = msgspec.json.encode(m)
    assert msgspec.json.decode(text, type=Metrics) == m
    content = json.loads(text)
    tail = ["mean", "p50", "p95", "p99", "max"]
    assert {key: list(v) if isinstance(v, dict) else None for key, v in content.items()} == {
        "jobs": ["submitted", "completed", "rejected", "unfinished"],
        "jct": tail,
        "wait": tail,
        "slowdown": tail,
        "bounded_slowdown": tail,
        "makespan": None,
        "utilization": ["gpu", "flops", "available"],
        "energy_kwh": None,
        "energy_per_job_kwh": None,
        "fairness": ["jain", "rho"],
        "starvation": ["wait", "job", "name", "starved", "left_behind", "starves"],
        "queue": ["mean", "max"],
        "preemptions": None,
        "preemptions_by_reason": list(PREEMPT_REASONS),
        "lost_gpu_hours": None,
        "refusals": None,
        "outages": None,
        "deadline_miss_rate": None,
        "load_imbalance": None,
        "fragmentation": None,
        "by_priority": ["0", "1.5"],
        "events": None,
        "decisions": None,
        "fallbacks": None,
        "log_sha256": None,
    }


def test_by_priority__many_priorities__are_ranges_of_about_equally_many_jobs():
    priority = np.random.default_rng(3).permutation(np.arange(100) / 4)
    m = _all_at_once(priority)
    assert next(iter(m.by_priority)) == "0 to 3"
    assert list(m.by_priority)[-1] == "21.75 to 24.75"
    sizes = [group.jobs for group in m.by_priority.values()]
    assert len(sizes) == groups.PRIORITY_GROUPS
    assert sum(sizes) == 100
    assert set(sizes) <= {12, 13}


def test_by_priority__one_priority_dominates__keeps_every_group_filled():
    m = _all_at_once(np.concatenate([np.zeros(90), np.arange(1, 18)]))
    # Six of the seven cuts would be at 0, the lowest priority; the last is the 94th of 107: 4.
    assert {label: group.jobs for label, group in m.by_priority.items()} == {
        "0 to 3": 93,
        "4 to 17": 14,
    }


def _all_at_once(priority: np.ndarray) -> Metrics:
    """Return the metrics of jobs of 10 s that all run from 0 on a node large enough."""
    n = len(priority)
    jobs = Workload.from_columns(submit=np.zeros(n), run=10, gpus=1, priority=priority)
    rows = [
        *((0, "submit", job) for job in range(n)),
        *((0, "start", job, {0: 1}) for job in range(n)),
        *((10, "finish", job) for job in range(n)),
    ]
    return measure(schedule(rows), jobs, Cluster.uniform(nodes=1, gpus_per_node=n))


@pytest.mark.parametrize("seed", range(150))
def test_measure__random_schedules__equal_a_count_second_by_second(seed: int):
    log, workload, cluster = random_case(seed)
    ours = msgspec.to_builtins(measure(log, workload, cluster))
    theirs = by_the_second(log, workload, cluster)
    assert set(ours) - set(theirs) <= {"by_priority"}
    _assert_close(ours, theirs)


@pytest.mark.parametrize("seed", range(150))
def test_measure__window_of_random_schedules__equals_a_count_second_by_second(seed: int):
    log, workload, cluster = random_case(seed)
    rng = np.random.default_rng([seed, 1])
    end = int(job_table.job_table(log, workload).end)
    begin = int(rng.integers(0, end + 1))
    stop = float(rng.integers(begin + 1, end + 20)) if rng.random() < 0.8 else math.inf
    window = MeasurementWindow(float(begin), stop)
    ours = msgspec.to_builtins(measure(log, workload, cluster, window=window))
    theirs = by_the_second(log, workload, cluster, window)
    assert set(ours) - set(theirs) <= {"by_priority"}
    _assert_close(ours, theirs)


@pytest.mark.parametrize("seed", range(40))
def test_window__groups_and_energy_cost__are_of_it_too(seed: int):
    log, workload, cluster = random_case(seed)
    window = MeasurementWindow(10.0, 40.0)
    part = measure(log, workload, cluster, window=window)
    rows = groups.group_table(log, workload, cluster, by="size", window=window)
    assert sum(row.jobs for row in rows) == part.jobs.submitted - part.jobs.rejected
    assert sum(row.completed for row in rows) == part.jobs.completed
    mean = sum(row.jobs * row.jct.mean for row in rows) / max(1, sum(row.jobs for row in rows))
    assert mean == pytest.approx(0.0 if math.isnan(part.jct.mean) else part.jct.mean)
    one = EnergyRate(times=[0], values=[1.0])
    cost = energy_cost(log, workload, cluster, one, window=window)
    assert cost == pytest.approx(part.energy_kwh)


@pytest.mark.parametrize("seed", range(40))
def test_measure__window_over_everything__changes_nothing(seed: int):
    log, workload, cluster = random_case(seed)
    whole = measure(log, workload, cluster, window=MeasurementWindow())
    _assert_close(msgspec.to_builtins(whole), msgspec.to_builtins(measure(log, workload, cluster)))


@pytest.mark.parametrize("seed", range(20))
def test_measure__fragmentation_in_chunks__is_the_same(seed: int, monkeypatch: pytest.MonkeyPatch):
    log, workload, cluster = random_case(seed)
    whole = measure(log, workload, cluster).fragmentation
    monkeypatch.setattr("berthline.evaluate.metrics.fragmentation._STRETCHES_PER_CHUNK", 3)
    assert measure(log, workload, cluster).fragmentation == pytest.approx(whole, abs=1e-12)


def test_fragmentation__is_the_average_of_the_word():
    """Two nodes: one partly in use for 10 s of 20 and one empty; then one full, one empty."""
    jobs = Workload.from_columns(submit=[0, 10], run=[10, 10], gpus=[1, 2])
    rows = [
        (0, "submit", 0),
        (0, "start", 0, {0: 1}),
        (10, "finish", 0),
        (10, "submit", 1),
        (10, "start", 1, {1: 2}),
        (20, "finish", 1),
    ]
    assert measure(schedule(rows), jobs, CLUSTER).fragmentation == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("10:20", (10, 20)),
        ("10:", (10, math.inf)),
        (":20", (0, 20)),
        ("1e3:2e3", (1000, 2000)),
    ],
)
def test_window__text(text: str, window: tuple[float, float]):
    assert MeasurementWindow.parse(text) == window


@pytest.mark.parametrize("text", ["", "10", "20:10", "10:10", "-5:10", "a:b", "1:2:3", "nan:5"])
def test_window__wrong_text__is_refused(text: str):
    with pytest.raises(ConfigError, match="the measurement window is"):
        MeasurementWindow.parse(text)


@pytest.mark.bench
def test_measure__a_million_jobs__within_its_budget():
    import time
    import tracemalloc

    n = 1_000_000
    rng = np.random.default_rng(0)
    submit = np.sort(rng.integers(0, 10_000_000, n)).astype(np.float64)
    run = rng.integers(10, 10_000, n).astype(np.float64)
    jobs = Workload.from_columns(
        submit=submit, run=run, gpus=1, priority=rng.integers(0, 4, n), rebase=False
    )
    events = np.concatenate([submit, submit, submit + run])
    kind = np.repeat(np.arange(3, dtype=np.uint8), n)
    order = np.lexsort((kind, events))
    is_start = kind[order] == 1
    detail = np.full(3 * n, -1, dtype=np.int32)
    detail[is_start] = np.arange(n)
    log = Schedule(
        time=events[order],
        kind=kind[order],
        job=np.tile(np.arange(n, dtype=np.int32), 3)[order],
        detail=detail,
        alloc_node=rng.integers(0, 64, n).astype(np.int32),
        alloc_gpus=np.ones(n, dtype=np.int32),
        alloc_slot=np.full(n, WHOLE_GPUS, dtype=np.int32),
        horizon=np.inf,
        decisions=n,
    )
    cluster = Cluster.uniform(nodes=64, gpus_per_node=64)
    begin = time.process_time()
    measure(log, jobs, cluster)
    assert time.process_time() - begin < 1.5
    tracemalloc.start()
    measure(log, jobs, cluster)
    assert tracemalloc.get_traced_memory()[1] < 60e6
    tracemalloc.stop()


def _assert_close(ours: object, theirs: object, where: str = "") -> None:
    """Compare nested dicts; keys that only `ours` has are compared elsewhere."""
    if isinstance(theirs, dict):
        for key, value in theirs.items():
            _assert_close(ours[key], value, f"{where}.{key}")
    elif isinstance(theirs, float):
        assert ours == pytest.approx(theirs, rel=1e-9, abs=1e-12, nan_ok=True), where
    else:
        assert ours == theirs, where
