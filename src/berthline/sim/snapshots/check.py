"""Whether a snapshot can be true: its rows follow from one another, and nothing is taken twice.

Snapshots come from disk and from live systems, whose answers may contradict each other.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import ConfigError
from berthline.model.schedule import (
    FALLBACK,
    FINISH,
    KINDS,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    REFUSE,
    REJECT,
    RESUME,
    START,
    SUBMIT,
    WHOLE_GPUS,
)
from berthline.model.snapshot import KIND_COLUMNS, PROGRESS_COLUMNS, USAGE_COLUMNS
from berthline.model.workload_rows import job_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from berthline.model.snapshot import Snapshot

_CHECKED = "_is_checked"
"""A snapshot does not change, so it is checked once. No field: a copy with changes has none."""

_BEGIN = len(KINDS)
"""Stands for the row before a job's first."""

_ROW_BITS = 32
"""A log has fewer rows than that many bits can count."""

_MAY_FOLLOW = np.zeros((len(KINDS) + 1, len(KINDS)), np.bool_)
"""Whether a row of a job may follow one of another kind. FALLBACK rows are before a start."""
for _before, _after in {
    _BEGIN: (SUBMIT,),
    SUBMIT: (REJECT, START, REFUSE, FALLBACK),
    START: (FINISH, PREEMPT),
    RESUME: (FINISH, PREEMPT),
    PREEMPT: (RESUME, REFUSE, FALLBACK, REJECT),
    REFUSE: (START, RESUME, REFUSE, FALLBACK, REJECT),
    FALLBACK: (START, RESUME, REFUSE, FALLBACK, REJECT),
}.items():
    _MAY_FOLLOW[_before, list(_after)] = True


def check_snapshot(snapshot: Snapshot) -> None:
    """Raise if a snapshot contradicts itself.

    Raises:
        ConfigError: it does; the error says what and where.
    """
    if snapshot.__dict__.get(_CHECKED):
        return
    _check_shapes(snapshot)
    _check_times(snapshot)
    _check_numbers(snapshot)
    last = _check_sequence(snapshot)
    _check_allocations(snapshot, last)
    object.__setattr__(snapshot, _CHECKED, True)


def _check_shapes(snapshot: Snapshot) -> None:
    """Raise if a column has the wrong length."""
    log, memory = snapshot.log, snapshot.memory
    jobs, nodes, users = snapshot.num_jobs, snapshot.cluster.num_nodes, len(memory.users)
    for name, found, allowed in (
        ("log.kind", log.kind.shape, [log.time.shape]),
        ("log.job", log.job.shape, [log.time.shape]),
        ("log.detail", log.detail.shape, [log.time.shape]),
        ("log.alloc_gpus", log.alloc_gpus.shape, [log.alloc_node.shape]),
        ("log.alloc_slot", log.alloc_slot.shape, [log.alloc_node.shape]),
        ("number", snapshot.number.shape, [(jobs,)]),
        ("memory.stated", memory.stated.shape, [(0,), (jobs,)]),
        ("memory.predicted", memory.predicted.shape, [(0,), (jobs,)]),
        ("memory.progress", memory.progress.shape, [(n, len(PROGRESS_COLUMNS)) for n in (0, jobs)]),
        ("memory.idle_since", memory.idle_since.shape, [(0,), (nodes,)]),
        ("memory.usage", memory.usage.shape, [(users, len(USAGE_COLUMNS))]),
        ("memory.kinds", memory.kinds.shape, [(len(memory.kinds), len(KIND_COLUMNS))]),
    ):
        if found not in allowed:
            raise _contradiction(
                f"{name} has the shape {found}", expected=" or ".join(map(str, allowed))
            )
    if not math.isnan(memory.largest_estimate) and len(memory.stated) != jobs:
        raise _contradiction("memory.stated is missing", expected="the estimate of every job")


def _check_times(snapshot: Snapshot) -> None:
    """Raise if time runs backwards, or rows are later than the instant."""
    time, submit, now = snapshot.log.time, snapshot.workload.submit, snapshot.now
    if not (math.isfinite(now) and now >= 0):
        raise _contradiction(f"now is {now}", expected="seconds, 0 or more")
    if not len(time):
        return
    back = np.flatnonzero(~(time[1:] >= time[:-1]))
    if len(back):
        row = int(back[0]) + 1
        raise _contradiction(
            f"time runs backwards, from {time[row - 1]:,.15g} to {time[row]:,.15g} s",
            where=f"log row {row}",
        )
    if not (time[0] >= 0 and time[-1] <= now):
        row = 0 if not time[0] >= 0 else len(time) - 1
        raise _contradiction(
            f"an event at {time[row]:,.15g} s",
            where=f"log row {row}",
            expected=f"times from 0 to {now:,.15g} s, the instant of the snapshot",
        )
    if len(submit) and not (submit[1:] >= submit[:-1]).all():
        raise _contradiction("jobs are not in the order of their submission", where="workload")


def _check_numbers(snapshot: Snapshot) -> None:
    """Raise if a row names a job, a node or an allocation that does not exist."""
    log, jobs, nodes = snapshot.log, snapshot.num_jobs, snapshot.cluster.num_nodes
    _check_range(log.kind, 0, len(KINDS), "event of kind", "log row")
    about_node = (log.kind == NODE_DOWN) | (log.kind == NODE_UP)
    job, node = log.job, log.detail[:0]
    if about_node.any():
        job = job[:0] if about_node.all() else np.where(about_node, 0, job)
        node = np.where(about_node, log.detail, 0)
    _check_range(job, 0, jobs, "job", "log row")
    _check_range(node, 0, nodes, "node", "log row")
    _check_range(log.alloc_node, 0, nodes, "node", "allocation")
    first = log.detail[log.is_start]
    if len(first) and (
        first[0] != 0 or first[-1] >= len(log.alloc_node) or not (first[1:] > first[:-1]).all()
    ):
        raise _contradiction(
            "starts and allocations do not belong together",
            where="log",
            expected="for each start, in order, the rows of its allocation",
        )


def _check_range(
    values: npt.NDArray[np.generic], low: int, high: int, what: str, where: str
) -> None:
    outside = (values < low) | (values >= high)  # type: ignore[operator]
    if outside.any():
        row = int(outside.argmax())
        expected = f"{low} to {high - 1}" if high else "none: there are none"
        raise _contradiction(f"{what} {values[row]}", where=f"{where} {row}", expected=expected)


def _check_sequence(snapshot: Snapshot) -> npt.NDArray[np.int64]:
    """Raise if a row cannot follow the one before about the same job.

    Returns:
        The last row about each job that is not FALLBACK.
    """
    log, workload = snapshot.log, snapshot.workload
    rows = np.flatnonzero((log.kind != NODE_DOWN) & (log.kind != NODE_UP))
    # By job, then by row: to sort such numbers takes a fifth of the time of a stable argsort.
    rows = np.sort((log.job[rows].astype(np.int64) << _ROW_BITS) | rows) & ((1 << _ROW_BITS) - 1)
    job, kind = log.job[rows], log.kind[rows]
    before = np.full(len(rows), _BEGIN, np.int64)
    if len(rows):
        same = job[1:] == job[:-1]
        before[1:][same] = kind[:-1][same]
    wrong = np.flatnonzero(~_MAY_FOLLOW[before, kind])
    if len(wrong):
        at = wrong[np.argmin(rows[wrong])]
        name, what = job_name(workload, int(job[at])), KINDS[kind[at]]
        after = "without being submitted" if before[at] == _BEGIN else f"after {KINDS[before[at]]}"
        raise _contradiction(f"job {name}: {what} {after}", where=f"log row {rows[at]}")
    last = np.full(snapshot.num_jobs, -1, np.int64)
    last[job] = rows
    missing = np.flatnonzero(last < 0)
    if len(missing):
        raise _contradiction(
            f"job {job_name(workload, int(missing[0]))} was never submitted",
            where="log",
            expected="a row `submit` for each job",
        )
    submits = np.flatnonzero(log.kind == SUBMIT)
    differ = submits[log.time[submits] != workload.submit[log.job[submits]]]
    if len(differ):
        row = int(differ[0])
        raise _contradiction(
            f"job {job_name(workload, int(log.job[row]))} was submitted at {log.time[row]:,.15g} s",
            where=f"log row {row}",
            expected=f"{workload.submit[log.job[row]]:,.15g} s, as in the workload",
        )
    return last


def _check_allocations(snapshot: Snapshot, last: npt.NDArray[np.int64]) -> None:
    """Raise if jobs hold more than there is, or hold something on a node that is down."""
    log, workload, cluster = snapshot.log, snapshot.workload, snapshot.cluster
    starts = np.flatnonzero(log.is_start)
    if not len(starts):
        return
    first = log.detail[starts]
    sizes = np.concatenate([first[1:], [len(log.alloc_node)]]) - first
    share_job = np.repeat(log.job[starts], sizes)
    given = np.add.reduceat(log.alloc_gpus, first)
    differ = np.flatnonzero(given != workload.gpus[log.job[starts]])
    if len(differ):
        row = int(starts[differ[0]])
        job = int(log.job[row])
        raise _contradiction(
            f"job {job_name(workload, job)} holds {given[differ[0]]} GPUs",
            where=f"log row {row}",
            expected=f"{workload.gpus[job]}, as it asks for",
        )
    runs = np.zeros(len(log), np.bool_)
    runs[last[log.is_start[last]]] = True
    held = np.repeat(runs[starts], sizes)
    node, job_on = log.alloc_node[held], share_job[held]
    gpus, slot = log.alloc_gpus[held], log.alloc_slot[held]
    milli = workload.gpu_milli[job_on]
    whole = slot == WHOLE_GPUS
    used = np.bincount(node[whole], weights=gpus[whole], minlength=cluster.num_nodes)
    if not whole.all():
        _check_parts(node[~whole], slot[~whole], milli[~whole])
        shared = np.unique(np.column_stack([node[~whole], slot[~whole]]), axis=0)[:, 0]
        used += np.bincount(shared, minlength=cluster.num_nodes)
    over = np.flatnonzero(used > cluster.gpus)
    if len(over):
        at = int(over[0])
        raise _too_many(used[at], at, cluster.gpus[at], where="log")
    if not runs[starts].all():
        _check_past(snapshot, starts, sizes)
    about_node = np.flatnonzero((log.kind == NODE_DOWN) | (log.kind == NODE_UP))
    if not len(about_node):
        return
    is_down = np.zeros(cluster.num_nodes, np.bool_)
    is_down[log.detail[about_node]] = log.kind[about_node] == NODE_DOWN
    on_down = np.flatnonzero(is_down[node])
    if len(on_down):
        at = int(on_down[0])
        raise _contradiction(
            f"job {job_name(workload, int(job_on[at]))} runs on node {node[at]}, which is down",
            where="log",
        )


def _check_past(
    snapshot: Snapshot, starts: npt.NDArray[np.intp], sizes: npt.NDArray[np.integer[Any]]
) -> None:
    """Raise if jobs have held more than there is at any row of the log.

    Args:
        snapshot: with starts of jobs that no longer run.
        starts: the rows of starts.
        sizes: of their allocations.
    """
    log, cluster = snapshot.log, snapshot.cluster
    stops = np.full(len(log), len(log))  # the row in which the job that starts stops
    rows = np.flatnonzero(log.is_start | (log.kind == FINISH) | (log.kind == PREEMPT))
    rows = rows[np.argsort(log.job[rows], kind="stable")]
    # After a start, the next of these rows of the job is its end.
    begins = log.is_start[rows[:-1]] & (log.job[rows[1:]] == log.job[rows[:-1]])
    stops[rows[:-1][begins]] = rows[1:][begins]
    begin, end = np.repeat(starts, sizes), np.repeat(stops[starts], sizes)
    job = log.job[begin]
    whole = log.alloc_slot == WHOLE_GPUS
    gpu = log.alloc_node.astype(np.int64) << _ROW_BITS | log.alloc_slot
    at, of, part = _in_use(
        gpu[~whole], begin[~whole], end[~whole], snapshot.workload.gpu_milli[job[~whole]]
    )
    worst = np.flatnonzero(part > 1000)
    if len(worst):
        row = worst[0]
        raise _contradiction(
            f"{part[row]:g} thousandths of the shared GPU {of[row] & ((1 << _ROW_BITS) - 1)} of"
            f" node {of[row] >> _ROW_BITS} are in use",
            where=f"log row {at[row]}",
            expected="at most 1000",
        )
    # A shared GPU is in use from a part's start on a free one to the end of its last part.
    before = np.zeros_like(part)
    before[1:] = np.where(of[1:] == of[:-1], part[:-1], 0)
    opens, closes = (before == 0) & (part > 0), (before > 0) & (part == 0)
    node = np.concatenate([log.alloc_node[whole], of[opens] >> _ROW_BITS])
    begin = np.concatenate([begin[whole], at[opens]])
    end = np.concatenate([end[whole], np.full(opens.sum(), len(log))])
    gpus = np.concatenate([log.alloc_gpus[whole], np.ones(opens.sum(), np.int64)])
    at, of, used = _in_use(
        np.concatenate([node, of[closes] >> _ROW_BITS]),
        np.concatenate([begin, at[closes]]),
        np.concatenate([end, np.full(closes.sum(), len(log))]),
        np.concatenate([gpus, np.full(closes.sum(), -1)]),
    )
    worst = np.flatnonzero(used > cluster.gpus[of])
    if len(worst):
        row = worst[np.argmin(at[worst])]
        raise _too_many(used[row], of[row], cluster.gpus[of[row]], where=f"log row {at[row]}")


def _in_use(
    what: npt.NDArray[np.int64],
    begin: npt.NDArray[np.int64],
    end: npt.NDArray[np.int64],
    amount: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return how much is in use after each row: the rows, of what, and the amounts.

    They are sorted by what, then by row.
    """
    row = np.concatenate([begin, end])
    of, change = np.concatenate([what, what]), np.concatenate([amount, -amount])
    order = np.lexsort((row, of))
    row, of, total = row[order], of[order], np.cumsum(change[order])
    last = np.ones(len(row), np.bool_)
    last[:-1] = (row[1:] != row[:-1]) | (of[1:] != of[:-1])
    # Everything taken is given back, so the sum over all that came before is 0.
    return row[last], of[last], total[last]


def _too_many(used: float, node: int, gpus: int, *, where: str) -> ConfigError:
    return _contradiction(
        f"{used:g} GPUs are in use on node {node}",
        where=where,
        expected=f"at most {gpus}, as the cluster has",
    )


def _check_parts(
    node: npt.NDArray[np.int32],
    slot: npt.NDArray[np.int32],
    milli: npt.NDArray[np.int32],
) -> None:
    """Raise if jobs hold more of a shared GPU than there is of it."""
    gpus, inverse = np.unique(np.column_stack([node, slot]), axis=0, return_inverse=True)
    used = np.bincount(inverse.reshape(-1), weights=milli)
    over = np.flatnonzero(used > 1000)
    if len(over):
        at = int(over[0])
        raise _contradiction(
            f"{used[at]:g} thousandths of the shared GPU {gpus[at, 1]} of node {gpus[at, 0]}"
            " are in use",
            where="log",
            expected="at most 1000",
        )


def _contradiction(what: str, *, where: str = "", expected: str = "") -> ConfigError:
    return ConfigError(
        f"the snapshot contradicts itself: {what}",
        where=f"snapshot, {where}" if where else "snapshot",
        expected=expected,
    )
