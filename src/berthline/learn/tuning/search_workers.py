"""Runs of a search: many schedulers on a few windows, in persistent processes.

A process receives a window when it first needs it, and keeps it. A loss needs four numbers of a
run. They are computed here without the other metrics, which would take longer than the run.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import BerthlineError, SimulationError
from berthline.evaluate.metrics.job_table import completion_times, job_table, makespan
from berthline.evaluate.metrics.slowdown import bounded_slowdowns
from berthline.learn.tuning.search_goal import WindowOutcome
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.size_limits import check_sizes
from berthline.worker_pool import Attempts, ErrorText, Worker, WorkerPool, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

    Window = Hashable
    Run = tuple[Window, str]
    """A window and a scheduler."""
    _Message = tuple[int, Window, Workload | None, str]
    """The number of a run, its window, the jobs if the worker lacks them, the scheduler."""


def outcome_of(
    workload: Workload, cluster: Cluster, scheduler: str, knowledge: str
) -> WindowOutcome | BerthlineError:
    """Run a scheduler on a window, and return its results or the error."""
    try:
        log = simulate(workload, cluster, _parsed(scheduler), knowledge=knowledge).log
    except BerthlineError as error:
        return error
    table = job_table(log, workload)
    jct = completion_times(table, workload)
    if not jct.size:
        return SimulationError("all jobs of a window were rejected", where=workload.name)
    slowdown = bounded_slowdowns(table, workload)
    return WindowOutcome(
        mean_jct=float(jct.mean()),
        p99_jct=float(np.quantile(jct, 0.99)),
        mean_bounded_slowdown=float(slowdown.mean()),
        makespan=makespan(table),
    )


@functools.lru_cache(maxsize=1024)
def _parsed(scheduler: str) -> Scheduler:
    """Return a scheduler; cached, since parsing a long formula takes as long as a short window."""
    return Scheduler.parse(scheduler)


class SearchWorkers:
    """Makes runs, in this process or in several others.

    Args:
        window: returns the jobs of a window.
        cluster: the nodes.
        knowledge: what schedulers know about run times.
        processes: number of processes; 1 = this one.
    """

    def __init__(
        self,
        window: Callable[[Any], Workload],
        cluster: Cluster,
        *,
        knowledge: str,
        processes: int = 1,
    ) -> None:
        check_sizes(workers=processes)
        self._window, self._setup = window, (cluster, knowledge)
        self._windows: dict[Window, Workload] = {}
        self._pool = WorkerPool(__name__, self._setup, processes if processes > 1 else 0)
        self._sent: collections.defaultdict[Worker, set[Window]] = collections.defaultdict(set)
        self.simulations = 0

    def run(self, runs: Sequence[Run]) -> list[WindowOutcome | BerthlineError]:
        """Make runs, and return their results in the same order.

        Raises:
            SimulationError: processes ended again and again during one of the runs.
        """
        self.simulations += len(runs)
        for key in dict.fromkeys(key for key, _ in runs):
            if key not in self._windows:
                # Without the parts that no run reads.
                lean = dataclasses.replace(self._window(key), names=None, provenance={})
                self._windows[key] = lean
        if not self._pool.workers:
            cluster, knowledge = self._setup
            return [outcome_of(self._windows[key], cluster, text, knowledge) for key, text in runs]
        waiting = collections.deque(range(len(runs)))
        doing: dict[Worker, int] = {}
        attempts = Attempts()
        found: list[Any] = [None] * len(runs)

        def next_message(worker: Worker) -> _Message | None:
            if not waiting:
                return None
            number = doing[worker] = waiting.popleft()
            key, scheduler = runs[number]
            workload = None if key in self._sent[worker] else self._windows[key]
            self._sent[worker].add(key)
            return number, key, workload, scheduler

        def lost(worker: Worker, how: str) -> None:
            number = doing.pop(worker)
            if found[number] is not None:
                return
            if error := attempts.lost(number, how, name=runs[number][1]):
                raise error
            waiting.appendleft(number)

        for _, (number, answer) in self._pool.answers(next_message, lost):
            found[number] = answer.error() if isinstance(answer, ErrorText) else answer
        return found

    def close(self) -> None:
        """End the processes."""
        self._pool.close()

    def __enter__(self) -> SearchWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def main() -> None:
    """Run a worker process."""
    serve(answers_of)


def answers_of(
    setup: tuple[Cluster, str],
) -> Callable[[_Message], Iterator[tuple[int, WindowOutcome | ErrorText]]]:
    """Return what answers the messages of a search."""
    cluster, knowledge = setup
    windows: dict[Window, Workload] = {}

    def answers(message: _Message) -> Iterator[tuple[int, WindowOutcome | ErrorText]]:
        number, key, workload, scheduler = message
        if workload is not None:
            windows[key] = workload
        found = outcome_of(windows[key], cluster, scheduler, knowledge)
        yield number, ErrorText.of(found) if isinstance(found, BerthlineError) else found

    return answers
