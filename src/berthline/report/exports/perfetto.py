"""Perfetto: a run as a trace in Chrome's trace event format, which Perfetto's UI opens.

A process is a node, and a thread is one of its GPUs. Each stretch of a job is a slice on each of
its GPUs; the first has the details of the job. Shared GPUs have a thread for each part. The process
`cluster` has counters (queue, free GPUs, fragmentation) and instants for rejected jobs; nodes have
instants for failures; a flow leads from each preemption to the resume.

Times are whole microseconds since the zero of the workload's clock. Events are in order of time and
are written one by one: only the log and columns of its length are held in memory.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.atomic_write import open_atomically
from berthline.evaluate.metrics.gpu_numbers import NO_GPU, WHOLE, GpuNumbers, gpu_numbers
from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.stretches import Stretches, stretches
from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    PREEMPT,
    PREEMPT_REASONS,
    REFUSE,
    REJECT,
    REJECT_REASONS,
    SUBMIT,
)
from berthline.model.workload_rows import job_name

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from berthline.sim.simulate import Result

CLUSTER_PID = 1
FIRST_NODE_PID = 2
_EVENTS_TID = 1  # of the process `cluster`

Event = dict[str, Any]


def write_perfetto(
    result: Result,
    path: str | os.PathLike[str],
    *,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write a run as a trace, replacing the file if it exists; gzipped if its name ends in .gz.

    Args:
        result: the run.
        path: the file.
        progress: called repeatedly with the rows of the log written so far and their total.

    Returns:
        The number of events written.

    Raises:
        OutputError: the file cannot be written.
    """
    encoder = msgspec.json.Encoder()
    count = 0
    with open_atomically(path) as file:
        about = {
            "scheduler": str(result.scheduler),
            "workload": result.workload.name,
            "cluster": result.cluster.name,
            "knowledge": result.knowledge,
            "seed": result.seed,
        }
        head = b'{"displayTimeUnit":"ms","otherData":' + encoder.encode(about)
        file.write(head + b',"traceEvents":[')
        for event in events(result, progress):
            file.write(b",\n" if count else b"\n")
            file.write(encoder.encode(event))
            count += 1
        file.write(b"\n]}\n")
    return count


def events(result: Result, progress: Callable[[int, int], None] | None = None) -> Iterator[Event]:
    """Yield the events of a run: the names of tracks, then everything in order of time."""
    tracks = _Tracks(result)
    yield from tracks.names()
    late: list[tuple[int, int, Event]] = []  # starts of flows, due just before a slice ends
    number = 0
    for time, event in _timed(result, tracks, progress):
        while late and late[0][0] <= time:
            yield heapq.heappop(late)[2]
        if event["ph"] == "s":
            heapq.heappush(late, (event["ts"], number, event))
            number += 1
        else:
            yield event
    while late:
        yield heapq.heappop(late)[2]


def microseconds(seconds: float) -> int:
    """Return a time in the unit of the trace."""
    return round(seconds * 1e6)


class _Tracks:
    """The threads of the trace; their numbers are unique across processes."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.numbers: GpuNumbers = gpu_numbers(result.log, result.cluster)
        # Each GPU has a thread; parts of GPUs, and jobs without GPUs, have additional ones.
        self.tids: dict[tuple[int, int, int], int] = {}
        columns = (self.numbers.node, self.numbers.gpu, self.numbers.part)
        used = np.unique(np.stack(columns), axis=1).T.tolist() if len(columns[0]) else []
        every = {
            (node, gpu, WHOLE)
            for node, gpus in enumerate(result.cluster.gpus.tolist())
            for gpu in range(gpus)
        }
        for track in sorted(every | {(node, gpu, part) for node, gpu, part in used}):
            self.tids[track] = _EVENTS_TID + 1 + len(self.tids)

    def names(self) -> Iterator[Event]:
        """Yield the names and the order of processes and threads."""
        cluster = self.result.cluster
        yield from _named("process", CLUSTER_PID, None, "cluster", 0)
        yield from _named("thread", CLUSTER_PID, _EVENTS_TID, "events", 0)
        for node in range(cluster.num_nodes):
            kind = cluster.types[cluster.gpu_type[node]].name
            pool = "" if cluster.pool[node] < 0 else f", {cluster.pool_names[cluster.pool[node]]}"
            name = f"node {node} ({kind}{pool})"
            yield from _named("process", FIRST_NODE_PID + node, None, name, node + 1)
        for (node, gpu, part), tid in self.tids.items():
            name = f"GPU {gpu}" if part == WHOLE else f"GPU {gpu} part {part}"
            if gpu == NO_GPU:
                name = f"no GPU {part}"
            yield from _named("thread", FIRST_NODE_PID + node, tid, name, tid)


def _named(what: str, pid: int, tid: int | None, name: str, place: int) -> Iterator[Event]:
    thread = {} if tid is None else {"tid": tid}
    for key, args in (("name", {"name": name}), ("sort_index", {"sort_index": place})):
        yield {"ph": "M", "name": f"{what}_{key}", "pid": pid, **thread, "args": args}


def _timed(
    result: Result, tracks: _Tracks, progress: Callable[[int, int], None] | None
) -> Iterator[tuple[int, Event]]:
    """Yield events with their times, in order except for the starts of flows."""
    log, workload = result.log, result.workload
    ran = stretches(log, job_table(log, workload))
    slices = _Slices(result, tracks, ran)
    counters = _Counters(result)
    kinds, jobs, details = log.kind.tolist(), log.job.tolist(), log.detail.tolist()
    times = log.time.tolist()
    is_start = log.is_start.tolist()
    stretch = 0
    for row, (time, kind, job, detail) in enumerate(zip(times, kinds, jobs, details, strict=True)):
        ts = microseconds(time)
        if is_start[row]:
            for event in slices.of(stretch):
                yield ts, event
            counters.take(slices, stretch, -1)
            stretch += 1
        elif kind in (FINISH, PREEMPT):
            counters.take(slices, slices.stretch_of[job], +1)
        elif kind == REJECT:
            text = f"rejected: job {job_name(workload, job)}"
            why = {"job": job, "reason": REJECT_REASONS[detail]}
            yield ts, _instant(ts, CLUSTER_PID, _EVENTS_TID, text, why)
        elif kind == REFUSE:
            text = f"start refused: job {job_name(workload, job)}"
            yield ts, _instant(ts, CLUSTER_PID, _EVENTS_TID, text, {"job": job})
        elif kind in (NODE_DOWN, NODE_UP):
            counters.turn(detail, up=kind == NODE_UP)
            name = "node up" if kind == NODE_UP else "node down"
            tid = tracks.tids[detail, 0, WHOLE]
            yield ts, _instant(ts, FIRST_NODE_PID + detail, tid, name, {"node": detail})
        counters.queue += {SUBMIT: 1, REJECT: -1, PREEMPT: 1}.get(kind, -1 if is_start[row] else 0)
        if row + 1 == len(times) or times[row + 1] != time:
            for event in counters.changed(ts):
                yield ts, event
        if progress is not None and row % 10_000 == 0:
            progress(row, len(times))


def _instant(ts: int, pid: int, tid: int, name: str, args: dict[str, Any]) -> Event:
    return {"ph": "i", "s": "p", "name": name, "ts": ts, "pid": pid, "tid": tid, "args": args}


class _Slices:
    """The slices and flows of the stretches."""

    def __init__(self, result: Result, tracks: _Tracks, ran: Stretches) -> None:
        self.result, self.tracks, self.ran = result, tracks, ran
        numbers = tracks.numbers
        self.bounds: list[int] = np.searchsorted(
            numbers.stretch, np.arange(len(ran.job) + 1)
        ).tolist()
        self.node, self.gpu = numbers.node.tolist(), numbers.gpu.tolist()
        self.part: list[int] = numbers.part.tolist()
        self.begin, self.stop = ran.begin.tolist(), ran.stop.tolist()
        self.job: list[int] = ran.job.tolist()
        workload = result.workload
        self.columns: dict[str, list[float]] = {
            "gpus": workload.gpu_amount.tolist(),
            "submit_s": workload.submit.tolist(),
            "run_time_s": workload.run.tolist(),
            "estimate_s": workload.estimate.tolist(),
            "priority": workload.priority.tolist(),
            "cpus": workload.cpus.tolist(),
            "memory_mib": workload.memory_mib.tolist(),
            "deadline_s": workload.deadline.tolist(),
        }
        self.user: list[int] = workload.user.tolist()
        self.pool: list[int] = workload.pool.tolist()
        self.stretch_of: dict[int, int] = {}  # of running jobs
        last = {job: stretch for stretch, job in enumerate(self.job)}
        self.goes_on = [last[job] > stretch for stretch, job in enumerate(self.job)]
        self.flow: dict[int, int] = {}  # of preempted jobs
        self.flows = 0
        log = result.log
        preempted = log.kind == PREEMPT
        self.reasons: dict[int, list[int]] = {}
        pairs = zip(log.job[preempted].tolist(), log.detail[preempted].tolist(), strict=True)
        for job, reason in pairs:
            self.reasons.setdefault(job, []).append(reason)

    def of(self, stretch: int) -> Iterator[Event]:
        """Yield the slices of a stretch, and the flows that end and begin there."""
        job = self.job[stretch]
        self.stretch_of[job] = stretch
        ts, stop = microseconds(self.begin[stretch]), microseconds(self.stop[stretch])
        name = f"job {job_name(self.result.workload, job)}"
        places = range(self.bounds[stretch], self.bounds[stretch + 1])
        first: tuple[int, int] = (0, 0)
        for place in places:
            node = self.node[place]
            tid = self.tracks.tids[node, self.gpu[place], self.part[place]]
            where = (FIRST_NODE_PID + node, tid)
            is_first = place == places.start
            first = where if is_first else first
            yield {
                "ph": "X",
                "cat": "job",
                "name": name,
                "ts": ts,
                "dur": stop - ts,
                "pid": where[0],
                "tid": where[1],
                "args": self._about(job, stretch) if is_first else {"job": job},
            }
        flow = {"cat": "preemption", "name": "preempted", "pid": first[0], "tid": first[1]}
        if job in self.flow:
            yield {"ph": "f", "bp": "e", "id": self.flow.pop(job), "ts": ts, **flow}
        if self.goes_on[stretch]:
            self.flows += 1
            self.flow[job] = self.flows
            yield {"ph": "s", "id": self.flows, "ts": max(ts, stop - 1), **flow}

    def _about(self, job: int, stretch: int) -> dict[str, Any]:
        workload = self.result.workload
        about: dict[str, Any] = {"job": job, "start_s": self.begin[stretch]}
        for name, column in self.columns.items():
            about[name] = column[job]  # NaN becomes null in JSON
        about["user"] = workload.user_names[self.user[job]]
        if self.pool[job] >= 0:
            about["pool"] = workload.pool_names[self.pool[job]]
        if self.reasons.get(job) and (self.goes_on[stretch]):
            about["preempted"] = PREEMPT_REASONS[self.reasons[job].pop(0)]
        return about


class _Counters:
    """The values of the counters: queue, free GPUs and fragmentation."""

    def __init__(self, result: Result) -> None:
        cluster = result.cluster
        self.queue = 0
        self.milli = result.workload.gpu_milli.tolist()
        self.total: list[int] = (1000 * cluster.gpus.astype(np.int64)).tolist()
        self.free = self.total.copy()
        self.up = [True] * cluster.num_nodes
        self.free_milli = sum(self.total)
        self.with_free = sum(total > 0 for total in self.total)
        self.partly = 0
        self.shown: dict[str, float] = {}

    def take(self, held: _Slices, stretch: int, sign: int) -> None:
        """Return (+1) or take (-1) the GPUs that a stretch holds."""
        milli = sign * self.milli[held.job[stretch]]
        for place in range(held.bounds[stretch], held.bounds[stretch + 1]):
            if held.gpu[place] != NO_GPU:
                node = held.node[place]
                self._count(node, -1)
                self.free[node] += milli
                self._count(node, +1)

    def turn(self, node: int, *, up: bool) -> None:
        """Record that a node goes down or comes back."""
        self._count(node, -1)
        self.up[node] = up
        self._count(node, +1)

    def _count(self, node: int, sign: int) -> None:
        free = self.free[node]
        if self.up[node]:
            self.free_milli += sign * free
            self.with_free += sign * (free > 0)
            self.partly += sign * (0 < free < self.total[node])

    def changed(self, ts: int) -> Iterator[Event]:
        """Yield the counters that have changed."""
        share = self.partly / self.with_free if self.with_free else 0.0
        for name, key, value in (
            ("queue", "jobs", self.queue),
            ("free GPUs", "GPUs", self.free_milli / 1000),
            ("fragmentation", "share", share),
        ):
            if self.shown.get(name) != value:
                self.shown[name] = value
                yield {
                    "ph": "C",
                    "name": name,
                    "ts": ts,
                    "pid": CLUSTER_PID,
                    "args": {key: value},
                }
