"""take_snapshot: the state of a run at an instant, from its log."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    NODE_WENT_DOWN,
    PREEMPT,
    REJECT,
    SUBMIT,
    Schedule,
)
from berthline.model.snapshot import OF_SEAT, RECENT_JOBS, RECENT_SECONDS, Memory, Snapshot
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.sim.inputs import failures_until, mix_sizes, prepare, stated_so_far
from berthline.sim.native import remember
from berthline.sim.policy_runner import policy_runner

if TYPE_CHECKING:
    from berthline.sim.simulate import Result

_DUE = (FINISH, NODE_UP, NODE_DOWN, SUBMIT, REJECT)


def take_snapshot(
    result: Result,
    at: float,
    *,
    horizon: float | None = None,
    seat: dict[str, Any] | None = None,
) -> Snapshot:
    """Return the state of a run at an instant: its events have happened, its decision has not.

    Jobs that were over before are left out.

    Args:
        result: of the run.
        at: seconds on the clock of the run.
        horizon: of the run, if it had one; it decides until when nodes fail at random.
        seat: what the seat of an agent remembers (`PolicyRunner.remember`); None = that of the
            learned policy of the run, if it has one.
    """
    workload, log = result.workload, result.log
    known = int(np.searchsorted(workload.submit, at, side="right"))
    rows = rows_before_decision(log, at)
    whole = Snapshot(
        workload=take_jobs(workload, np.arange(known)),
        cluster=result.cluster,
        log=cut_log(log, rows, np.arange(len(workload)), at),
        now=at,
        number=np.arange(known),
        scheduler=str(result.scheduler),
        knowledge=result.knowledge,
        seed=result.seed,
    )
    inputs = prepare(
        workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=horizon,
        start=whole,
    )
    found = remember(inputs)
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
        log=cut_log(log, rows & _concerns(log, rows, is_kept), kept, at),
        now=at,
        number=kept.astype(np.int64),
        decides=found["decides"],
        timer=found["timer"],
        scheduler=str(result.scheduler),
        knowledge=result.knowledge,
        seed=result.seed,
        memory=dataclasses.replace(
            _memory(found, workload, known, kept, at, result, horizon), **_of_kept(seat, kept)
        ),
    )


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
    of_kept["gpu_holders"] = np.where(
        holders < 0, holders, np.searchsorted(kept, holders)
    ).astype(np.int32)
    if seat["committed"] >= 0:
        of_kept["committed"] = int(np.searchsorted(kept, seat["committed"]))
    return of_kept


def rows_before_decision(log: Schedule, at: float) -> npt.NDArray[np.bool_]:
    """Return which rows are before the decision of an instant."""
    by_failure = (log.kind == PREEMPT) & (log.detail == NODE_WENT_DOWN)
    due = np.isin(log.kind, _DUE) | by_failure
    rows: npt.NDArray[np.bool_] = (log.time < at) | ((log.time == at) & due)
    return rows


def _concerns(
    log: Schedule, rows: npt.NDArray[np.bool_], is_kept: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Return the rows about kept jobs, and the last row about each node that is down."""
    about_node = (log.kind == NODE_DOWN) | (log.kind == NODE_UP)
    concerns: npt.NDArray[np.bool_] = ~about_node & is_kept[log.job]
    last: dict[int, int] = {}
    for row in np.flatnonzero(rows & about_node).tolist():
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
    return np.arange(total) - np.repeat(np.cumsum(sizes) - sizes, sizes)


def take_jobs(workload: Workload, jobs: npt.NDArray[np.int64]) -> Workload:
    """Return some jobs of a workload, by id, on the same clock."""
    columns = {
        field.name: getattr(workload, field.name)[jobs]
        for field in dataclasses.fields(workload)
        if isinstance(getattr(workload, field.name), np.ndarray)
    }
    history = workload.history and workload.history.take(jobs)
    return dataclasses.replace(workload, **columns, history=history)


def _memory(
    found: dict[str, Any],
    workload: Workload,
    known: int,
    kept: npt.NDArray[np.int64],
    at: float,
    result: Result,
    horizon: float | None,
) -> Memory:
    """Return what no row about the kept jobs says."""
    conditions = result.cluster.conditions
    is_recent = workload.submit[:known] > at - RECENT_SECONDS
    is_recent[max(known - RECENT_JOBS, 0) :] = True
    is_recent[kept] = True
    estimate = workload.estimate[:known]
    shares = bool((workload.gpu_milli < WHOLE_GPU).any()) and conditions.interference > 0
    has_speeds = shares or np.isfinite(conditions.sleep_after)
    return Memory(
        jobs=known - len(kept),
        submissions=workload.submit[:known][is_recent],
        stated=np.zeros(0) if np.isnan(estimate).all() else stated_so_far(estimate)[kept],
        largest_estimate=float(np.fmax.reduce(estimate, initial=np.nan)),
        max_priority=max(1.0, float(found["max_priority"])),
        predicted=found["predicted"][kept],
        progress=found["progress"][kept] if has_speeds else np.zeros((0, 6)),
        idle_since=found["idle_since"],
        users=found["users"],
        usage=found["usage"],
        gittins=np.stack(
            [found["gittins_count"], found["gittins_gpu_seconds"], found["gittins_index"]]
        ),
        gittins_finished=found["gittins_finished"],
        gittins_next_update=found["gittins_next_update"],
        kinds=_kinds(workload, known),
        failures_until=failures_until(workload, horizon),
    )


def _kinds(workload: Workload, known: int) -> npt.NDArray[np.int64]:
    """Return KIND_COLUMNS of the jobs submitted so far."""
    columns = (
        workload.gpus,
        workload.gpu_milli,
        workload.cpus,
        workload.memory_mib,
        workload.pool,
        workload.gpu_types,
    )
    kinds = np.stack([column[:known].astype(np.int64) for column in columns], axis=1)
    unique, kind = np.unique(kinds, axis=0, return_inverse=True)
    kind = kind.reshape(-1)
    in_mix = mix_sizes(known)[-1] if known else 0
    counts = [np.bincount(kind[:jobs], minlength=len(unique)) for jobs in (known, in_mix)]
    return np.column_stack([unique, *counts]).astype(np.int64)
