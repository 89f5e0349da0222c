"""Snapshots that contradict themselves are refused, with what and where."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np
import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.model.schedule import FINISH, NODE_DOWN, PREEMPT, RESUME, START, SUBMIT
from berthline.sim.snapshots.check import check_snapshot


def a_snapshot() -> bl.Snapshot:
    """Two nodes of 4 GPUs; job 0 runs on both, job 1 waits, jobs 2 and 3 share a GPU of node 1."""
    jobs = bl.Workload.from_columns(
        submit=[0.0, 5.0, 6.0, 7.0],
        run=100.0,
        gpus=[7, 2, 1, 1],
        gpu_milli=[1000, 1000, 500, 400],
        names=["wide", "next", "half", "less"],
    )
    cluster = bl.Cluster.uniform(nodes=2, gpus_per_node=4)
    return bl.simulate(jobs, cluster, "fcfs+skip", knowledge="exact").snapshot(10.0)


def with_log(snapshot: bl.Snapshot, **columns: Any) -> bl.Snapshot:
    return dataclasses.replace(snapshot, log=dataclasses.replace(snapshot.log, **columns))


def changed(values: Any, at: int, value: float) -> Any:
    copy = values.copy()
    copy[at] = value
    return copy


def test_check__a_true_snapshot_is_accepted() -> None:
    snapshot = a_snapshot()
    assert snapshot.num_jobs == 4
    assert bl.decide(snapshot).reasons.keys() == {1}


@pytest.mark.parametrize(
    ("column", "at", "value", "message"),
    [
        ("time", 1, 6.0, "time runs backwards, from 6 to 5 s: snapshot, log row 2"),
        ("time", -1, 11.0, "an event at 11 s"),
        ("time", 0, math.nan, "time runs backwards"),
        ("time", 0, -1.0, "an event at -1 s"),
        ("kind", 0, 77, "event of kind 77"),
        ("kind", 2, START, "starts and allocations do not belong together"),
        ("kind", 2, FINISH, "job next: finish without being submitted"),
        ("job", 0, 9, "job 9: snapshot, log row 0"),
        ("job", 2, 2, "job half: submit after submit"),
        ("alloc_node", 0, 2, "node 2: snapshot, allocation 0"),
        ("alloc_node", 0, -1, "node -1: snapshot, allocation 0"),
        ("alloc_gpus", 0, 3, "job wide holds 6 GPUs"),
        ("alloc_slot", 1, 0, "are in use"),
        ("detail", 1, 1, "starts and allocations do not belong together"),
    ],
)
def test_check__a_log_that_cannot_be(column: str, at: int, value: float, message: str) -> None:
    snapshot = a_snapshot()
    wrong = changed(getattr(snapshot.log, column), at, value)
    with pytest.raises(ConfigError, match="contradicts itself") as error:
        bl.decide(with_log(snapshot, **{column: wrong}))
    assert message in str(error.value).replace("\n", " ")


def test_check__more_in_use_than_there_is() -> None:
    snapshot = a_snapshot()
    small = bl.Cluster.uniform(nodes=2, gpus_per_node=3)
    with pytest.raises(ConfigError, match=r"4 GPUs are in use on node 0.*\n.*at most 3"):
        bl.resume(dataclasses.replace(snapshot, cluster=small))
    jobs = dataclasses.replace(
        snapshot.workload, gpu_milli=np.array([1000, 1000, 700, 600], np.int32)
    )
    with pytest.raises(ConfigError, match="1300 thousandths of the shared GPU 0 of node 1"):
        bl.decide(dataclasses.replace(snapshot, workload=jobs))


PAST = {
    "one after the other": ("S0 S1 + P0 + P1 R0", [3, 3], [1000, 1000], None),
    "two at once": ("S0 S1 + + P0", [3, 3], [1000, 1000], "6 GPUs are in use on node 0: .*row 3"),
    "parts that fit": ("S0 S1 + + P0 R0 P1", [1, 1], [500, 500], None),
    "parts that do not": ("S0 S1 + + P0", [1, 1], [500, 600], "1100 thousandths of the shared GPU"),
    "a part beside the rest": ("S0 S1 + + P0", [3, 1], [1000, 500], None),
    "a part beside all": ("S0 S1 + + P0", [4, 1], [1000, 500], "5 GPUs are in use on node 0"),
    "a part after all": ("S0 S1 + P0 + P1 R0", [4, 1], [1000, 500], None),
    "a part that is still there": ("S0 S1 + P0 + R0 P0", [4, 1], [1000, 500], "5 GPUs are in use"),
}


@pytest.mark.parametrize(("rows", "gpus", "milli", "message"), PAST.values(), ids=PAST)
def test_check__what_was_in_use_before(
    rows: str, gpus: list[int], milli: list[int], message: str | None
) -> None:
    """Rows: S submit, + the start of the next job, P preempt, R resume; a second each."""
    kinds = {"S": SUBMIT, "+": START, "P": PREEMPT, "R": RESUME}
    jobs = bl.Workload.from_columns(submit=[0.0, 1.0], run=100.0, gpus=gpus, gpu_milli=milli)
    first = iter(range(2))
    kind = [kinds[row[0]] for row in rows.split()]
    job = [next(first) if row == "+" else int(row[1]) for row in rows.split()]
    starts = [(number, job[at]) for number, at in enumerate(np.flatnonzero(_starts(kind)).tolist())]
    detail = np.zeros(len(kind), np.int64)
    detail[_starts(kind)] = [number for number, _ in starts]
    shared = [milli[which] < 1000 for _, which in starts]
    snapshot = a_snapshot()
    log = dataclasses.replace(
        snapshot.log,
        time=np.arange(len(kind), dtype=np.float64),
        kind=np.array(kind, snapshot.log.kind.dtype),
        job=np.array(job, snapshot.log.job.dtype),
        detail=detail.astype(snapshot.log.detail.dtype),
        alloc_node=np.zeros(len(starts), np.int32),
        alloc_gpus=np.array([gpus[which] for _, which in starts], np.int32),
        alloc_slot=np.where(shared, 0, snapshot.log.alloc_slot[0]).astype(np.int32),
    )
    past = bl.Snapshot(
        workload=jobs,
        cluster=bl.Cluster.uniform(nodes=1, gpus_per_node=4),
        log=log,
        now=20.0,
        number=np.arange(2, dtype=snapshot.number.dtype),
    )
    if message is None:
        check_snapshot(past)
        return
    with pytest.raises(ConfigError, match="contradicts itself") as error:
        check_snapshot(past)
    assert re.search(message, str(error.value).replace("\n", " "))


def _starts(kind: list[int]) -> Any:
    return np.isin(kind, (START, RESUME))


def test_check__a_job_on_a_node_that_is_down() -> None:
    snapshot = a_snapshot()
    log = snapshot.log
    more = {"time": 8.0, "kind": NODE_DOWN, "job": -1, "detail": 1}
    wrong = with_log(
        snapshot,
        **{
            name: np.append(getattr(log, name), np.array(value, getattr(log, name).dtype))
            for name, value in more.items()
        },
    )
    with pytest.raises(ConfigError, match="job wide runs on node 1, which is down"):
        bl.decide(wrong)


def test_check__times_and_lengths() -> None:
    snapshot = a_snapshot()
    for change, message in (
        ({"now": math.nan}, "now is nan"),
        ({"now": 3.0}, "an event at 7 s"),
        ({"number": np.arange(3)}, "number has the shape"),
        (
            {"memory": dataclasses.replace(snapshot.memory, idle_since=np.zeros(5))},
            "memory.idle_since has the shape",
        ),
        (
            {"memory": dataclasses.replace(snapshot.memory, largest_estimate=5.0)},
            "memory.stated is missing",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            bl.decide(dataclasses.replace(snapshot, **change))


def test_decide__needs_a_scheduler_that_is_named() -> None:
    snapshot = dataclasses.replace(a_snapshot(), scheduler="")
    with pytest.raises(ConfigError, match="names no scheduler"):
        bl.decide(snapshot)
    assert bl.decide(snapshot, "sjf+easy").actions == ()
    with pytest.raises(ConfigError, match="simulator"):
        bl.decide(snapshot, "fcfs", simulator="natve")


def test_snapshot_of__decides_as_the_run_whose_records_it_is_given() -> None:
    cluster = bl.Cluster.uniform(nodes=8, gpus_per_node=8)
    jobs = bl.generate("synthetic", cluster=cluster, jobs=400, load=1.2, seed=5)
    result = bl.simulate(jobs, cluster, "sjf+easy@best-fit")
    compared = 0
    for at in np.unique(result.log.time)[100:600:25].tolist():
        state = result.snapshot(at)
        log, workload = state.log, state.workload
        unfinished = ~np.isin(np.arange(state.num_jobs), log.job[log.kind == FINISH])
        rows = np.flatnonzero(unfinished)
        running = {
            int(np.searchsorted(rows, log.job[row])): (float(log.time[row]), log.allocation(row))
            for row in np.flatnonzero(log.kind == START).tolist()
            if unfinished[log.job[row]]
        }
        known = bl.Workload.from_columns(
            submit=workload.submit[rows],
            run=np.full(len(rows), np.nan),
            gpus=workload.gpus[rows],
            estimate=workload.estimate[rows],
            rebase=False,
            of_snapshot=True,
        )
        live = bl.snapshot_of(known, cluster, at, running=running)
        decided = bl.decide(live, "sjf+easy@best-fit").starts
        expected = bl.decide(state).starts
        assert [(rows[one.job], one.gpus) for one in decided] == [
            (one.job, one.gpus) for one in expected
        ]
        compared += len(expected)
    assert compared > 5


@pytest.mark.parametrize(
    ("running", "down", "message"),
    [
        ({7: (0.0, {0: 1})}, (), "job 7 runs, but there is no such job"),
        ({0: (0.0, {})}, (), "job 0 runs on no node"),
        ({0: (0.0, {0: 4})}, (), "job 0 holds 4 GPUs"),
        ({0: (0.0, {0: 3}, 1)}, (), "job 0 has the shared GPU 1"),
        ({0: (0.0, {0: 3}), 1: (6.0, {0: 2})}, (), "5 GPUs are in use on node 0"),
        ({1: (1.0, {0: 2})}, (), "job 1: start without being submitted"),
        ({1: (11.0, {0: 2})}, (), "an event at 11 s"),
        ({1: (6.0, {9: 2})}, (), "node 9"),
        ({1: (6.0, {0: 2})}, (0,), "job 1 runs on node 0, which is down"),
        ({}, (4,), "node 4"),
    ],
)
def test_snapshot_of__contradictions(
    running: dict[int, Any], down: tuple[int, ...], message: str
) -> None:
    jobs = bl.Workload.from_columns(
        submit=[0.0, 5.0], run=[np.nan] * 2, gpus=[3, 2], rebase=False, of_snapshot=True
    )
    cluster = bl.Cluster.uniform(nodes=2, gpus_per_node=4)
    with pytest.raises(ConfigError, match=message):
        bl.snapshot_of(jobs, cluster, 10.0, running=running, down=down)
