"""Replay: the state of a run at any instant, rebuilt from its log.

A log says which job started where and when; everything else that decisions look at (free GPUs,
waiting jobs, progress, GPU-seconds used, predictions) follows from it by the rules of the reference
simulator, whose methods do the work here. No decision is made again, so a replay takes seconds
where the reference would take hours, and the log may come from the native core.
"""

from __future__ import annotations

import bisect
import heapq
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import (
    FINISH,
    NODE_DOWN,
    NODE_UP,
    NODE_WENT_DOWN,
    PREEMPT,
    REFUSE,
    REJECT,
    RESUME,
    START,
    SUBMIT,
)
from berthline.model.workload import WHOLE_GPU
from berthline.sim.reference import RETURN, Simulation
from berthline.sim.reference_place import never_fits
from berthline.sim.reference_state import Share, State, Usage
from berthline.sim.snapshots.recall import recall

if TYPE_CHECKING:
    import numpy.typing as npt

    from berthline.model.schedule import Schedule
    from berthline.sim.inputs import Inputs

_DUE = frozenset({FINISH, NODE_UP, NODE_DOWN, SUBMIT, REJECT})
"""Rows that happen before the decision of an instant; preemptions by a node's failure do too."""


_HISTORY = ("user_usage", "user_share", "gittins", "predicted")
"""Words that depend on finished jobs."""


class Replay(Simulation):
    """The state of a run, as far as its log has been read.

    Args:
        inputs: of the run, which may begin with a snapshot.
        log: its log.
        since: the first instant whose state is asked for. Jobs that are over before then are
            skipped where nothing depends on them, which saves time.
    """

    def __init__(self, inputs: Inputs, log: Schedule, *, since: float = 0.0) -> None:
        State.__init__(self, inputs)
        self.clock = 0.0
        self.row = 0
        self.returns: list[tuple[float, int]] = []  # when jobs that are away return
        self._predicts = inputs.predicts
        self._shares_gpus = bool((inputs.workload.gpu_milli < WHOLE_GPU).any())
        rows = self._rows(log, since)
        firsts = log.detail[log.is_start]
        last = np.zeros(len(log), np.int64)  # allocation row after the last of a start
        last[log.is_start] = np.append(firsts[1:], len(log.alloc_node))
        self._times: list[float] = log.time[rows].tolist()
        self._kinds: list[int] = log.kind[rows].tolist()
        self._jobs: list[int] = log.job[rows].tolist()
        self._details: list[int] = log.detail[rows].tolist()
        self._lasts: list[int] = last[rows].tolist()
        # A share is made when its job starts: a log may have millions, and few are replayed.
        self._allocated = log.alloc_node, log.alloc_gpus, log.alloc_slot
        self._fewest: dict[tuple[int, ...], dict[int, int]] = {}
        self.touched: set[int] = set()  # jobs whose GPUs were touched at this instant
        self._start = inputs.start  # whose memory is still to be recalled

    def _rows(self, log: Schedule, since: float) -> npt.NDArray[np.bool_]:
        """Return which rows matter to the state from an instant on."""
        inputs, past = self.inputs, log.time < since
        remembers = inputs.predicts or any(inputs.uses(word) for word in _HISTORY)
        # Finished jobs have slowed down others, or kept nodes awake.
        has_effects = self._shares_gpus or math.isfinite(self.conditions.sleep_after)
        if remembers or has_effects or inputs.start is not None:
            return np.ones(len(log), np.bool_)
        over = np.zeros(len(inputs.workload) + 1, np.bool_)  # the last stands for NO_JOB
        over[log.job[past & ((log.kind == FINISH) | (log.kind == REJECT))]] = True
        # `np.unique` would load numpy.ma, which takes longer than the rest.
        for user in sorted(set(inputs.workload.user[over[:-1]].tolist())):
            self.user_usage[user] = Usage()
        self.arrived = int(np.count_nonzero(past & (log.kind == SUBMIT)))
        kept: npt.NDArray[np.bool_] = ~(past & over[log.job])
        return kept

    def _shares(self, first: int, last: int) -> list[Share]:
        """Return rows of the log's table of allocations."""
        columns = (column[first:last].tolist() for column in self._allocated)
        return [Share(*share) for share in zip(*columns, strict=True)]

    @property
    def now(self) -> float:
        """The clock."""
        return self.clock

    @property
    def next_time(self) -> float:
        """When something happens next; infinity = never."""
        row = self._times[self.row] if self.row < len(self._times) else float("inf")
        return min(row, self.returns[0][0] if self.returns else float("inf"))

    def advance(self, time: float) -> None:
        """Process everything up to an instant, its decision included."""
        self.advance_until_decision(time)
        self.follow_decision()

    def advance_until_decision(self, time: float) -> None:
        """Process everything up to an instant, except the decision made then."""
        while self.next_time < time:
            self._until_decision(self.next_time)
            self.follow_decision()
        self._until_decision(time)

    def follow_decision(self) -> None:
        """Apply what the log says was decided at this instant."""
        while self.row < len(self._times) and self._times[self.row] == self.clock:
            self._apply()
        if self._shares_gpus:
            self.update_rates(self.touched)
        self.touched = set()

    def _until_decision(self, time: float) -> None:
        self.clock = time
        while self.row < len(self._times) and self._times[self.row] == time:
            kind = self._kinds[self.row]
            by_failure = kind == PREEMPT and self._details[self.row] == NODE_WENT_DOWN
            if not (by_failure or kind in _DUE):
                break
            self._apply()
        self._recall()
        while self.returns and self.returns[0][0] <= time:
            job = heapq.heappop(self.returns)[1]
            self.away.remove(job)
            bisect.insort(self.queue, job)

    def _apply(self) -> None:
        """Apply the next row of the log."""
        self._recall()
        row, self.row = self.row, self.row + 1
        kind, job, detail = self._kinds[row], self._jobs[row], self._details[row]
        if kind == SUBMIT:
            self.arrive(job)
        elif kind == REJECT:
            self.leave_queue(job)
        elif kind in (START, RESUME):
            self.leave_queue(job)
            self.attempts[job] += 1
            self.touched |= self.take(job, self._shares(detail, self._lasts[row]))
        elif kind == FINISH:
            self.touched |= self.finish(job)
        elif kind == PREEMPT:
            self.touched |= self.preempt(job, detail)
        elif kind == REFUSE:
            self.leave_queue(job)
            self.attempts[job] += 1
            self.stay_away(job, self.conditions.retry_delay)
        elif kind == NODE_UP:
            self.node_up(detail)
        elif kind == NODE_DOWN:
            self.outages_left -= 1
            self.up[detail] = False  # the log has its own rows for the jobs on it

    def _recall(self) -> None:
        """Set what no row of the snapshot says in which the run began, once it is reached."""
        start = self._start
        if start is not None and self.row >= len(start.log) and self.clock >= start.now:
            recall(self, start)
            self._start = None

    def last_row_of(self, job: int) -> int:
        """Return the kind of the last row about a job so far."""
        return next(self._kinds[r] for r in reversed(range(self.row)) if self._jobs[r] == job)

    def leave_queue(self, job: int) -> None:
        """A job no longer waits."""
        del self.queue[bisect.bisect_left(self.queue, job)]

    def arrive(self, job: int) -> None:
        """A job is submitted; if it is rejected, the log says so next."""
        self.arrived = max(self.arrived, job + 1)  # some may have been skipped
        self.user_usage.setdefault(self.user[job], Usage(since=self.now))
        if self._predicts:
            self.predicted[job] = self.predict(self.user[job])
        if self.inputs.knowledge == "predicted":
            self.estimate[job] = self.predicted[job]
        # Jobs with equal requests need equally many nodes, and that number takes long to find.
        kind = (
            self.job_class[job],
            self.gpus[job],
            self.gpu_milli[job],
            self.cpus[job],
            self.memory_mib[job],
            int(self.inputs.quotas.job_set[job]),
        )
        if kind not in self._fewest:
            never_fits(self, job)
            classes = (self.job_class[job], int(self.inputs.borrow_class[self.job_class[job]]))
            self._fewest[kind] = {
                c: self.nodes_min[job, c] for c in classes if (job, c) in self.nodes_min
            }
        for job_class, fewest in self._fewest[kind].items():
            self.nodes_min[job, job_class] = fewest
        self.queue.append(job)

    def happen_after(self, delay: float, what: object, number: int, _: int = 0) -> None:
        """Record when a job returns; all other events are in the log."""
        if what == RETURN:
            heapq.heappush(self.returns, (self.now + delay, number))

    def write(self, kind: int, job: int, detail: int = -1) -> None:
        """Add nothing to the log, which is complete."""
