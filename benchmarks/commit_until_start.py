"""A pool scheduler that commits to the job it has chosen, as RLScheduler's simulator does.

Written from the description of that simulator, apart from Berthline's own: one job is chosen, and
the clock runs until it can start; nobody is chosen in the meantime, whoever arrives. Each `Rules`
field switches one such habit, so that the way from there to Berthline's semantics can be walked in
steps. With all of them switched, schedules equal Berthline's `strict` and `easy`; a test says so.
Run times are known exactly.
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
"""Of a waiting job at this time; the smallest is chosen, and the first of equals."""


@dataclasses.dataclass(frozen=True)
class Rules:
    """What happens while the chosen job cannot start. The defaults are RLScheduler's."""

    commits: bool = True
    """The choice stands until the job starts. False: it is made anew at every event."""
    backfills: bool = False
    """Others may pass if they end before the chosen job's earliest start."""
    spares: bool = False
    """They may also end at that very time, or use what the chosen job leaves free then."""
    own_order: bool = False
    """They are tried by the same key. False: by submission."""


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
    """The clock, who waits, and who runs."""

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
        """Let one event happen, submissions first; with choices at every event, all of an instant.

        A commitment is looked at after each event: what else ends at that instant comes later.
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
        """Return when so many processors will be free, and how many more are free then."""
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
