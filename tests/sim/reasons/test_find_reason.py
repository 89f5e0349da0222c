"""One small run for each reason for waiting, computed by hand."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from tests.evaluate.explain.explained_runs import run_of

from berthline.evaluate.explain.explain import explain
from berthline.evaluate.explain.unblock import unblock
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.limits import Outage, Quota
from berthline.sim.reasons.reason_codes import MEANINGS, Reason

if TYPE_CHECKING:
    from berthline.sim.simulate import Result

POOLS = [NodeGroup(count=1, gpus=4, pool="red"), NodeGroup(count=1, gpus=4, pool="blue")]
TYPES = [NodeGroup(count=1, gpus=4, gpu_type="P100"), NodeGroup(count=1, gpus=4, gpu_type="H100")]
CPUS = [NodeGroup(count=1, gpus=4, cpus=8, memory_mib=64)]


def only(result: Result, job: int) -> tuple[Reason, float]:
    found = explain(result, job)
    [interval] = found.timeline
    return interval.reason, interval.seconds


def test_waiting_for_gpus() -> None:
    result = run_of([8, 2], "fcfs")
    assert only(result, 1) == (Reason.WAITING_FOR_GPUS, 99)
    [interval] = explain(result, 1).timeline
    assert interval.short == {"gpus": 2}
    assert (interval.free_gpus, interval.position, interval.queue) == (0, 1, 1)


def test_fragmented() -> None:
    # Two GPUs on each node are free: four in total, but not on one node.
    result = run_of([2, 2, 4], "fcfs@worst-fit")
    assert only(result, 2) == (Reason.FRAGMENTED, 98)
    [interval] = explain(result, 2).timeline
    assert (interval.free_gpus, interval.short) == (4, {"gpus": 2})


def test_behind_in_order() -> None:
    result = run_of([5, 8, 1], "fcfs")
    found = explain(result, 2)
    first, second = found.timeline
    assert (first.reason, first.blocker, first.fits) == (Reason.BEHIND_IN_ORDER, 1, True)
    assert (first.begin, first.end) == (2, 100)
    assert (second.reason, second.begin, second.end) == (Reason.WAITING_FOR_GPUS, 100, 200)


def test_head_reservation() -> None:
    # Job 1 is to start at 100 with all GPUs; job 2 would end at 102.
    result = run_of([5, 8, 1], "fcfs+easy")
    first, _ = explain(result, 2).timeline
    assert (first.reason, first.blocker) == (Reason.HEAD_RESERVATION, 1)
    assert (first.until, first.late, first.fits) == (100, 2, True)


def test_earlier_reservations() -> None:
    result = run_of([5, 8, 1], "fcfs+conservative")
    first, _ = explain(result, 2).timeline
    assert (first.reason, first.blocker) == (Reason.EARLIER_RESERVATIONS, 1)


def test_gate_closed() -> None:
    result = run_of([1, 1], "fcfs?[free_gpus - 8]")
    assert only(result, 1) == (Reason.GATE_CLOSED, 99)
    found = explain(result, 1)
    assert found.timeline[0].value == -1
    assert found.moment is not None
    assert found.moment.gate is not None
    assert found.moment.gate.words == {"free_gpus": 7}


def test_quota() -> None:
    cluster = dataclasses.replace(Cluster.parse("uniform:2x4"), quotas=(Quota(gpus=3),))
    result = run_of([2, 2], "fcfs", cluster=cluster)
    assert only(result, 1) == (Reason.QUOTA, 99)
    [interval] = explain(result, 1).timeline
    assert interval.short == {"gpus": 1}
    assert "2 of 3 GPUs" in interval.detail


def test_pool_full() -> None:
    cluster = Cluster.from_groups(POOLS)
    result = run_of([4, 4], "fcfs", cluster=cluster, pool=[0, 0], pool_names=("red", "blue"))
    assert only(result, 1) == (Reason.POOL_FULL, 99)


def test_gpu_type_full() -> None:
    cluster = Cluster.from_groups(TYPES)
    result = run_of([4, 4], "fcfs", cluster=cluster, gpu_types=[0, 0], gpu_type_sets=("H100",))
    assert only(result, 1) == (Reason.GPU_TYPE_FULL, 99)


@pytest.mark.parametrize(
    ("reason", "column", "value"),
    [(Reason.CPUS_SHORT, "cpus", 6), (Reason.MEMORY_SHORT, "memory_mib", 40)],
)
def test_cpus_and_memory(reason: Reason, column: str, value: int) -> None:
    cluster = Cluster.from_groups(CPUS)
    result = run_of([1, 1], "fcfs", cluster=cluster, **{column: [value, value]})
    assert only(result, 1) == (reason, 99)
    free = {"cpus": 8, "memory_mib": 64}[column] - value
    assert explain(result, 1).timeline[0].short == {column: value - free}


def test_node_down() -> None:
    outage = Outage(down=0.5, up=50, nodes=(1,))
    cluster = dataclasses.replace(Cluster.parse("uniform:2x4"), outages=(outage,))
    result = run_of([4, 4], "fcfs", cluster=cluster)
    assert only(result, 1) == (Reason.NODE_DOWN, 49)


def test_decision_tick() -> None:
    cluster = Cluster.parse("uniform:2x4").with_conditions({"tick": 30})
    # A trace begins with its first job, at 0, so another job comes first.
    result = run_of([1, 1], "fcfs", cluster=cluster, submit=[0.0, 7.0])
    assert only(result, 1) == (Reason.DECISION_TICK, 23)
    assert explain(result, 1).timeline[0].until == 30


def test_rounds() -> None:
    cluster = Cluster.parse("uniform:2x4").with_conditions({"restart": 0})
    result = run_of([8, 8], "fcfs+rounds:T=60", cluster=cluster, submit=[0.0, 7.0])
    first, second = explain(result, 1).timeline
    assert (first.reason, first.seconds) == (Reason.DECISION_TICK, 53)
    assert (second.reason, second.blocker, second.end) == (Reason.BEHIND_IN_ORDER, 0, 120)


def test_preempted_and_requeued() -> None:
    cluster = Cluster.parse("uniform:1x1").with_conditions({"requeue_delay": 5, "restart": 0})
    result = run_of(
        [1, 1],
        "static-priority+skip!priority",
        cluster=cluster,
        submit=[0.0, 50.0],
        run=[100.0, 10.0],
        priority=[0, 1],
    )
    found = explain(result, 0)
    [wait] = found.waits
    assert (wait.begin, wait.end, wait.by) == (50, 60, 1)
    assert wait.after == "preempted: for another job"
    first, second = found.timeline
    assert (first.reason, first.end) == (Reason.REQUEUE_DELAY, 55)
    assert (second.reason, second.end) == (Reason.WAITING_FOR_GPUS, 60)


def test_rejected() -> None:
    result = run_of([1, 9], "fcfs")
    found = explain(result, 1)
    assert found.reject_reason == "more GPUs than the nodes it may use have"
    assert (found.timeline, found.wait) == ([], 0)
    best = unblock(result, found)[0]
    assert (best.change, best.start) == ("4 GPUs instead of 9, same run time", 1)


def test_started_at_once() -> None:
    found = explain(run_of([1, 1], "fcfs"), 1)
    assert (found.wait, found.timeline, found.moment, found.reasons) == (0, [], None, {})


def test_every_reason_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Reason)
    assert all(reason.value == reason.name for reason in Reason)
