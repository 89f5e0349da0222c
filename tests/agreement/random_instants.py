"""Random runs cut at a random instant: what a snapshot taken there must reproduce."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
from tests.agreement.random_model_runs import (
    random_model_run,
    random_reservation_run,
    random_round_run,
)
from tests.agreement.random_runs import Run, overdue_run, random_run

import berthline as bl
from berthline.errors import PolicyError
from berthline.model.schedule import FINISH
from berthline.sim.simulate import Result
from berthline.sim.snapshots.take import count_before_decision, take_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

KINDS: dict[str, Callable[[int], Run]] = {
    "plain": random_run,
    "overdue": overdue_run,
    "model": random_model_run,
    "reservations": random_reservation_run,
    "rounds": random_round_run,
}

Rows = list[tuple[float, int, int, int, tuple[tuple[int, int, int], ...]]]


@dataclasses.dataclass(frozen=True)
class Instant:
    """A run, and an instant of it.

    Attributes:
        run: its arguments.
        result: the uninterrupted run.
        at: the instant: that of an event, or between two.
        rng: draws what else a test needs.
    """

    run: Run
    result: Result
    at: float
    rng: np.random.Generator

    def arrivals(self, snapshot: Snapshot) -> Workload:
        """Return the jobs that the snapshot does not know yet."""
        return arrivals(self.result.workload, snapshot)

    def numbers(self, snapshot: Snapshot) -> npt.NDArray[np.int64]:
        """Return the ids in the uninterrupted run of a resumed run's jobs; -1 for no job."""
        known = snapshot.memory.jobs + snapshot.num_jobs
        return np.concatenate([snapshot.number, np.arange(known, len(self.run.workload)), [-1]])


def arrivals(workload: Workload, snapshot: Snapshot) -> Workload:
    """Return the jobs of a workload that a snapshot of its run does not know yet."""
    known = snapshot.memory.jobs + snapshot.num_jobs
    return take_jobs(workload, np.arange(known, len(workload)))


def random_instant(kind: str, number: int) -> Instant | None:
    """Return an instant of a random run; None = the run is refused."""
    run = KINDS[kind](number)
    try:
        result = bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        )
    except PolicyError:
        assert run.knowledge == "none"
        return None
    rng = np.random.default_rng([number, 0x5A])
    times = np.unique(result.log.time)
    if not len(times):  # the horizon is before the first submission
        return None
    at = float(rng.choice(times) if rng.random() < 0.7 else rng.uniform(0, 1.05 * times[-1]))
    return Instant(run, result, min(at, np.inf if run.horizon is None else run.horizon), rng)


def rows_of(log: Schedule, wanted: npt.NDArray[np.bool_], numbers: npt.NDArray[np.int64]) -> Rows:
    """Return some rows of a log with their allocations, and jobs by their numbers."""
    starts = np.flatnonzero(log.is_start)
    first = log.detail[starts]
    last = np.append(first, len(log.alloc_node))[1:]
    shares = dict(
        zip(starts.tolist(), zip(first.tolist(), last.tolist(), strict=True), strict=True)
    )
    columns = (log.alloc_node, log.alloc_gpus, log.alloc_slot)
    found = []
    for row in np.flatnonzero(wanted).tolist():
        begin, end = shares.get(row, (0, 0))
        held = zip(*(column[begin:end].tolist() for column in columns), strict=True)
        detail = 0 if row in shares else int(log.detail[row])
        job = int(numbers[log.job[row]])
        found.append((float(log.time[row]), int(log.kind[row]), job, detail, tuple(held)))
    return found


def rows_after(log: Schedule, count: int, numbers: npt.NDArray[np.int64]) -> Rows:
    """Return the rows after the first ones of a log."""
    return rows_of(log, np.arange(len(log)) >= count, numbers)


def decided_rows(log: Schedule, at: float) -> npt.NDArray[np.bool_]:
    """Return which rows of a log are the first decision of an instant."""
    later = (log.time == at) & (np.arange(len(log)) >= count_before_decision(log, at))
    # A job may end at the instant at which it starts; then another decision follows.
    ends = np.flatnonzero(later & (log.kind == FINISH))
    last = int(ends[0]) if len(ends) else len(log)
    decided: npt.NDArray[np.bool_] = later & (np.arange(len(log)) < last)
    return decided


def with_run_times(snapshot: Snapshot, run: float) -> Snapshot:
    """Return a snapshot in which all unfinished jobs have another run time."""
    over = snapshot.log.job[snapshot.log.kind == FINISH]
    is_over = np.isin(np.arange(snapshot.num_jobs), over)
    workload = dataclasses.replace(
        snapshot.workload, run=np.where(is_over, snapshot.workload.run, run)
    )
    return dataclasses.replace(snapshot, workload=workload)
