"""Runs of a search: many schedulers on a few windows, in processes that stay.

A process gets a window when it first needs it and keeps it. Losses need four numbers of a run,
which are worked out here without the rest of the metrics: those would take longer than the run.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import BerthlineError, SimulationError
from berthline.evaluate.job_table import (
    bounded_slowdowns,
    completion_times,
    job_table,
    makespan,
)
from berthline.evaluate.worker import command, receive, send
from berthline.learn.search_goal import Outcome
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload

    Window = Hashable
    Run = tuple[Window, str]
    """A window and a scheduler."""


def outcome_of(
    workload: Workload, cluster: Cluster, scheduler: str, knowledge: str
) -> Outcome | BerthlineError:
    """Run a scheduler on a window, and return what it did or what was wrong."""
    try:
        log = simulate(workload, cluster, _parsed(scheduler), knowledge=knowledge).log
    except BerthlineError as error:
        return error
    table = job_table(log, workload)
    jct = completion_times(table, workload)
    if not jct.size:
        return SimulationError("all jobs of a window were rejected", where=workload.name)
    slowdown = bounded_slowdowns(table, workload)
    return Outcome(
        mean_jct=float(jct.mean()),
        p99_jct=float(np.quantile(jct, 0.99)),
        mean_bounded_slowdown=float(slowdown.mean()),
        makespan=makespan(table),
    )


@functools.lru_cache(maxsize=1024)
def _parsed(scheduler: str) -> Scheduler:
    """Return a scheduler; reading a long formula takes as long as a short window."""
    return Scheduler.parse(scheduler)


class SearchWorkers:
    """Makes runs, in this process or in several others.

    Args:
        window: returns the jobs of a window.
        cluster: the nodes.
        knowledge: what schedulers know of run times.
        processes: how many; 1 = this one.
    """

    def __init__(
        self,
        window: Callable[[Any], Workload],
        cluster: Cluster,
        *,
        knowledge: str,
        processes: int = 1,
    ) -> None:
        self._window, self._setup = window, (cluster, knowledge)
        self._windows: dict[Window, Workload] = {}
        self._processes = [_Process(self._setup) for _ in range(processes if processes > 1 else 0)]
        self.simulations = 0

    def run(self, runs: Sequence[Run]) -> list[Outcome | BerthlineError]:
        """Make some runs, and return what they did in the order they were asked for.

        Raises:
            SimulationError: a process ended.
        """
        self.simulations += len(runs)
        for key in dict.fromkeys(key for key, _ in runs):
            if key not in self._windows:
                # Without what no run reads.
                lean = dataclasses.replace(self._window(key), names=None, provenance={})
                self._windows[key] = lean
        if not self._processes:
            return [outcome_of(self._windows[key], *self._of(text)) for key, text in runs]
        waiting = collections.deque(range(len(runs)))
        found: list[Any] = [None] * len(runs)
        threads = [
            threading.Thread(target=self._serve, args=(process, runs, waiting, found), daemon=True)
            for process in self._processes
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if any(one is None for one in found):
            raise SimulationError(
                "a worker process ended before its work was done",
                hint="is there memory enough? fewer workers need less: --workers 1",
            )
        return found

    def _of(self, scheduler: str) -> tuple[Cluster, str, str]:
        cluster, knowledge = self._setup
        return cluster, scheduler, knowledge

    def _serve(
        self,
        process: _Process,
        runs: Sequence[Run],
        waiting: collections.deque[int],
        found: list[Any],
    ) -> None:
        while True:
            try:
                number = waiting.popleft()
            except IndexError:
                return
            key, scheduler = runs[number]
            try:
                found[number] = process.ask(key, self._windows[key], scheduler)
            except (EOFError, OSError):
                return  # what is missing is noticed by whoever joins

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.stop()

    def __enter__(self) -> SearchWorkers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Process:
    """One process, and which windows it has."""

    def __init__(self, setup: tuple[Cluster, str]) -> None:
        # In a session of its own, Ctrl-C does not reach it: whoever asked decides what to do.
        self._process = subprocess.Popen(
            command(__name__), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self._has: set[Window] = set()
        send(self._in, setup)

    def ask(self, key: Window, workload: Workload, scheduler: str) -> Outcome | BerthlineError:
        send(self._in, (key, None if key in self._has else workload, scheduler))
        self._has.add(key)
        told = receive(self._out)
        if isinstance(told, Outcome):
            return told
        error = SimulationError.__new__(SimulationError)
        BerthlineError.__init__(error, **told)
        return error

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._in, self._out):
            with contextlib.suppress(OSError):
                stream.close()


def main() -> None:
    """Serve until the input ends."""
    # What a library prints must not get in between the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    messages = sys.stdin.buffer
    windows: dict[Window, Workload] = {}
    try:
        cluster, knowledge = receive(messages)
        while True:
            key, workload, scheduler = receive(messages)
            if workload is not None:
                windows[key] = workload
            found = outcome_of(windows[key], cluster, scheduler, knowledge)
            if isinstance(found, BerthlineError):
                parts = ("what", "where", "expected", "hint")
                send(answers, {part: getattr(found, part) for part in parts})
            else:
                send(answers, found)
    except (EOFError, BrokenPipeError):
        os._exit(0)  # nobody is there any more to whom anything could matter
