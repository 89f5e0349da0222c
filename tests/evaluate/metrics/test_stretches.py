"""Stretches: jobs that run in several stretches, on whole GPUs, on parts of them, or on none."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluate.schedules import random_case, schedule

from berthline.evaluate.metrics import stretches as module
from berthline.evaluate.metrics.job_table import RUNNING, WAITING, job_table
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.stretches import shares, stretches
from berthline.evaluate.metrics.utilization import busy_gpu_seconds
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    PREEMPT,
    PREEMPT_REASONS,
    REFUSE,
    RESUME,
    WHOLE_GPUS,
)
from berthline.model.workload import Workload

CLUSTER = Cluster.from_groups(
    [NodeGroup(count=1, gpus=2, gpu_type="V100"), NodeGroup(count=1, gpus=2, gpu_type="T4")]
)


def jobs() -> Workload:
    """A gang of 2, a quarter of a GPU, a job without GPUs, and one that waits for its turn."""
    return Workload.from_columns(
        submit=[0, 0, 0, 4],
        run=[10, 8, 6, 2],
        gpus=[2, 1, 0, 2],
        gpu_milli=[1000, 250, 1000, 1000],
        cpus=1,
        deadline=[15, np.inf, 6, np.inf],
    )


ROWS = [
    (0, "submit", 0),
    (0, "submit", 1),
    (0, "submit", 2),
    (0, "start", 0, {0: 2}),
    (0, "start", 1, {1: 1}, 1),
    (0, "start", 2, {0: 0}),
    (4, "submit", 3),
    (4, "preempt", 0, 0),
    (4, "start", 3, {0: 2}),
    (6, "finish", 2),
    (6, "finish", 3),
    (7, "refuse", 0),
    (9, "resume", 0, {0: 1, 1: 1}),
    (10, "finish", 1),
    (12, "preempt", 0, 3),
    (12, "resume", 0, {0: 2}),
    (16, "finish", 0),
]


def test_measure__preemptions__as_computed_by_hand():
    """Job 0 runs [0, 4) on the V100 node, [9, 12) on one GPU of each, [12, 16) on the V100s.

    Held: V100 node 2 x 4 + 2 x 2 (job 3) + 3 + 2 x 4 = 23, T4 node 0.25 x 10 + 3 = 5.5.
    Waiting: job 0 from 4 to 9; moved at 12, it does not wait.
    """
    log = schedule(ROWS)
    m = measure(log, jobs(), CLUSTER)
    assert (m.jct.max, m.wait.max, m.makespan) == (16, 0, 16)
    assert m.slowdown.max == pytest.approx(1.6)
    assert m.utilization.gpu == pytest.approx((23 + 5.5) / (4 * 16))
    assert m.utilization.flops == pytest.approx((23 * 125 + 5.5 * 65) / ((2 * 125 + 2 * 65) * 16))
    assert (m.queue.mean, m.queue.max) == (5 / 16, 1)
    assert m.preemptions == 2
    assert m.preemptions_by_reason == dict(zip(PREEMPT_REASONS, (1, 0, 0, 1), strict=True))
    assert (m.refusals, m.outages) == (1, 0)
    assert m.deadline_miss_rate == 0.5
    held = 300 * 23 + 70 * 5.5
    idle = 40 * (32 - 23) + 10 * (32 - 5.5)
    assert m.energy_kwh == pytest.approx((held + idle) / 3.6e6, rel=1e-12)
    assert m.energy_per_job_kwh == pytest.approx(held / 4 / 3.6e6, rel=1e-12)
    assert (m.starvation.wait, m.starvation.job, m.starvation.starved) == (0, 0, 0)


def test_stretches__are_in_the_order_of_the_log():
    log = schedule(ROWS)
    ran = stretches(log, job_table(log, jobs()))
    assert ran.job.tolist() == [0, 1, 2, 3, 0, 0]
    assert ran.begin.tolist() == [0, 0, 0, 4, 9, 12]
    assert ran.stop.tolist() == [4, 10, 6, 6, 12, 16]
    assert ran.first.tolist() == [0, 1, 2, 3, 4, 6, 7]


def test_shares__give_amounts_of_gpus():
    log = schedule(ROWS)
    (part,) = shares(log, jobs(), stretches(log, job_table(log, jobs())))
    assert part.job.tolist() == [0, 1, 2, 3, 0, 0, 0]
    assert part.node.tolist() == [0, 1, 0, 0, 0, 1, 0]
    assert part.amount.tolist() == [2, 0.25, 0, 2, 1, 1, 2]
    assert part.gpu_seconds().tolist() == [8, 2.5, 0, 4, 3, 3, 8]


@pytest.mark.parametrize(
    ("horizon", "status", "waited"), [(8, WAITING, 4), (10, RUNNING, 5), (13, RUNNING, 5)]
)
def test_measure__horizon_within_a_job_of_pieces__cuts_the_piece(
    horizon: float, status: int, waited: float
):
    log = schedule([row for row in ROWS if row[0] <= horizon], horizon=horizon)
    table = job_table(log, jobs())
    assert (table.status[0], table.start[0], table.end) == (status, 0, horizon)
    assert np.isnan(table.finish[0])
    m = measure(log, jobs(), CLUSTER)
    assert m.queue.mean == pytest.approx(waited / horizon)
    assert stretches(log, table).stop.max() <= horizon


def test_mean_queue_length__a_job_moved_many_times_late_in_a_trace__waits_for_nothing():
    """Preemptions and resumes at equal times far from 0 leave no rounding behind."""
    rng = np.random.default_rng(0)
    moves = np.sort(rng.uniform(1e8, 2e8, 10_000)).tolist()
    rows: list[tuple[object, ...]] = [(0, "submit", 0), (0, "start", 0, {0: 1})]
    for time in moves:
        rows += [(time, "preempt", 0, 3), (time, "resume", 0, {0: 1})]
    rows.append((2e8, "finish", 0))
    one = Workload.from_columns(submit=[0], run=[2e8], gpus=[1])
    m = measure(schedule(rows), one, CLUSTER)
    assert (m.queue.mean, m.queue.max, m.preemptions) == (0, 0, 10_000)
    assert m.utilization.gpu == pytest.approx(0.25, rel=1e-12)


def test_busy_gpu_seconds__does_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch):
    log, workload, cluster = _case_with(PREEMPT)
    ran = stretches(log, job_table(log, workload))
    whole = busy_gpu_seconds(log, workload, cluster, ran)
    assert whole.sum() > 0
    for size in (1, 2, 5):
        monkeypatch.setattr(module, "_STRETCHES_PER_CHUNK", size)
        np.testing.assert_allclose(busy_gpu_seconds(log, workload, cluster, ran), whole, rtol=1e-12)


def test_random_cases__have_all_that_can_happen():
    """The comparisons with plain loops rely on these cases."""
    kinds, reasons = set(), set()
    parts = without_gpus = asleep = again = 0
    for seed in range(150):
        log, workload, cluster = random_case(seed)
        kinds |= set(log.kind.tolist())
        reasons |= set(log.detail[log.kind == PREEMPT].tolist())
        parts += int((log.alloc_slot != WHOLE_GPUS).sum())
        without_gpus += int((log.alloc_gpus == 0).sum())
        asleep += bool(np.isfinite(cluster.conditions.sleep_after))
        unfinished = np.isfinite(log.horizon) and (log.kind == FINISH).sum() < len(workload)
        again += bool(unfinished and (log.kind == RESUME).any())
    assert {PREEMPT, RESUME, REFUSE, NODE_DOWN} <= kinds
    assert reasons == set(range(len(PREEMPT_REASONS)))
    assert min(parts, without_gpus) > 100
    assert min(asleep, again) > 10


def _case_with(kind: int):
    for seed in range(100):
        case = random_case(seed)
        if (case[0].kind == kind).sum() > 5:
            return case
    raise AssertionError("no such case")
