"""Scenes are what a log says, row by row, on random runs of the full model."""

from __future__ import annotations

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_run

import berthline as bl
from berthline.errors import PolicyError
from berthline.evaluate.metrics.job_table import job_table, waits
from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    REJECT,
    RESUME,
    START,
    SUBMIT,
)
from berthline.view.playback import Playback


def test_a_run_by_hand() -> None:
    """One node with two GPUs.

    gpu 0  0000 2
    gpu 1  0000  (job 1 asks for both, from 4 on)
           0  2  4
    """
    workload = bl.Workload.from_columns(
        submit=[0.0, 1.0, 2.0], run=[4.0, 6.0, 1.0], gpus=[2, 2, 1], estimate=[5.0, 6.0, 1.0]
    )
    result = bl.simulate(workload, "uniform:1x2", "sjf+skip")
    played = Playback(workload, result.cluster, result.log, title="sjf")
    before = played.scene(3.0)
    assert before.nodes[0].gpus == ((0,), (0,))
    assert [(job.job, job.waited, job.gpus) for job in before.waiting] == [(1, 2, 2), (2, 1, 1)]
    assert [(job.job, job.ran, job.left) for job in before.running] == [(0, 3, 2)]
    assert before.so_far.mean_wait == pytest.approx((0 + 2 + 1) / 3)
    assert before.so_far.busy_gpus == 2
    at_four = played.scene(4.0)  # job 2 is the shortest
    assert at_four.nodes[0].gpus == ((2,), ())
    assert at_four.so_far.completed == 1
    as_it_ends = played.scene(4.0, rows=played.rows_until(3.9))
    assert as_it_ends.running[0].job == 0
    last = played.scene(11.0)
    assert last.so_far.completed == 3
    assert last.so_far.mean_wait == pytest.approx((0 + 4 + 2) / 3)
    assert not last.waiting
    assert not last.running


@pytest.mark.parametrize("number", range(12))
def test_moments__agree_with_the_log_read_row_by_row(number: int) -> None:
    run = random_model_run(number)
    try:
        result = bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        )
    except PolicyError:
        pytest.skip("its knowledge does not fit its scheduler")
    log, workload = result.log, result.workload
    played = Playback(workload, run.cluster, log)
    rng = np.random.default_rng(number)
    looks = {*rng.integers(0, len(log) + 1, 30).tolist(), 0, len(log)}
    waiting: set[int] = set()
    running: dict[int, dict[int, int]] = {}
    down: set[int] = set()
    submitted, rejected, done = 0, 0, 0
    for row in range(len(log) + 1):
        if row in looks:
            now = float(log.time[max(row - 1, 0)]) if len(log) else 0.0
            scene = played.scene(now, rows=row)
            assert {job.job for job in scene.waiting} == waiting
            assert {job.job for job in scene.running} == running.keys()
            on_nodes: dict[tuple[int, int], int] = {}
            for node, shown in enumerate(scene.nodes):
                assert shown.is_up == (node not in down)
                assert len(shown.gpus) == run.cluster.gpus[node]
                for gpu in shown.gpus:
                    for job in gpu:
                        on_nodes[job, node] = on_nodes.get((job, node), 0) + 1
            assert on_nodes == {
                (job, node): gpus
                for job, shares in running.items()
                for node, gpus in shares.items()
                if gpus
            }
            so_far = scene.so_far
            assert (so_far.submitted, so_far.rejected, so_far.completed) == (
                submitted - rejected,
                rejected,
                done,
            )
        if row == len(log):
            break
        kind, job = int(log.kind[row]), int(log.job[row])
        if kind == SUBMIT:
            waiting.add(job)
            submitted += 1
        elif kind == REJECT:
            waiting.discard(job)
            rejected += 1
            submitted += int(job not in log.job[:row])
        elif kind in (START, RESUME):
            waiting.discard(job)
            running[job] = log.allocation(row)
        elif kind in (FINISH, PREEMPT):
            del running[job]
            done += kind == FINISH
            if kind == PREEMPT:
                waiting.add(job)
        elif kind in (NODE_DOWN, NODE_UP):
            (down.add if kind == NODE_DOWN else down.discard)(int(log.detail[row]))
    if not np.isfinite(run.horizon or np.inf):
        table = job_table(log, workload)
        mean = played.scene(table.end).so_far.mean_wait
        if len(waits(table, workload)):
            assert mean == pytest.approx(float(waits(table, workload).mean()))


def test_estimates__are_shown_only_if_they_are_known() -> None:
    result = bl.simulate("synthetic", "uniform:1x2", "fcfs", jobs=30, load=2.0)
    at = float(result.workload.submit[-1])
    for knowledge, known in (("none", None), ("exact", result.workload.run)):
        scene = Playback(result.workload, result.cluster, result.log, knowledge=knowledge).scene(at)
        assert scene.waiting
        for job in scene.waiting:
            assert job.estimate == (None if known is None else known[job.job])
