"""Schedule: the log's allocations, its table and its hash."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from berthline.errors import ConfigError
from berthline.model.schedule import (
    FALLBACK,
    FALLBACK_REASONS,
    FINISH,
    NO_JOB,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    PREEMPT_REASONS,
    REFUSE,
    REJECT,
    REJECT_REASONS,
    RESUME,
    START,
    SUBMIT,
    WHOLE_GPUS,
    Schedule,
)

# time, kind, job, detail; job 1 is rejected, job 0 runs on nodes 2 and 0, job 2 on node 1.
EVENTS = [
    (0.0, SUBMIT, 0, -1),
    (0.0, START, 0, 0),
    (1.0, SUBMIT, 1, -1),
    (1.0, REJECT, 1, 2),
    (2.0, SUBMIT, 2, -1),
    (3.5, FINISH, 0, -1),
    (3.5, START, 2, 2),
]
ALLOCATIONS = [(2, 8), (0, 3), (1, 1)]

# Job 0 moves from node 0 to nodes 1 and 2 when node 0 goes down; a start of job 1 is refused.
TROUBLE = [
    (0.0, SUBMIT, 0, -1),
    (0.0, START, 0, 0),
    (1.0, SUBMIT, 1, -1),
    (1.0, REFUSE, 1, -1),
    (2.0, NODE_DOWN, NO_JOB, 0),
    (2.0, PREEMPT, 0, 1),
    (2.0, RESUME, 0, 1),
    (4.0, NODE_UP, NO_JOB, 0),
    (5.0, FINISH, 0, -1),
]
TROUBLE_ALLOCATIONS = [(0, 2), (1, 1), (2, 1)]


def schedule(
    events: list[tuple[float, int, int, int]] = EVENTS,
    allocations: list[tuple[int, int]] = ALLOCATIONS,
) -> Schedule:
    time, kind, job, detail = np.array(events, dtype=float).reshape(-1, 4).T
    node, gpus = np.array(allocations, dtype=np.int32).reshape(-1, 2).T
    return Schedule(
        time=time,
        kind=kind.astype(np.uint8),
        job=job.astype(np.int32),
        detail=detail.astype(np.int32),
        alloc_node=node,
        alloc_gpus=gpus,
        alloc_slot=np.full(len(gpus), WHOLE_GPUS, dtype=np.int32),
        horizon=np.inf,
        decisions=4,
    )


def test_allocation__of_every_start() -> None:
    log = schedule()
    assert len(log) == 7
    assert log.allocation(1) == {2: 8, 0: 3}
    assert list(log.allocation(1)) == [2, 0], "nodes in the order in which they were taken"
    assert log.allocation(6) == {1: 1}


def test_frame__one_row_per_event() -> None:
    frame = schedule().frame()
    assert frame.schema == {
        "time": pl.Float64,
        "kind": pl.String,
        "job": pl.Int32,
        "nodes": pl.List(pl.Int32),
        "gpus": pl.List(pl.Int32),
        "reason": pl.String,
        "slots": pl.List(pl.Int32),
    }
    assert frame.rows() == [
        (0.0, "submit", 0, None, None, None, None),
        (0.0, "start", 0, [2, 0], [8, 3], None, None),
        (1.0, "submit", 1, None, None, None, None),
        (1.0, "reject", 1, None, None, REJECT_REASONS[2], None),
        (2.0, "submit", 2, None, None, None, None),
        (3.5, "finish", 0, None, None, None, None),
        (3.5, "start", 2, [1], [1], None, None),
    ]


def test_allocation__of_a_resume() -> None:
    log = schedule(TROUBLE, TROUBLE_ALLOCATIONS)
    assert log.allocation(1) == {0: 2}
    assert log.allocation(6) == {1: 1, 2: 1}
    assert np.flatnonzero(log.is_start).tolist() == [1, 6]


def test_frame__preemptions_and_nodes() -> None:
    assert schedule(TROUBLE, TROUBLE_ALLOCATIONS).frame().rows() == [
        (0.0, "submit", 0, None, None, None, None),
        (0.0, "start", 0, [0], [2], None, None),
        (1.0, "submit", 1, None, None, None, None),
        (1.0, "refuse", 1, None, None, None, None),
        (2.0, "node down", None, [0], [], None, None),
        (2.0, "preempt", 0, None, None, PREEMPT_REASONS[1], None),
        (2.0, "resume", 0, [1, 2], [1, 1], None, None),
        (4.0, "node up", None, [0], [], None, None),
        (5.0, "finish", 0, None, None, None, None),
    ]


def test_frame__every_preempt_reason() -> None:
    events = [(0.0, PREEMPT, code, code) for code in range(len(PREEMPT_REASONS))]
    assert schedule(events, []).frame()["reason"].to_list() == list(PREEMPT_REASONS)


def test_frame__every_fallback_reason() -> None:
    events = [(0.0, FALLBACK, code, code) for code in range(len(FALLBACK_REASONS))]
    log = schedule(events, [])
    assert log.frame()["reason"].to_list() == list(FALLBACK_REASONS)
    assert log.fallbacks == len(FALLBACK_REASONS)


def test_frame__shared_gpus() -> None:
    log = dataclasses.replace(schedule(), alloc_slot=np.array([-1, -1, 3], dtype=np.int32))
    assert log.frame()["slots"].to_list() == [None] * 6 + [[3]]
    log = dataclasses.replace(schedule(), alloc_slot=np.array([-1, 2, -1], dtype=np.int32))
    assert log.frame()["slots"].to_list() == [None, [None, 2], *[None] * 5]


def same(one: Schedule, other: Schedule) -> bool:
    return all(
        np.array_equal(getattr(one, field.name), getattr(other, field.name))
        and np.asarray(getattr(one, field.name)).dtype
        == np.asarray(getattr(other, field.name)).dtype
        for field in dataclasses.fields(Schedule)
    )


@pytest.mark.parametrize(
    ("events", "allocations"),
    [(EVENTS, ALLOCATIONS), (TROUBLE, TROUBLE_ALLOCATIONS), ([], []), (EVENTS[:1], [])],
    ids=["plain", "trouble", "empty", "one row"],
)
@pytest.mark.parametrize("slots", [False, True])
def test_from_frame__gives_the_log_again(
    events: list[tuple[float, int, int, int]], allocations: list[tuple[int, int]], slots: bool
) -> None:
    log = dataclasses.replace(schedule(events, allocations), horizon=9.5)
    if slots:
        numbers = np.arange(len(log.alloc_slot), dtype=np.int32) - 1
        log = dataclasses.replace(log, alloc_slot=numbers)
    again = Schedule.from_frame(log.frame(), horizon=9.5, decisions=4)
    assert same(again, log)
    assert again.sha256() == log.sha256()


def test_from_frame__other_tables_are_refused() -> None:
    frame = schedule().frame()
    with pytest.raises(ConfigError, match="no column 'slots'"):
        Schedule.from_frame(frame.drop("slots"))
    with pytest.raises(ConfigError, match="unknown columns"):
        Schedule.from_frame(frame.with_columns(extra=1))
    with pytest.raises(ConfigError, match="kind is 'began'"):
        Schedule.from_frame(frame.with_columns(pl.col("kind").replace("start", "began")))
    with pytest.raises(ConfigError, match="reason of a reject is None"):
        Schedule.from_frame(frame.with_columns(pl.lit(None, pl.String).alias("reason")))


def test_frame__every_reject_reason() -> None:
    events = [(0.0, REJECT, code, code) for code in range(len(REJECT_REASONS))]
    assert schedule(events, []).frame()["reason"].to_list() == list(REJECT_REASONS)


@pytest.mark.parametrize("events", [[], [(0.0, SUBMIT, 0, -1), (0.0, REJECT, 0, 0)]])
def test_frame__without_starts_has_the_same_columns(
    events: list[tuple[float, int, int, int]],
) -> None:
    frame = schedule(events, []).frame()
    assert frame.schema == schedule().frame().schema
    assert len(frame) == len(events)


def test_sha256__is_a_function_of_the_rows() -> None:
    assert schedule().sha256() == schedule().sha256()
    assert schedule([], []).sha256() == schedule([], []).sha256()
    assert len(schedule().sha256()) == 64


@pytest.mark.parametrize("column", ["time", "kind", "job", "detail", "alloc_node", "alloc_gpus"])
def test_sha256__changes_with_every_value_of_every_column(column: str) -> None:
    log = schedule()
    hashes = {log.sha256()}
    for row in range(len(getattr(log, column))):
        values = getattr(log, column).copy()
        values[row] += 1
        hashes.add(dataclasses.replace(log, **{column: values}).sha256())
    assert len(hashes) == 1 + len(getattr(log, column))


def test_sha256__sees_which_gpu_is_shared() -> None:
    log = schedule()
    hashes = {log.sha256()}
    for row in range(len(log.alloc_slot)):
        for slot in (0, 1):
            slots = log.alloc_slot.copy()
            slots[row] = slot
            hashes.add(dataclasses.replace(log, alloc_slot=slots).sha256())
    assert len(hashes) == 1 + 2 * len(log.alloc_slot)


def test_sha256__sees_the_last_bit_of_a_time() -> None:
    log = schedule()
    time = log.time.copy()
    time[-1] = np.nextafter(time[-1], 0.0)
    assert dataclasses.replace(log, time=time).sha256() != log.sha256()


def test_sha256__order_of_rows_counts() -> None:
    swapped = [EVENTS[0], EVENTS[2], EVENTS[1], *EVENTS[3:]]
    assert schedule(swapped).sha256() != schedule().sha256()


def test_sha256__does_not_depend_on_how_columns_are_stored() -> None:
    log = schedule()
    pairs = np.array(ALLOCATIONS, dtype=np.int32)
    strided = dataclasses.replace(
        log, alloc_node=pairs[:, 0], alloc_gpus=pairs[:, 1], job=log.job.astype(np.int64)
    )
    assert not strided.alloc_node.flags.c_contiguous
    assert strided.sha256() == log.sha256()
