"""Grid workers: the runs of a grid in several processes.

The jobs of a window are sent to a worker once. While there are enough windows, a worker gets all
runs of one window. The runs of the last windows are assigned one by one, so that all workers finish
at about the same time.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING

import msgspec

from berthline.evaluate.compare import run_record
from berthline.evaluate.compare.grid import RunIndex
from berthline.evaluate.compare.run_record import FinishedRun, RunRecord, RunSettings
from berthline.evaluate.metrics.energy_rate import EnergyRate
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.workload import Workload
from berthline.policies.scheduler import Scheduler
from berthline.runs.job_tables import JobOutcomes
from berthline.worker_pool import Attempts, ErrorText, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterator

    from berthline.engines.engine import Engine
    from berthline.evaluate.compare.grid import GridResults


@dataclasses.dataclass(frozen=True, eq=False)
class Setup:
    """What all runs of a grid share, sent once."""

    schedulers: tuple[Scheduler, ...]
    clusters: tuple[Cluster, ...]
    seeds: tuple[int, ...]
    settings: RunSettings


@dataclasses.dataclass(frozen=True, eq=False)
class Batch:
    """Runs on one window; its jobs are None if the worker has them from the previous batch."""

    workload: Workload | None
    energy_rate: EnergyRate | None
    runs: tuple[tuple[RunIndex, bool, bool], ...]
    """Each with two flags: whether its log is needed, and whether the bound is."""


@dataclasses.dataclass(frozen=True, eq=False)
class RunAnswer:
    """The result of one run: its record and job outcomes as bytes, or the error that ended it."""

    index: RunIndex
    record: bytes = b""
    jobs: bytes | None = None
    log: Schedule | None = None
    error: ErrorText | None = None

    def finished(self) -> FinishedRun:
        """Return the run."""
        return FinishedRun(
            msgspec.msgpack.decode(self.record, type=RunRecord),
            None if self.jobs is None else JobOutcomes.from_bytes(self.jobs),
            self.log,
        )


def run_in_workers(
    results: GridResults, workers: int, engine: Engine
) -> Generator[tuple[RunIndex, FinishedRun]]:
    """Make the runs of a grid in several processes, and yield each when it is finished.

    Args:
        results: results of the grid, which also opens the windows.
        workers: number of processes.
        engine: where they are.

    Raises:
        BerthlineError: a scheduler cannot be used with a workload, cluster or knowledge; or
            processes ended again and again during a run, which the error names.
    """
    grid = results.grid
    setup = Setup(
        tuple(Scheduler.parse(text) for text in grid.schedulers),
        tuple(cell.cluster for cell in grid.cells),
        tuple(grid.seeds),
        grid.settings,
    )
    batches = _Batches(results, workers)
    failed: dict[RunIndex, ErrorText] = {}

    attempts = Attempts()

    def next_batch(worker: Hashable) -> Batch | None:
        # After a failure, runs in progress may fail too: the first in order is reported.
        return None if failed else batches.next_for(worker)

    def lost(worker: Hashable, how: str) -> None:
        # Runs are made in order, so it ended during the first that has no answer.
        index = batches.give_back(worker)
        if index is None:
            return  # it had made all of its runs
        cell = grid.cells[index.cell]
        name = (
            f"{grid.schedulers[index.scheduler]} on window {index.window + 1} of {cell.workload},"
            f" seed {grid.seeds[index.seed]}, cluster {cell.cluster.name}"
        )
        if error := attempts.lost(index, how, name=name):
            failed[index] = ErrorText.of(error)

    with engine.pool(__name__, setup, workers) as pool:
        for worker, answer in pool.answers(next_batch, lost):
            batches.note_answer(worker, answer.index)
            if answer.error is not None:
                failed[answer.index] = answer.error
            else:
                yield answer.index, answer.finished()
    if failed:
        raise failed[min(failed)].error()


@dataclasses.dataclass(eq=False)
class _OpenWindow:
    """A window with runs that no worker has started."""

    workload: Workload
    begins: float
    waiting: collections.deque[RunIndex]


class _Batches:
    """Hands out the runs of a grid."""

    def __init__(self, results: GridResults, workers: int) -> None:
        self._results, self._workers = results, workers
        self._coming = collections.deque(results.grid.windows())
        self._open: dict[tuple[int, int], _OpenWindow] = {}
        self._window_of: dict[Hashable, tuple[int, int]] = {}
        self._doing: dict[Hashable, list[RunIndex]] = {}

    def next_for(self, worker: Hashable) -> Batch | None:
        """Return the next batch for a worker; None = no runs are left to start."""
        last = self._window_of.get(worker)
        key = last if last in self._open else self._another()
        if key is None:
            return None
        window = self._open[key]
        # Whole windows, unless other workers would be idle meanwhile.
        count = len(window.waiting) if len(self._coming) >= self._workers else 1
        indexes = [window.waiting.popleft() for _ in range(count)]
        if not window.waiting:
            del self._open[key]
        grid = self._results.grid
        rate = grid.cells[key[0]].energy_rate
        workload = None if last == key else _lean(window.workload)
        self._window_of[worker] = key
        self._doing[worker] = indexes
        return Batch(
            workload,
            None if rate is None else rate.shifted(window.begins),
            tuple((index, grid.keeps_log(index), grid.bounds(index)) for index in indexes),
        )

    def note_answer(self, worker: Hashable, index: RunIndex) -> None:
        """Note that a worker has made a run."""
        self._doing[worker].remove(index)

    def give_back(self, worker: Hashable) -> RunIndex | None:
        """Let others make the runs of a worker that has ended; return the one it was making."""
        indexes = self._doing.pop(worker)
        key = self._window_of.pop(worker)
        if not indexes:
            return None
        if key not in self._open:
            workload, begins = self._results.open_window(*key)
            self._open[key] = _OpenWindow(workload, begins, collections.deque())
        self._open[key].waiting.extendleft(reversed(indexes))
        return indexes[0]

    def _another(self) -> tuple[int, int] | None:
        """Return a new window; if there is none, the one with the most runs left."""
        while self._coming:
            key = self._coming.popleft()
            workload, begins = self._results.open_window(*key)
            if waiting := self._results.missing(*key):
                self._open[key] = _OpenWindow(workload, begins, collections.deque(waiting))
                return key
        return max(self._open, key=lambda key: len(self._open[key].waiting), default=None)


def _lean(workload: Workload) -> Workload:
    """Return a workload without the columns that no run reads."""
    return dataclasses.replace(workload, names=None, provenance={})


def main() -> None:
    """Run a worker process."""
    serve(answers_of)


def answers_of(setup: Setup) -> Callable[[Batch], Iterator[RunAnswer]]:
    """Return what answers the messages of a grid."""
    workload: Workload | None = None

    def answers(batch: Batch) -> Iterator[RunAnswer]:
        nonlocal workload
        workload = batch.workload or workload
        assert workload is not None
        for index, keeps_log, bounds in batch.runs:
            yield _answer(setup, workload, batch, index, keeps_log=keeps_log, bounds=bounds)

    return answers


def _answer(
    setup: Setup,
    workload: Workload,
    batch: Batch,
    index: RunIndex,
    *,
    keeps_log: bool,
    bounds: bool,
) -> RunAnswer:
    try:
        run = run_record.make_run(
            workload,
            setup.clusters[index.cell],
            setup.schedulers[index.scheduler],
            setup.settings,
            seed=setup.seeds[index.seed],
            energy_rate=batch.energy_rate,
            keeps_log=keeps_log,
            bounds=bounds,
        )
    except Exception as error:
        return RunAnswer(index, error=ErrorText.of(error))
    return RunAnswer(
        index,
        msgspec.msgpack.encode(run.record),
        None if run.jobs is None else run.jobs.to_bytes(),
        run.log,
    )
