"""Changes of a snapshot that no scheduler makes: jobs that are hidden from it, starts from outside.

A held job is left out of the state in which the native scheduler decides. Its rows are kept
apart and put back when it is released or started.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.schedule import (
    NODE_DOWN,
    NODE_WENT_DOWN,
    PREEMPT,
    START,
    SUBMIT,
    WHOLE_GPUS,
    Schedule,
)
from berthline.sim.snapshots.take import cut_log, take_jobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from berthline.model.snapshot import Memory, Snapshot
    from berthline.model.workload import Workload

_PER_JOB = ("stated", "predicted", "progress")
"""Columns of Memory with a row for each job."""
_FORGOTTEN = ("kinds", "submissions")
"""What only few words of native schedulers need: it follows from the rows again."""


def add_row(
    log: Schedule, now: float, kind: int, job: int, *, detail: int = -1, gpus: Mapping[int, int]
) -> Schedule:
    """Return a log with one more row, at its end.

    Args:
        log: the log.
        now: the time of the row.
        kind: its kind.
        job: its job.
        detail: as in Schedule; ignored for a start.
        gpus: of a start: GPUs on each node.
    """
    detail = len(log.alloc_node) if gpus else detail
    return dataclasses.replace(
        log,
        time=np.append(log.time, now),
        kind=np.append(log.kind, np.uint8(kind)),
        job=np.append(log.job, np.int32(job)),
        detail=np.append(log.detail, np.int32(detail)),
        alloc_node=np.append(log.alloc_node, np.array(list(gpus), np.int32)),
        alloc_gpus=np.append(log.alloc_gpus, np.array(list(gpus.values()), np.int32)),
        alloc_slot=np.append(log.alloc_slot, np.full(len(gpus), WHOLE_GPUS, np.int32)),
        horizon=now,
    )


def without_job(state: Snapshot, row: int) -> tuple[Snapshot, Schedule]:
    """Return a state without one of its jobs, and the rows about that job (as job 0)."""
    log = state.log
    of_job = log.job == row
    others = np.delete(np.arange(state.num_jobs), row)
    stash = _without_moments(cut_log(log, of_job, np.array([row]), state.now), state.now)
    memory = _without(state.memory, row)
    changed = dataclasses.replace(
        state,
        workload=take_jobs(state.workload, others),
        log=cut_log(log, ~of_job, others, state.now),
        number=state.number[others],
        memory=memory,
    )
    return changed, stash


def with_job(
    state: Snapshot, jobs: Workload, number: int, stash: Schedule | None
) -> tuple[Snapshot, int]:
    """Return a state with one more job, and its row in the state.

    Args:
        state: the state.
        jobs: all jobs; a job's number is its row there.
        number: of the job.
        stash: the rows about it; None = it was submitted, and nothing more.
    """
    numbers = np.sort(np.append(state.number, number))
    row = int(np.searchsorted(numbers, number))
    submit = float(jobs.submit[number])
    if stash is None:
        none = np.zeros(0, np.int32)
        stash = Schedule(
            time=np.array([submit]),
            kind=np.array([SUBMIT], np.uint8),
            job=np.zeros(1, np.int32),
            detail=np.full(1, -1, np.int32),
            alloc_node=none,
            alloc_gpus=none,
            alloc_slot=none,
            horizon=state.now,
            decisions=0,
        )
    log = state.log
    moved = dataclasses.replace(log, job=np.where(log.job >= row, log.job + 1, log.job))
    own = dataclasses.replace(stash, job=np.full(len(stash), row, np.int32))
    changed = dataclasses.replace(
        state,
        workload=take_jobs(jobs, numbers),
        log=merged(moved, own, state.now),
        number=numbers,
        memory=_with(state.memory, row, float(jobs.estimate[number])),
    )
    return changed, row


def merged(first: Schedule, second: Schedule, horizon: float) -> Schedule:
    """Return the rows of a log and of one job by time.

    At equal times the job stops before others start, and right after the failure of its node, and
    starts after everything else: so nothing is taken twice on the way.
    """
    places = np.concatenate([np.arange(len(first), dtype=np.float64), _places(first, second)])
    order = np.argsort(places, kind="stable")

    def column(name: str) -> npt.NDArray[Any]:
        both: npt.NDArray[Any] = np.concatenate([getattr(first, name), getattr(second, name)])
        found: npt.NDArray[Any] = both[order]
        return found

    kind, job = column("kind"), column("job")
    offsets = np.concatenate(
        [first.detail, np.where(second.is_start, second.detail + len(first.alloc_node), -1)]
    )
    is_start = np.concatenate([first.is_start, second.is_start])
    ends = np.append(np.sort(offsets[is_start])[1:], len(first.alloc_node) + len(second.alloc_node))
    detail = np.concatenate([first.detail, second.detail])[order]
    starts = offsets[order][is_start[order]]
    sizes = ends[np.searchsorted(np.sort(starts), starts)] - starts
    detail[is_start[order]] = np.cumsum(sizes) - sizes
    shares = np.concatenate(
        [np.arange(begin, begin + size) for begin, size in zip(starts, sizes, strict=True)]
        or [np.zeros(0, np.int64)]
    )

    def allocation(name: str) -> npt.NDArray[Any]:
        both: npt.NDArray[Any] = np.concatenate([getattr(first, name), getattr(second, name)])
        found: npt.NDArray[Any] = both[shares]
        return found

    return Schedule(
        time=column("time"),
        kind=kind,
        job=job.astype(np.int32),
        detail=detail.astype(np.int32),
        alloc_node=allocation("alloc_node"),
        alloc_gpus=allocation("alloc_gpus"),
        alloc_slot=allocation("alloc_slot"),
        horizon=horizon,
        decisions=0,
    )


def _places(first: Schedule, second: Schedule) -> npt.NDArray[np.float64]:
    """Return where the rows of one job belong, as positions between the rows of a log."""
    places = np.searchsorted(first.time, second.time, side="right").astype(np.float64) - 0.5
    nodes: dict[int, int] = {}
    for row in range(len(second)):
        if second.is_start[row]:
            nodes = second.allocation(row)
        elif second.kind[row] == PREEMPT:
            has_failed = second.detail[row] == NODE_WENT_DOWN
            at = int(np.searchsorted(first.time, second.time[row]))
            while at < len(first) and first.time[at] == second.time[row]:
                fell = first.kind[at] == NODE_DOWN and int(first.detail[at]) in nodes
                if first.is_start[at] or (fell and has_failed):
                    places[row] = at + (0.5 if fell else -0.5)
                    break
                at += 1
    return places


def _without_moments(stash: Schedule, now: float) -> Schedule:
    """Return the rows of a job without a run that ended when it began."""
    starts = np.flatnonzero(stash.is_start)
    ends = np.minimum(starts + 1, len(stash) - 1)
    over = (stash.kind[ends] == PREEMPT) & (stash.time[ends] == stash.time[starts])
    kept = np.ones(len(stash), np.bool_)
    kept[starts[over]] = kept[ends[over]] = False
    if kept.all():
        return stash
    found = cut_log(stash, kept, np.array([0]), now)
    first = np.flatnonzero(found.is_start)[:1]
    found.kind[first] = START
    return found


def _without(memory: Memory, row: int) -> Memory:
    changes: dict[str, Any] = {name: getattr(memory, name)[:0] for name in _FORGOTTEN}
    for name in _PER_JOB:
        column = getattr(memory, name)
        if len(column):
            changes[name] = np.delete(column, row, axis=0)
    return dataclasses.replace(memory, **changes)


def _with(memory: Memory, row: int, estimate: float) -> Memory:
    changes: dict[str, Any] = {name: getattr(memory, name)[:0] for name in _FORGOTTEN}
    if not np.isnan(memory.largest_estimate):  # else what estimates stand for follows from rows
        stands = memory.largest_estimate if np.isnan(estimate) else estimate
        changes["stated"] = np.insert(memory.stated, row, stands)
        changes["largest_estimate"] = max(memory.largest_estimate, stands)
    if len(memory.predicted):
        changes["predicted"] = np.insert(memory.predicted, row, estimate)
    if len(memory.progress):
        changes["progress"] = np.insert(memory.progress, row, 0.0, axis=0)
    return dataclasses.replace(memory, **changes)
