"""The work of a suite: which runs are left, what goes into one message, and what was answered.

Finished runs are kept by a hash of everything that affects them, so nothing is made twice. A run
whose worker ended is made once more by another one; a run that raises is a failure.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.experiments.suites.planned_runs import PlannedRuns, RunId, Unit
from berthline.experiments.suites.unit_worker import (
    ColumnsAnswer,
    SuiteAnswer,
    SuiteRecord,
    UnitTask,
    columns_of_bytes,
)
from berthline.runs.job_tables import JobOutcomes, WindowColumns
from berthline.runs.kept_runs import KeptRun
from berthline.worker_pool import Attempts, ErrorText

if TYPE_CHECKING:
    import hashlib
    from typing import Protocol

    class Store(Protocol):
        """Finished runs by their key: `KeptRuns`, or the like in memory."""

        def __contains__(self, key: bytes) -> bool:
            """Whether a run is there."""

        def find(self, key: bytes) -> KeptRun | None:
            """Return the run with a key; None = there is none."""

        def add(self, run: KeptRun) -> None:
            """Add a run that has just finished."""


MOST_ATTEMPTS = 2
"""A run is made again once if its worker ended."""
TASK_SECONDS = 1.0
"""Work that goes into one message."""
_SECONDS_PER_WORK = 6e-6
"""Of a unit of `Unit.work`, until some were measured."""
_SHARE_OF_REST = 0.25
"""At the end messages become smaller, so that all workers finish at about the same time."""


class MemoryStore:
    """Finished runs in memory, of a suite without a directory."""

    def __init__(self) -> None:
        self._found: dict[bytes, KeptRun] = {}

    def __contains__(self, key: bytes) -> bool:
        return key in self._found

    def find(self, key: bytes) -> KeptRun | None:
        """Return the run with a key; None = there is none."""
        return self._found.get(key)

    def add(self, run: KeptRun) -> None:
        """Add a run that has just finished."""
        self._found[run.key] = run


@dataclasses.dataclass(frozen=True)
class Failure:
    """A run that failed.

    Attributes:
        run: which run.
        error: what ended it.
        attempts: how often it was begun.
    """

    run: RunId
    error: ErrorText
    attempts: int = 1


class SuiteWork:
    """The runs of a plan, and how far they are.

    Args:
        planned: the runs.
        store: finished runs; new ones are added.
        share: (number, of how many): only this share of the units; None = all.

    Attributes:
        planned: the runs.
        total: number of runs.
        done: number of them that have finished, well or not.
        kept: number that had finished before.
        failures: those that failed, by run.
        doing: what each worker is busy with, in words.
        store: finished runs.
    """

    def __init__(
        self, planned: PlannedRuns, store: Store, *, share: tuple[int, int] | None = None
    ) -> None:
        self.planned, self.store = planned, store
        self.failures: dict[RunId, Failure] = {}
        self.doing: dict[Any, str] = {}
        self._digests: dict[tuple[int, int], hashlib._Hash] = {}
        self._attempts = Attempts(MOST_ATTEMPTS)
        self._given: dict[Any, collections.deque[RunId]] = {}
        self._tasks: dict[Any, list[UnitTask]] = {}
        self._work = self._seconds = self._left = 0.0
        self._waiting: collections.deque[UnitTask] = collections.deque()
        self.total = self.done = 0
        number, of = share or (0, 1)
        for position, unit in enumerate(planned.units):
            if position % of == number:
                self._open(unit)
        self.kept = self.done

    def _open(self, unit: Unit) -> None:
        runs = list(self.planned.runs_of(unit))
        missing = tuple(run for run in runs if self.key_of(unit, run) not in self.store)
        self.total += len(runs)
        self.done += len(runs) - len(missing)
        columns: tuple[int, ...] = ()
        if self.planned.plan.jobs_table and unit.part != "VAL":
            cells = sorted({run.cell for run in runs})
            columns = tuple(cell for cell in cells if self._lacks_columns(unit, cell))
        if missing or columns:
            self._waiting.append(UnitTask(unit, missing, columns))
            self._left += unit.work(len(missing))

    @property
    def seconds_left(self) -> float:
        """About how much CPU time the runs take that no worker has begun."""
        return self._left * (self._seconds / self._work if self._work else _SECONDS_PER_WORK)

    def key_of(self, unit: Unit, run: RunId) -> bytes:
        """Return the key of a run."""
        plan, scheduler = self.planned.plan, self.planned.schedulers[run.scheduler]
        what = f"{scheduler.identity}\0{plan.jobs_table}\0{plan.costs}"
        return self._key(unit, run.cell, what)

    def _key(self, unit: Unit, cell: int, what: str) -> bytes:
        if (unit.number, cell) not in self._digests:
            self._digests[unit.number, cell] = unit.digest(cell)
        digest = self._digests[unit.number, cell].copy()
        digest.update(what.encode())
        return digest.digest()

    def _columns_key(self, unit: Unit, cell: int) -> bytes:
        return self._key(unit, cell, "columns")

    def next_for(self, worker: Any, workers: int) -> list[UnitTask] | None:
        """Return the next message for a worker; None = no runs are left to start."""
        if not self._waiting:
            return None
        per_work = self._seconds / self._work if self._work else _SECONDS_PER_WORK
        enough = min(TASK_SECONDS, _SHARE_OF_REST * self.seconds_left / max(1, workers))
        if workers == 1:
            enough = TASK_SECONDS
        tasks: list[UnitTask] = []
        runs: collections.deque[RunId] = collections.deque()
        seconds = 0.0
        while self._waiting and (not tasks or seconds < enough):
            task = self._waiting.popleft()
            own = task.unit.work(len(task.runs))
            fitting = max(1, int(len(task.runs) * (enough - seconds) / max(own * per_work, 1e-9)))
            if fitting < len(task.runs) and (tasks or workers > 1):
                # A long unit is shared; its clean runs are made again where they are needed.
                rest = dataclasses.replace(task, runs=task.runs[fitting:], columns=())
                self._waiting.appendleft(rest)
                task = dataclasses.replace(task, runs=task.runs[:fitting])
                own = task.unit.work(len(task.runs))
            tasks.append(task)
            runs.extend(task.runs)
            seconds += own * per_work
            self._left -= own
        self._given[worker], self._tasks[worker] = runs, tasks
        self.doing[worker] = self._in_words(tasks)
        return tasks

    def note(self, worker: Any, answer: SuiteAnswer | ColumnsAnswer) -> RunId | None:
        """Note an answer; return the run that has finished, if one has.

        Raises:
            OutputError: the finished run cannot be kept.
        """
        if isinstance(answer, ColumnsAnswer):
            unit = self._unit(answer.unit)
            self.store.add(KeptRun(self._columns_key(unit, answer.cell), b"", answer.content))
            return None
        run, unit = answer.run, self._unit(answer.run.unit)
        self._given[worker].remove(run)
        self.done += 1
        self._seconds += answer.seconds
        self._work += unit.work(1)
        if answer.error is not None:
            self.failures[run] = Failure(run, answer.error)
        else:
            self.store.add(KeptRun(self.key_of(unit, run), answer.record, answer.jobs))
        return run

    def lost(self, worker: Any, how: str) -> None:
        """Let others make the runs of a worker that has ended."""
        runs = self._given.pop(worker, collections.deque())
        tasks = self._tasks.pop(worker, [])
        self.doing.pop(worker, None)
        # Runs are made in order, so it ended during the first that has no answer.
        for first in list(runs)[:1]:
            name = self.planned.name_of(self._unit(first.unit), first)
            if error := self._attempts.lost(first, how, name=name):
                self.failures[first] = Failure(first, ErrorText.of(error), MOST_ATTEMPTS)
                self.done += 1
                runs.popleft()
        left = set(runs)
        for task in reversed(tasks):
            own = tuple(run for run in task.runs if run in left)
            columns = tuple(c for c in task.columns if self._lacks_columns(task.unit, c))
            if own or (columns and self._attempts.lost(task.unit, how, name="") is None):
                self._left += task.unit.work(len(own))
                self._waiting.appendleft(UnitTask(task.unit, own, columns))

    def result_of(self, unit: Unit, run: RunId) -> SuiteRecord | None:
        """Return the figures of a run; None = it failed or was not made."""
        kept = self.store.find(self.key_of(unit, run))
        return None if kept is None else msgspec.msgpack.decode(kept.record, type=SuiteRecord)

    def jobs_of(self, unit: Unit, run: RunId) -> tuple[WindowColumns, JobOutcomes] | None:
        """Return the jobs of a run; None = it failed or was not made."""
        kept = self.store.find(self.key_of(unit, run))
        columns = self.store.find(self._columns_key(unit, run.cell))
        if kept is None or kept.jobs is None or columns is None or columns.jobs is None:
            return None
        return columns_of_bytes(columns.jobs), JobOutcomes.from_bytes(kept.jobs)

    def _lacks_columns(self, unit: Unit, cell: int) -> bool:
        return self._columns_key(unit, cell) not in self.store

    def _unit(self, number: int) -> Unit:
        return self.planned.units[number]

    def _in_words(self, tasks: list[UnitTask]) -> str:
        first = tasks[0].unit
        more = f" and {len(tasks) - 1} more" if len(tasks) > 1 else ""
        return f"{first.clean.name}, seed {first.seed}{more}"
