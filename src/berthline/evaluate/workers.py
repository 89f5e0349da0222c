"""Workers: the runs of a grid in several processes.

Each worker is a program of its own (worker.py), not a fork of this one, which may have threads and
much memory. The jobs of a window are sent to a worker once. As long as there are windows enough, a
worker gets all runs of one; the runs of the last windows are handed out one by one, so that all
workers are done at about the same time.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import queue
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import msgspec

from berthline import errors
from berthline.errors import BerthlineError, SimulationError
from berthline.evaluate.grid import Place
from berthline.evaluate.job_outcomes import JobOutcomes
from berthline.evaluate.run_record import FinishedRun, RunRecord
from berthline.evaluate.worker import Answer, Batch, Setup, command, receive, send
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Generator

    from berthline.evaluate.grid import GridResults

_ENDED = object()
"""Stands for the end of a worker's answers."""


def usable_cores() -> int:
    """Return how many cores this process may use."""
    with contextlib.suppress(AttributeError):  # not every system can tell
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A process, and a thread that puts its answers into the common queue."""

    def __init__(self, answers: queue.SimpleQueue[tuple[_Worker, Any]], setup: Setup) -> None:
        # In a session of its own, Ctrl-C does not reach it: whoever asked decides what to do.
        self.process = subprocess.Popen(
            command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self.window: tuple[int, int] | None = None
        self.is_busy = False
        self._answers = answers
        self._setup: Setup | None = setup
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                self._answers.put((self, receive(self.process.stdout)))
        except (EOFError, OSError, ValueError):
            self._answers.put((self, _ENDED))

    def send(self, batch: Batch) -> None:
        """Send a batch; only while it waits for one, so that neither side waits for the other."""
        assert self.process.stdin is not None
        self.is_busy = True
        with contextlib.suppress(BrokenPipeError):  # it has ended, which its thread reports
            if self._setup is not None:
                send(self.process.stdin, self._setup)
                self._setup = None
            send(self.process.stdin, batch)

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


@dataclasses.dataclass(eq=False)
class _OpenWindow:
    """A window with runs that nobody has begun."""

    workload: Workload
    begins: float
    waiting: collections.deque[Place]


class _Batches:
    """Hands out the runs of a grid."""

    def __init__(self, results: GridResults, workers: int) -> None:
        self._results, self._workers = results, workers
        self._coming = collections.deque(results.grid.windows())
        self._open: dict[tuple[int, int], _OpenWindow] = {}

    def next_for(self, worker: _Worker) -> Batch | None:
        """Return what a worker should do next; None = nothing is left to begin."""
        key = worker.window if worker.window in self._open else self._another()
        if key is None:
            return None
        window = self._open[key]
        # Whole windows, unless others would have nothing to do meanwhile.
        count = len(window.waiting) if len(self._coming) >= self._workers else 1
        places = [window.waiting.popleft() for _ in range(count)]
        if not window.waiting:
            del self._open[key]
        grid = self._results.grid
        rate = grid.cells[key[0]].energy_rate
        workload = None if worker.window == key else _lean(window.workload)
        worker.window = key
        return Batch(
            workload,
            None if rate is None else rate.shifted(window.begins),
            tuple((place, grid.keeps_log(place), grid.bounds(place)) for place in places),
        )

    def _another(self) -> tuple[int, int] | None:
        """Return a new window; when there is none, the one that others have done least of."""
        while self._coming:
            key = self._coming.popleft()
            workload, begins = self._results.open_window(*key)
            if waiting := self._results.missing(*key):
                self._open[key] = _OpenWindow(workload, begins, collections.deque(waiting))
                return key
        return max(self._open, key=lambda key: len(self._open[key].waiting), default=None)


def run_in_workers(results: GridResults, workers: int) -> Generator[tuple[Place, FinishedRun]]:
    """Make the runs of a grid in several processes, and yield each when it is finished.

    Args:
        results: of the grid; windows are opened there.
        workers: how many processes.

    Raises:
        BerthlineError: a scheduler does not go with a workload, cluster or knowledge; or a
            process ended.
    """
    from berthline.policies.scheduler import Scheduler

    grid = results.grid
    setup = Setup(
        tuple(Scheduler.parse(text) for text in grid.schedulers),
        tuple(cell.cluster for cell in grid.cells),
        tuple(grid.seeds),
        grid.settings,
    )
    answers: queue.SimpleQueue[tuple[_Worker, Any]] = queue.SimpleQueue()
    batches = _Batches(results, workers)
    pool: list[_Worker] = []
    failed: list[Answer] = []
    try:
        pool.extend(_Worker(answers, setup) for _ in range(workers))
        for worker in pool:
            if batch := batches.next_for(worker):
                worker.send(batch)
        while any(worker.is_busy for worker in pool):
            worker, answer = answers.get()
            if answer is _ENDED:
                if worker.is_busy:
                    raise _worker_ended(worker.process.wait())
            elif answer is None:
                worker.is_busy = False
                # After a failure, runs under way may fail too: the first in order is told.
                batch = None if failed else batches.next_for(worker)
                if batch is not None:
                    worker.send(batch)
            elif answer.error is not None:
                failed.append(answer)
            else:
                yield answer.place, _finished(answer)
        if failed:
            raise _error(min(failed, key=lambda answer: answer.place))
    finally:
        for worker in pool:
            worker.stop()


def _lean(workload: Workload) -> Workload:
    """Return a workload without what no run reads."""
    return dataclasses.replace(workload, names=None, provenance={})


def _finished(answer: Answer) -> FinishedRun:
    return FinishedRun(
        msgspec.msgpack.decode(answer.record, type=RunRecord),
        None if answer.jobs is None else JobOutcomes.from_bytes(answer.jobs),
        answer.log,
    )


def _error(answer: Answer) -> Exception:
    """Return the error that a run ended with, as if it had been made here."""
    assert answer.error is not None
    name, what, where, expected, hint = answer.error
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, BerthlineError):
        error = kind.__new__(kind)
        BerthlineError.__init__(error, what, where=where, expected=expected, hint=hint)
        return error
    unexpected = RuntimeError(f"{name} in a worker process")
    unexpected.add_note(what)
    return unexpected


def _worker_ended(code: int) -> SimulationError:
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    return SimulationError(
        f"a worker process ended before its work was done ({how})",
        expected="workers that run until they are told to stop",
        hint="is there memory enough? fewer workers need less: --workers 1",
    )
