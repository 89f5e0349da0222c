"""Runs from one snapshot, each with run times and later jobs of its own; only starts are kept.

Most schedulers run in the native core, which puts its state back without building anything again.
Learned policies, and placements that plan in Python, go through `resume`, which means the same.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import queue
import threading
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.model.limits import Outage
from berthline.model.schedule import NODE_DOWN
from berthline.model.workload import FloatColumn
from berthline.model.workload_rows import workload_of_rows
from berthline.random_streams import stream_key, text_numbers, uniform_at
from berthline.sim.inputs import draw_numbers, endless_preemption
from berthline.sim.native import run_arguments, snapshot_arguments
from berthline.sim.outages import outages
from berthline.sim.snapshots.resume import resume, resumed_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from berthline.evaluate.forecast.known_past import Jobs, Past
    from berthline.model.cluster import Cluster
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.inputs import Inputs


@dataclasses.dataclass(frozen=True, eq=False)
class Future:
    """What one run has drawn.

    Attributes:
        rows: jobs of the past of which the later jobs are copies, by submission.
        submit: when the later jobs are submitted.
        run: run times of the snapshot's jobs, then of the later jobs.
        seed: of refused starts and random placements.
    """

    rows: npt.NDArray[np.int32]  # (num_later,)
    submit: FloatColumn  # (num_later,)
    run: FloatColumn  # (num_known + num_later,)
    seed: int


class ManyFutures:
    """Simulates what has been drawn.

    Args:
        snapshot: where all runs begin.
        past: what is known there.
        scheduler: a rule for every seat.
        knowledge: what it knows about run times.
        watched: the jobs whose starts are wanted; later jobs come after those of the snapshot.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        past: Past,
        scheduler: Scheduler,
        *,
        knowledge: str,
        watched: Jobs,
    ) -> None:
        known = snapshot.num_jobs
        self._snapshot = dataclasses.replace(
            snapshot,
            cluster=foreseen(snapshot),
            workload=_first(past.jobs, known),
        )
        self._past, self._scheduler, self._knowledge = past, scheduler, knowledge
        self._watched = watched.astype(np.int32)
        self.inputs = self._prepare(past.jobs)
        self._in_core = scheduler.learned is None and self.inputs.plan is None
        self._idle: queue.SimpleQueue[_native.Futures] = queue.SimpleQueue()
        self._all: list[_native.Futures] = []
        self._lock = threading.Lock()
        self._draw = np.zeros(0, np.uint64)
        self._random = np.zeros(0)

    def _prepare(self, jobs: Workload) -> Inputs:
        inputs = resumed_inputs(
            self._snapshot,
            jobs,
            self._scheduler,
            knowledge=self._knowledge,
            seed=self._snapshot.seed,
            horizon=None,
        )
        # The mix of kinds of jobs stays as it is known.
        mixes = tuple(mix for mix in inputs.mixes if mix.jobs <= self._snapshot.num_jobs)
        return dataclasses.replace(inputs, mixes=mixes)

    def run_all(
        self,
        futures: Sequence[Callable[[], Future]],
        *,
        horizon: float,
        workers: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Iterator[FloatColumn]:
        """Yield when the watched jobs first start in each run; infinity = not by the horizon.

        Args:
            futures: what to simulate; each is drawn in the thread that runs it.
            horizon: runs end here.
            workers: threads; None = as many as the machine has processors.
            progress: called with the runs done and their number.
        """
        pool = concurrent.futures.ThreadPoolExecutor(workers or os.cpu_count() or 1)
        over = threading.Event()

        def one(draw: Callable[[], Future]) -> FloatColumn:
            if over.is_set():
                raise concurrent.futures.CancelledError
            return self.starts(draw(), horizon)

        try:
            runs = [pool.submit(one, draw) for draw in futures]
            for number, run in enumerate(runs):
                yield run.result()
                if progress is not None:
                    progress(number + 1, len(runs))
        finally:
            # After Ctrl-C the rest is unused: no run begins, and those in progress end.
            over.set()
            with self._lock:
                for native in self._all:
                    native.stop()
            pool.shutdown(cancel_futures=True)
            self._all.clear()
            self._idle = queue.SimpleQueue()

    def starts(self, future: Future, horizon: float) -> FloatColumn:
        """Return when the watched jobs first start in one run."""
        return (self._native_starts if self._in_core else self._resumed_starts)(future, horizon)

    def _native_starts(self, future: Future, horizon: float) -> FloatColumn:
        try:
            native = self._idle.get_nowait()
        except queue.Empty:
            native = _native.Futures(
                {**run_arguments(self.inputs)}, snapshot_arguments(self._start())
            )
            with self._lock:
                self._all.append(native)
        starts = np.empty(len(self._watched))
        draw, random = self._drawn(len(future.run))
        ended = native.run(
            future.rows,
            future.submit,
            future.run,
            draw,
            random,
            self._knowledge == "exact",
            horizon,
            stream_key(future.seed, "placement"),
            stream_key(future.seed, "refusal"),
            self._watched,
            starts,
        )
        self._idle.put(native)
        if ended == "endless":
            raise endless_preemption(self.inputs)
        if ended == "stopped":
            raise concurrent.futures.CancelledError
        return starts

    def _start(self) -> Snapshot:
        assert self.inputs.start is not None
        return self.inputs.start

    def _drawn(self, jobs: int) -> tuple[npt.NDArray[np.uint64], FloatColumn]:
        """Return the numbers of the first jobs in streams of random numbers, and `random`."""
        if not len(self.inputs.draw):
            return np.zeros(0, np.uint64), np.zeros(0)
        with self._lock:
            if len(self._draw) < jobs:
                later = 2 * jobs - self._snapshot.num_jobs
                self._draw = _numbers(self._snapshot, later)
                if len(self.inputs.random):
                    self._random = uniform_at(stream_key(self._snapshot.seed, "order"), self._draw)
            return self._draw, self._random

    def _resumed_starts(self, future: Future, horizon: float) -> FloatColumn:
        known = self._snapshot.num_jobs
        run = future.run[:known].copy()
        run.setflags(write=False)
        known_jobs = dataclasses.replace(self._snapshot.workload, run=run)
        arrivals = None
        if len(future.rows):
            jobs, rows = self._past.jobs, future.rows.astype(np.intp)
            moved = future.submit - jobs.submit[rows]
            arrivals = workload_of_rows(
                jobs,
                rows,
                submit=future.submit,
                run=future.run[known:],
                deadline=jobs.deadline[rows] + moved,
            )
            if jobs.names is not None:
                names = later_names(len(rows))
                arrivals = dataclasses.replace(arrivals, names=names)
        result = resume(
            dataclasses.replace(self._start(), workload=known_jobs),
            self._scheduler,
            arrivals=arrivals,
            knowledge=self._knowledge,
            seed=future.seed,
            horizon=None if np.isinf(horizon) else horizon,
        )
        log, before = result.log, len(self._snapshot.log)
        starts = np.full(len(result.workload), np.inf)
        rows = before + np.flatnonzero(log.is_start[before:])
        starts[log.job[rows][::-1]] = log.time[rows][::-1]
        watched: FloatColumn = starts[self._watched]
        return watched


def later_names(count: int) -> npt.NDArray[np.str_]:
    """Return names of jobs to come, which no trace has."""
    return np.array([f"to come {number}" for number in range(count)], np.str_)


def _numbers(snapshot: Snapshot, later: int) -> npt.NDArray[np.uint64]:
    known = draw_numbers(snapshot.workload, snapshot)
    if snapshot.workload.names is not None:
        return np.concatenate([known, text_numbers(later_names(later))])
    first = snapshot.memory.jobs + snapshot.num_jobs
    return np.concatenate([known, np.arange(first, first + later).astype(np.uint64)])


def _first(jobs: Workload, count: int) -> Workload:
    """Return the first jobs, with the names of users, pools and types of all."""
    from berthline.sim.snapshots.take import take_jobs

    return take_jobs(jobs, np.arange(count))


def foreseen(snapshot: Snapshot) -> Cluster:
    """Return the cluster without failures to come; nodes that are down return as planned."""
    cluster, memory = snapshot.cluster, snapshot.memory
    until = memory.failures_until if np.isfinite(memory.failures_until) else snapshot.now
    planned = outages(cluster, seed=snapshot.seed, until=until)
    log = snapshot.log
    down: set[int] = set()
    for row in np.flatnonzero(log.job < 0).tolist():
        node = int(log.detail[row])
        down.add(node) if log.kind[row] == NODE_DOWN else down.discard(node)
    known = []
    for node in sorted(down):
        returns = (planned.node == node) & (planned.up == 1) & (planned.time > snapshot.now)
        up = float(planned.time[returns][0]) if returns.any() else np.inf
        if np.isfinite(up):
            known.append(Outage(down=0.0, up=up, nodes=(node,)))
    return dataclasses.replace(
        cluster, outages=tuple(known), mtbf=np.zeros_like(cluster.mtbf)
    ).with_conditions({"mtbf": np.inf, "rack_mtbf": np.inf})
