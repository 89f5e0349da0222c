"""take_snapshot: the state of a run at an instant, from its log."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.changed_copy import changed_copy
from berthline.errors import ConfigError
from berthline.model.schedule import (
    FINISH,
    KINDS,
    NODE_DOWN,
    NODE_UP,
    NODE_WENT_DOWN,
    PREEMPT,
    REJECT,
    SUBMIT,
    Schedule,
)
from berthline.model.snapshot import NOTHING, OF_SEAT, RECENT_JOBS, RECENT_SECONDS, Memory, Snapshot
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.sim.inputs import failures_until, mix_sizes, prepare, stated_estimates
from berthline.sim.native import remember
from berthline.sim.policy_runner import policy_runner

if TYPE_CHECKING:
    from berthline.sim.simulate import Result

_IS_DUE = np.isin(np.arange(len(KINDS)), (FINISH, NODE_UP, NODE_DOWN, SUBMIT, REJECT))
"""Whether a row of each kind happens before the decision of its instant."""


def take_snapshot(result: Result, at: float, *, seat: dict[str, Any] | None = None) -> Snapshot:
    """Return the state of a run at an instant: its events have happened, its decision has not.

    Jobs that were over before are left out.

    Args:
        result: of the run.
        at: seconds on the clock of the run.
        seat: what the seat of an agent remembers (`PolicyRunner.remember`); None = that of the
            learned policy of the run, if it has one.

    Raises:
        ConfigError: the run does not reach that instant, or began after it.
    """
    workload, log, start = result.workload, result.log, result.start
    _check_instant(result, at)
    if start is not None and at == start.now:
        return start
    known = int(np.searchsorted(workload.submit, at, side="right"))
    before = count_before_decision(log, at)
    number = _numbers(start, known)
    whole = Snapshot(
        workload=_first_jobs(workload, known),
        cluster=result.cluster,
        log=_first_rows(log, before, at),
        now=at,
        number=number,
        scheduler=str(result.scheduler),
        knowledge=result.knowledge,
        seed=result.seed,
        memory=NOTHING if start is None else start.memory,
    )
    inputs = prepare(
        workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=None,
        start=whole,
        earlier=start,
    )
    found = remember(inputs, start)
    seat = _seat(result, at) if seat is None else seat
    found |= {name: seat[name] for name in ("decides", "timer") if seat}
    over = (log.kind == FINISH) | (log.kind == REJECT)
    is_kept = np.zeros(len(workload), np.bool_)
    is_kept[:known] = True
    is_kept[log.job[over & (log.time < at)]] = False
    kept = np.flatnonzero(is_kept)
    return Snapshot(
        workload=take_jobs(workload, kept),
        cluster=result.cluster,
        log=cut_log(log, _concerns(log, before, is_kept), kept, at),
        now=at,
        number=number[kept],
        decides=found["decides"],
        timer=found["timer"],
        scheduler=str(result.scheduler),
        knowledge=result.knowledge,
        seed=result.seed,
        memory=changed_copy(_memory(found, result, at, known, kept), **_of_kept(seat, kept)),
    )


def _check_instant(result: Result, at: float) -> None:
    first = 0.0 if result.start is None else result.start.now
    last = result.log.horizon
    if not math.isfinite(at) or not first <= at <= last:
        raise ConfigError(
            f"the run has no state at {at:,.15g} s",
            where="snapshot",
            expected=f"seconds from {first:,.15g}, where the run begins"
            + (f", to {last:,.15g}, its horizon" if math.isfinite(last) else ""),
        )


def _numbers(start: Snapshot | None, known: int) -> npt.NDArray[np.int64]:
    """Return the number of each known job; see `Snapshot.number`."""
    if start is None:
        return np.arange(known)
    first = start.memory.jobs + start.num_jobs
    return np.concatenate([start.number, np.arange(first, first + known - start.num_jobs)])


def _seat(result: Result, at: float) -> dict[str, Any]:
    """Return what the seat of a learned policy remembers; empty = nothing."""
    if result.scheduler.learned is None:
        return {}
    return policy_runner().remember(
        result.scheduler.learned,
        result.workload,
        result.cluster,
        knowledge=result.knowledge,
        seed=result.seed,
        at=at,
        start=result.start,
    )


def _of_kept(seat: dict[str, Any], kept: npt.NDArray[np.int64]) -> dict[str, Any]:
    """Return what a seat remembers of the kept jobs; it knows none that is submitted just now."""
    if not seat:
        return {}
    of_kept = {name: seat[name] for name in OF_SEAT}
    for name in ("holds", "held_until", "checked_again"):
        column = seat[name]
        if len(column):
            more = int(kept[-1]) + 1 - len(column) if len(kept) else 0
            of_kept[name] = np.pad(column, (0, max(more, 0)))[kept]
    holders = seat["gpu_holders"]
    of_kept["gpu_holders"] = np.where(holders < 0, holders, np.searchsorted(kept, holders)).astype(
        np.int32
    )
    if seat["committed"] >= 0:
        of_kept["committed"] = int(np.searchsorted(kept, seat["committed"]))
    return of_kept


def count_before_decision(log: Schedule, at: float) -> int:
    """Return how many rows are before the first decision of an instant; they come first.

    An instant has a second decision if a job that starts is over at once: its run time is too short
    to change the clock.
    """
    first, last = np.searchsorted(log.time, at, side="left"), np.searchsorted(log.time, at, "right")
    kind = log.kind[first:last]
    by_failure = (kind == PREEMPT) & (log.detail[first:last] == NODE_WENT_DOWN)
    decided = np.flatnonzero(~(_IS_DUE[kind] | by_failure))
    return int(first + decided[0]) if len(decided) else int(last)


def _first_jobs(workload: Workload, count: int) -> Workload:
    """Return the first jobs of a workload, which shares its columns."""
    return workload if count == len(workload) else take_jobs(workload, slice(count))


def _first_rows(log: Schedule, count: int, horizon: float) -> Schedule:
    """Return the first rows of a log, which shares its columns."""
    starts = log.detail[count:][log.is_start[count:]]
    shares = int(starts[0]) if len(starts) else len(log.alloc_node)
    return Schedule(
        time=log.time[:count],
        kind=log.kind[:count],
        job=log.job[:count],
        detail=log.detail[:count],
        alloc_node=log.alloc_node[:shares],
        alloc_gpus=log.alloc_gpus[:shares],
        alloc_slot=log.alloc_slot[:shares],
        horizon=horizon,
        decisions=0,
    )


def _concerns(log: Schedule, before: int, is_kept: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return the rows about kept jobs, and the last row about each node that is down.

    Args:
        log: the log.
        before: how many rows there are to choose from, from the first on.
        is_kept: of each job.
    """
    concerns = np.zeros(len(log), np.bool_)
    # Rows about nodes have the job -1: the last entry.
    concerns[:before] = np.append(is_kept, False)[log.job[:before]]
    kind = log.kind[:before]
    last: dict[int, int] = {}
    for row in np.flatnonzero((kind == NODE_DOWN) | (kind == NODE_UP)).tolist():
        last[int(log.detail[row])] = row
    concerns[[row for row in last.values() if log.kind[row] == NODE_DOWN]] = True
    return concerns


def cut_log(
    log: Schedule, rows: npt.NDArray[np.bool_], jobs: npt.NDArray[np.int64], horizon: float
) -> Schedule:
    """Return some rows of a log as a log, with allocations and ids of jobs of their own.

    Args:
        log: the log.
        rows: which rows.
        jobs: the ids of the jobs that the rows are about, ascending.
        horizon: of the new log.
    """
    starts = np.flatnonzero(log.is_start)
    first = log.detail[starts]
    last = np.append(first[1:], len(log.alloc_node))
    is_cut = rows[starts]
    sizes = (last - first)[is_cut]
    shares = np.repeat(first[is_cut], sizes) + _counted(sizes)
    detail = log.detail[rows].copy()
    detail[log.is_start[rows]] = np.cumsum(sizes) - sizes
    job = log.job[rows]
    return Schedule(
        time=log.time[rows],
        kind=log.kind[rows],
        job=np.where(job < 0, job, np.searchsorted(jobs, job)).astype(np.int32),
        detail=detail,
        alloc_node=np.ascontiguousarray(log.alloc_node[shares]),
        alloc_gpus=np.ascontiguousarray(log.alloc_gpus[shares]),
        alloc_slot=np.ascontiguousarray(log.alloc_slot[shares]),
        horizon=horizon,
        decisions=0,
    )


def _counted(sizes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return 0, 1, ... up to each size."""
    total = int(sizes.sum())
    counted: npt.NDArray[np.int64] = np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return counted


def take_jobs(workload: Workload, jobs: npt.NDArray[np.int64] | slice) -> Workload:
    """Return some jobs of a workload, by id, on the same clock."""
    columns = {
        field.name: getattr(workload, field.name)[jobs]
        for field in dataclasses.fields(workload)
        if isinstance(getattr(workload, field.name), np.ndarray)
    }
    ids = np.arange(len(workload))[jobs] if isinstance(jobs, slice) else jobs
    history = workload.history and workload.history.take(ids)
    return changed_copy(workload, **columns, history=history)


def _memory(
    found: dict[str, Any],
    result: Result,
    at: float,
    known: int,
    kept: npt.NDArray[np.int64],
) -> Memory:
    """Return what no row about the kept jobs says.

    Args:
        found: what `remember` returned.
        result: of the run.
        at: the instant.
        known: how many of its jobs have been submitted.
        kept: the jobs that are not left out.
    """
    workload, conditions = result.workload, result.cluster.conditions
    earlier = NOTHING if result.start is None else result.start.memory
    old = 0 if result.start is None else result.start.num_jobs
    submitted = workload.submit[:known]
    before = earlier.submissions if len(earlier.submissions) else submitted[:old]
    submissions = np.concatenate([before, submitted[old:]])
    is_recent = submissions > at - RECENT_SECONDS
    is_recent[max(len(submissions) - RECENT_JOBS, 0) :] = True
    # Equal times are equal jobs here: only how many there are matters.
    is_recent[np.searchsorted(submissions, submitted[kept])] = True
    estimate = workload.estimate[:known]
    shares = bool((workload.gpu_milli < WHOLE_GPU).any()) and conditions.interference > 0
    has_speeds = shares or np.isfinite(conditions.sleep_after) or bool(len(earlier.progress))
    # Users without a job in this run may come back in another that continues it.
    absent = ~np.isin(earlier.users, found["users"])
    users = np.concatenate([earlier.users[absent], found["users"]])
    usage = np.vstack([earlier.usage[absent], found["usage"]])
    largest = np.fmax(earlier.largest_estimate, np.fmax.reduce(estimate, initial=np.nan))
    return Memory(
        jobs=earlier.jobs + known - len(kept),
        submissions=submissions[is_recent],
        stated=np.zeros(0) if math.isnan(largest) else stated_estimates(workload, earlier)[kept],
        largest_estimate=float(largest),
        max_priority=max(earlier.max_priority, float(found["max_priority"])),
        predicted=found["predicted"][kept],
        progress=found["progress"][kept] if has_speeds else np.zeros((0, 6)),
        idle_since=found["idle_since"],
        users=users.astype(np.int32),
        usage=usage,
        gittins=np.stack(
            [found["gittins_count"], found["gittins_gpu_seconds"], found["gittins_index"]]
        ),
        gittins_finished=found["gittins_finished"],
        gittins_next_update=found["gittins_next_update"],
        kinds=_kinds(result, known),
        failures_until=failures_until(workload, earlier),
    )


def _kinds(result: Result, known: int) -> npt.NDArray[np.int64]:
    """Return KIND_COLUMNS of the jobs submitted so far."""
    workload = result.workload
    old, left_out, past = 0, 0, NOTHING.kinds
    if result.start is not None and len(result.start.memory.kinds):
        old, left_out = result.start.num_jobs, result.start.memory.jobs
        past = result.start.memory.kinds
    columns = (
        workload.gpus,
        workload.gpu_milli,
        workload.cpus,
        workload.memory_mib,
        workload.pool,
        workload.gpu_types,
    )
    new = np.stack([column[old:known].astype(np.int64) for column in columns], axis=1)
    unique, kind = _unique_rows(np.vstack([past[:, :6], new]))
    was, kind = np.split(kind, [len(past)])
    size = len(unique)

    def counted(weights: npt.NDArray[np.int64], jobs: int) -> npt.NDArray[np.int64]:
        before = np.bincount(was, weights=weights, minlength=size).astype(np.int64)
        return before + np.bincount(kind[:jobs], minlength=size)

    submitted = left_out + known
    in_mix = mix_sizes(submitted)[-1] if submitted else 0
    is_new = in_mix > left_out + old  # the mix in use counts some of the new jobs
    mix = counted(past[:, 6], in_mix - left_out - old) if is_new else counted(past[:, 7], 0)
    return np.column_stack([unique, counted(past[:, 6], len(kind)), mix])


def _unique_rows(
    table: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return what `np.unique(table, axis=0, return_inverse=True)` does, some ten times as fast."""
    weights = _weights(table) if len(table) else None
    if weights is not None:
        # One number stands for each row.
        code = (table - table.min(axis=0)) @ weights
        first, kind = np.unique(code, return_index=True, return_inverse=True)[1:]
        return table[first], kind
    code = np.zeros(len(table), np.int64)
    for column in table.T:
        values, rank = np.unique(column, return_inverse=True)
        # Ranks of what was seen so far stay below the number of rows, so codes cannot overflow.
        code = np.unique(code * max(len(values), 1) + rank, return_inverse=True)[1]
    first, kind = np.unique(code, return_index=True, return_inverse=True)[1:]
    return table[first], kind


def _weights(table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | None:
    """Return the weight of each column in a number for a row that keeps the order of the rows.

    Returns:
        None: such numbers would be too large.
    """
    lowest: list[int] = table.min(axis=0).tolist()
    highest: list[int] = table.max(axis=0).tolist()
    weights, weight = [], 1
    for low, high in zip(reversed(lowest), reversed(highest), strict=True):
        weights.append(weight)
        weight *= high - low + 1
    return np.array(weights[::-1], np.int64) if weight < 2**62 else None
