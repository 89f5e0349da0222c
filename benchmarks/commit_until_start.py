"""A pool scheduler that commits to the job it has chosen, as RLScheduler's simulator does.

It was written from the description of that simulator and shares no code with Berthline's: one job
is chosen, and the clock advances until it can start; until then no other job is chosen, even if
jobs arrive. Each field of `Rules` switches one difference, so that Berthline's semantics are
reached step by step. With all of them switched, schedules equal Berthline's `strict` and `easy`; a
test checks this. Run times are known exactly.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Callable, Sequence
from typing import NamedTuple


class Job(NamedTuple):
    """A job: seconds on the trace's clock, and processors of one pool."""

    submit: int
    run: int
    processors: int


Key = Callable[[Job, int], float]
"""Key of a waiting job at a time; the job with the smallest is chosen, the first of equals."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """What happens while the chosen job cannot start. The defaults are RLScheduler's."""

    commits: bool = True
    """The choice stands until the job starts. False: it is made again at every event."""
    backfills: bool = False
    """Other jobs may pass if they end before the chosen job's earliest start."""
    spares: bool = False
    """They may also end exactly at that time, or use what the chosen job then leaves free."""
    own_order: bool = False
    """They are tried in the order of the same key. False: in the order of submission."""


def start_times(jobs: Sequence[Job], key: Key, rules: Rules, *, processors: int) -> list[int]:
    """Return when each job starts. Jobs are sorted by submission; none is wider than the pool."""
    pool = _Pool(jobs, key, rules, processors)
    chosen: int | None = None
    while pool.waiting or pool.arrived < len(jobs):
        if chosen is None and pool.waiting:
            chosen = pool.first()
        if chosen is not None and pool.fits(chosen):
            pool.start(chosen)
            chosen = None
            continue
        if chosen is not None and rules.backfills:
            pool.backfill(chosen)
        pool.advance()
        if not rules.commits:
            chosen = None
    return pool.starts


class _Pool:
    """The clock, the waiting jobs and the running jobs."""

    def __init__(self, jobs: Sequence[Job], key: Key, rules: Rules, processors: int) -> None:
        self.jobs, self.key, self.rules = jobs, key, rules
        self.now = 0
        self.free = processors
        self.arrived = 0
        self.waiting: list[int] = []  # by submission
        self.running: list[tuple[int, int]] = []  # a heap of (end, job)
        self.starts = [-1] * len(jobs)

    def fits(self, job: int) -> bool:
        return self.jobs[job].processors <= self.free

    def first(self) -> int:
        return min(self.waiting, key=self._value)

    def start(self, job: int) -> None:
        self.starts[job] = self.now
        self.free -= self.jobs[job].processors
        heapq.heappush(self.running, (self.now + self.jobs[job].run, job))
        self.waiting.remove(job)

    def advance(self) -> None:
        """Handle one event, submissions first; without commitment, all events of an instant.

        With commitment, the chosen job is tried after each event, before other jobs that end at
        the same instant.
        """
        self._one_event()
        while not self.rules.commits and self._next_event() == self.now:
            self._one_event()

    def backfill(self, head: int) -> None:
        """Start all jobs that may pass the head."""
        while (passing := self._first_to_pass(head)) is not None:
            self.start(passing)

    def _first_to_pass(self, head: int) -> int | None:
        shadow, spare = self._reservation(self.jobs[head].processors)
        order = sorted(self.waiting, key=self._value) if self.rules.own_order else self.waiting
        for job in order:
            if job == head or not self.fits(job):
                continue
            end = self.now + self.jobs[job].run
            if end < shadow:
                return job
            if self.rules.spares and (end == shadow or self.jobs[job].processors <= spare):
                return job
        return None

    def _reservation(self, wanted: int) -> tuple[int, int]:
        """Return when this many processors will be free, and how many more are free then."""
        free, shadow = self.free, self.now
        for end, job in sorted(self.running):
            if free >= wanted and end > shadow:
                break
            free, shadow = free + self.jobs[job].processors, end
        return shadow, free - wanted

    def _value(self, job: int) -> float:
        return self.key(self.jobs[job], self.now)

    def _next_event(self) -> int | None:
        times = [end for end, _ in self.running[:1]]
        times += [job.submit for job in self.jobs[self.arrived : self.arrived + 1]]
        return min(times, default=None)

    def _one_event(self) -> None:
        submits = self.arrived < len(self.jobs)
        if submits and self.running:
            submits = self.jobs[self.arrived].submit <= self.running[0][0]
        if submits:
            self.now = max(self.now, self.jobs[self.arrived].submit)
            self.waiting.append(self.arrived)
            self.arrived += 1
        else:
            end, job = heapq.heappop(self.running)
            self.now = max(self.now, end)
            self.free += self.jobs[job].processors
