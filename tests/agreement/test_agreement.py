"""The native core gives the reference simulator's log, event for event, allocations included."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_runs import Run, long_queue_run, overdue_run, random_run

import berthline as bl
from berthline.errors import BerthlineError, PolicyError
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.schedule import START

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule


def both(run: Run) -> tuple[Schedule, Schedule] | None:
    """Simulate twice; None when the run is refused (and then both must refuse it)."""
    logs = []
    for simulator in ("reference", "native"):
        try:
            result = bl.simulate(
                run.workload,
                run.cluster,
                run.scheduler,
                knowledge=run.knowledge,
                seed=run.seed,
                horizon=run.horizon,
                simulator=simulator,
            )
        except PolicyError:
            assert run.knowledge == "none"
            return None
        logs.append(result.log)
    return logs[0], logs[1]


def assert_agreement(run: Run) -> bool:
    logs = both(run)
    if logs is None:
        return False
    reference, native = logs
    for column in ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus"):
        expected, found = getattr(reference, column), getattr(native, column)
        if not np.array_equal(expected, found):  # describing the run takes longer than the run
            np.testing.assert_array_equal(found, expected, err_msg=f"{column} of {run}")
    assert native.decisions == reference.decisions
    assert native.sha256() == reference.sha256()
    return True


@pytest.mark.parametrize("block", range(20))
def test_agreement__pinned_seeds(block: int) -> None:
    compared = sum(assert_agreement(random_run(block * 100 + number)) for number in range(100))
    assert compared > 50


@pytest.mark.parametrize("block", range(5))
def test_agreement__overdue_reservations(block: int) -> None:
    for number in range(300):
        assert assert_agreement(overdue_run(block * 300 + number))


@pytest.mark.parametrize("block", range(5))
def test_agreement__long_queues(block: int) -> None:
    for number in range(12):
        assert assert_agreement(long_queue_run(block * 12 + number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(40))
def test_agreement__many_long_queues(block: int) -> None:
    for number in range(50):
        assert assert_agreement(long_queue_run(1_000_000 + block * 50 + number))


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=10_000, max_value=2**40))
def test_agreement__drawn_seeds(number: int) -> None:
    assert_agreement(random_run(number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_agreement__many_seeds(block: int) -> None:
    for number in range(500):
        assert_agreement(random_run(1_000_000 + block * 500 + number))


def test_agreement__rejected_arrival_makes_a_decision_point() -> None:
    """A job that is rejected on arrival still makes a decision point, at which more may be spare.

    Four GPUs. Jobs 0 and 1 hold one each; they should end at 10 and 30 but run until 100. Job 2
    needs three and is reserved for time 10, so job 3 (one GPU, long) may not pass it. At 35 both
    are overdue: seen from there they end at once, the head leaves one GPU, and job 3 may start.
    Only the rejected job 4 makes anybody look at 35.
    """
    workload = bl.Workload.from_columns(
        submit=[0.0, 0.0, 1.0, 2.0, 35.0],
        run=[100.0, 100.0, 50.0, 50.0, 5.0],
        gpus=[1, 1, 3, 1, 99],
        estimate=[10.0, 30.0, 50.0, 50.0, 5.0],
    )
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=4)
    assert assert_agreement(Run(workload, cluster, "fcfs+easy", "estimate", 0, None))
    log = bl.simulate(workload, cluster, "fcfs+easy").log
    assert log.time[(log.kind == START) & (log.job == 3)] == 35.0


NODE_FORMULAS = (
    "[node_id * (floor(now / 20) - 2 * floor(now / 40) - 0.5)]",
    "[node_id * (queue_len - 3.5)]",
    "[node_id * (running_jobs - 3.5)]",
    "[node_running * (arrival_rate * 3600 - 9.5)]",
    "fgd",
)


@pytest.mark.parametrize("placement", NODE_FORMULAS)
def test_agreement__where_the_head_is_reserved_changes_with_time(placement: str) -> None:
    """A reservation that an earlier decision made is not valid when the rule would move it."""
    for number in range(50_000, 50_100):
        run = random_run(number)
        if len(run.workload) <= 60 and run.cluster.num_nodes <= 40:
            scheduler = f"{'fcfs' if number % 2 else 'sjf'}+easy@{placement}"
            assert_agreement(dataclasses.replace(run, scheduler=scheduler, knowledge="exact"))


@pytest.mark.parametrize("rejected", [255, 256, 257, 511, 512])
def test_agreement__keys_are_fresh_after_a_rejected_job(rejected: int) -> None:
    """Keys that never change are worked out for a block of jobs at once: for each its own."""
    rng = np.random.default_rng(rejected)
    gpus = np.ones(600, int)
    gpus[rejected] = 5
    workload = bl.Workload.from_columns(
        submit=np.arange(600.0), run=4.1, gpus=gpus, priority=rng.permutation(600)
    )
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=4)
    for scheduler in ("static-priority", "static-priority+skip"):
        assert assert_agreement(Run(workload, cluster, scheduler, "exact", 0, None))


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
def test_agreement__many_starts_before_the_first_reservation(discipline: str) -> None:
    """150 jobs of one GPU start before anyone has to wait; then releases are asked for."""
    rng = np.random.default_rng(6)
    workload = bl.Workload.from_columns(
        submit=[*range(150), *range(150, 160)],
        run=[*rng.integers(100, 1000, 150), *[50] * 10],
        gpus=[*[1] * 150, *[100, 1, 40, 1, 1, 120, 2, 1, 30, 1]],
    )
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=180)
    assert assert_agreement(Run(workload, cluster, f"fcfs+{discipline}", "exact", 0, None))


@pytest.mark.parametrize("power", [30, 50, 61])
def test_agreement__amounts_of_memory_beyond_all_measure(power: int) -> None:
    """Refused, or exact: memory x GPUs must not overflow 64 bits."""
    try:
        workload = bl.Workload.from_columns(
            submit=[0.0, 1.0], run=5.0, gpus=[4000, 4000], memory_mib=2**power
        )
        cluster = Cluster.from_groups(
            [NodeGroup(count=1, gpus=9000, memory_mib=2 ** (power + 1))], name="vast"
        )
    except BerthlineError:
        assert power > 30
        return
    assert assert_agreement(Run(workload, cluster, "fcfs", "exact", 0, None))
