"""The reference simulator: the definition of Berthline's semantics, in SimPy.

It is written to be read, not to be fast: every quantity is computed from scratch from the plain
state below, and after every start the decision begins again. The native core must give the same
log, event for event. docs/concepts/semantics.md says the same in words.

This file has the events, reference_state.py the state. Decisions are in
reference_decision_point.py, reference_decide.py, reference_backfilling.py and
reference_preempt.py, placement in reference_place.py, speed in reference_speed.py, what words mean
in reference_words.py.
"""

from __future__ import annotations

import bisect
import math
import sys
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from berthline.model.schedule import (
    END_OF_ROUND,
    FINISH,
    NO_JOB,
    NODE_DOWN,
    NODE_UP,
    NODE_WENT_DOWN,
    PREEMPT,
    REFUSE,
    REJECT,
    RESUME,
    START,
    SUBMIT,
    TO_MOVE,
    Schedule,
)
from berthline.random_streams import uniform
from berthline.sim.inputs import FIRST_PREDICTION, Inputs, endless_preemption
from berthline.sim.multiples import next_multiple
from berthline.sim.reference_decision_point import decide, decide_round
from berthline.sim.reference_place import change, never_fits, unused_slot
from berthline.sim.reference_speed import (
    delay_on,
    expected_left,
    neighbours,
    progress_now,
    rate_on,
    saved,
)
from berthline.sim.reference_state import NEW_SLOT, Allocation, Running, Share, State, Usage
from berthline.sim.reference_words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.policies.formulas import Formula

# What can be due at one instant, in the order in which it happens. RETURN: a job that had to stay
# out of the queue comes back. TIMER: only a reason to decide.
_UP, _DOWN, RETURN, TIMER = "up", "down", "return", "timer"
_SEQUENCE = {FINISH: 0, _UP: 1, _DOWN: 2, SUBMIT: 3, RETURN: 4, TIMER: 5}


def run(
    inputs: Inputs,
    progress: Callable[[int], None] | None = None,
    decision_seconds: list[float] | None = None,
) -> Schedule:
    """Simulate the inputs and return the log.

    Args:
        inputs: the run.
        progress: called after every event with the number of jobs that have arrived.
        decision_seconds: the time of each decision is appended here.
    """
    simulation = Simulation(inputs)
    log = simulation.run(progress or (lambda _: None))
    if decision_seconds is not None:
        decision_seconds.extend(simulation.decision_seconds)
    return log


def decide_once(inputs: Inputs) -> Schedule:
    """Make the decision of the instant at which the inputs start; return the log up to it."""
    assert inputs.start is not None
    simulation = Simulation(inputs)
    simulation.restore()
    if simulation.may_decide():
        simulation.decisions += 1
        simulation.decide_by_discipline()
    return simulation.schedule(inputs.start.now)


class Simulation(State):
    """The state of one run and everything that happens to it."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        # A replay, which has no use for SimPy, need not wait for its import.
        from berthline.sim.reference_clock import Clock

        self.env = Clock()
        self.agenda: list[tuple[object, int, int]] = []  # (what, id, version) of this instant
        self.timer = math.inf
        self.decision_seconds: list[float] = []

    @property
    def now(self) -> float:
        """The clock."""
        return float(self.env.now)

    # --- events ----------------------------------------------------------------------------------

    def run(self, progress: Callable[[int], None]) -> Schedule:
        """Process all events, and return the log."""
        self.begin()
        # Without unfinished jobs nodes may go down and up without end.
        last = min(self.inputs.horizon, sys.float_info.max)
        while (self.agenda or self.unfinished()) and self.env.peek() <= last:
            self.env.step()
            progress(self.arrived)
        return self.schedule(self.inputs.horizon)

    def begin(self) -> None:
        """Plan what does not depend on decisions, and begin in the state that the inputs name."""
        if self.inputs.start is not None:
            self.restore()
        self.plan_events()
        if self.inputs.start is not None and self.inputs.start.decides:
            self.settle()

    def restore(self) -> None:
        """Take over the state of a snapshot."""
        from berthline.sim.snapshots.restore import restore

        assert self.inputs.start is not None
        restore(self, self.inputs.start)

    def plan_events(self) -> None:
        """Plan what does not depend on decisions: submissions and outages."""
        for job in range(self.arrived, len(self.submit)):
            self.happen_at(self.submit[job], SUBMIT, job)
        outages = self.inputs.outages
        for time, node, is_up in zip(outages.time, outages.node, outages.up, strict=True):
            if self.inputs.start is None or time > self.inputs.start.now:
                self.happen_at(float(time), _UP if is_up else _DOWN, int(node))

    def schedule(self, horizon: float) -> Schedule:
        """Return the log so far."""
        time, kind, job_ids, detail = zip(*self.log, strict=True) if self.log else ((),) * 4
        nodes, gpus, slots = zip(*self.allocated, strict=True) if self.allocated else ((),) * 3
        return Schedule(
            time=np.array(time, np.float64),
            kind=np.array(kind, np.uint8),
            job=np.array(job_ids, np.int32),
            detail=np.array(detail, np.int32),
            alloc_node=np.array(nodes, np.int32),
            alloc_gpus=np.array(gpus, np.int32),
            alloc_slot=np.array(slots, np.int32),
            horizon=horizon,
            decisions=self.decisions,
        )

    def unfinished(self) -> bool:
        """Whether any job is yet to arrive, waits, runs or is away."""
        is_to_come = self.arrived < len(self.submit)
        return is_to_come or bool(self.queue or self.running or self.away)

    def happen_after(self, delay: float, what: object, number: int, version: int = 0) -> None:
        """Put an event on the agenda of the instant `delay` seconds from now."""
        self.env.after(delay, self.note(what, number, version))

    def happen_at(self, time: float, what: object, number: int, version: int = 0) -> None:
        """Put an event on the agenda of an instant."""
        self.env.at(time, self.note(what, number, version))

    def note(self, what: object, number: int, version: int) -> Callable[[object], None]:
        """Return a function that puts an event on the agenda of the current instant."""

        def put_on_agenda(_: object) -> None:
            is_stale = (what == FINISH and self.version[number] != version) or (
                what == TIMER and self.timer != self.now
            )
            if is_stale:
                return  # the job was preempted, its rate has changed, or the timer was reset
            if not self.agenda:
                # It runs after everything already due at this instant.
                self.env.after(0, lambda _: self.settle())
            self.agenda.append((what, number, version))

        return put_on_agenda

    def settle(self) -> None:
        """Do what is due at this instant, in its fixed order, then decide."""
        touched = self.do_what_is_due()
        may_decide = self.may_decide()
        if may_decide:
            self.decisions += 1
            started = perf_counter()
            touched |= self.decide_by_discipline()
            self.decision_seconds.append(perf_counter() - started)
        self.update_rates(touched)
        self.set_timer(decided=may_decide)

    @property
    def interval(self) -> float:
        """Seconds between decisions; 0 = there is one whenever something happens."""
        is_round = self.scheduler.discipline == "rounds"
        return self.scheduler.round_seconds if is_round else self.conditions.tick

    def may_decide(self) -> bool:
        """Whether decisions are made at this instant."""
        every = self.interval
        return every == 0 or next_multiple(every, self.now, at_least=True) == self.now

    def decide_by_discipline(self) -> set[int]:
        """Decide; return the jobs whose GPUs were touched."""
        return decide_round(self) if self.scheduler.discipline == "rounds" else self.decide()

    def do_what_is_due(self) -> set[int]:
        """Process this instant's events; return the jobs whose GPUs were touched."""
        due = sorted(self.agenda, key=lambda event: (_SEQUENCE[event[0]], event[1]))
        self.agenda.clear()
        touched, self.carried = self.carried, set()
        for what, number, _ in due:
            if what == FINISH:
                touched |= self.finish(number)
            elif what == _UP:
                self.node_up(number)
            elif what == _DOWN:
                touched |= self.node_down(number)
            elif what == SUBMIT:
                self.arrive(number)
            elif what == RETURN:
                self.away.remove(number)
                bisect.insort(self.queue, number)
        return touched

    def decide(self) -> set[int]:
        """Let the scheduler decide; return the jobs whose GPUs were touched."""
        return decide(self)

    def set_timer(self, *, decided: bool) -> None:
        """Plan the next decision that needs no event."""
        interval, rule = self.interval, self.scheduler.preemption
        self.timer = math.inf
        if not decided:
            self.timer = next_multiple(interval, self.now)
        elif self.scheduler.discipline == "rounds" or (rule is not None and rule.every > 0):
            period = interval if rule is None else rule.every
            is_to_come = self.arrived < len(self.submit) or bool(self.away or self.outages_left)
            if (self.queue and (self.running or is_to_come)) or (rule is None and self.running):
                self.timer = next_multiple(period, self.now)
        if math.isfinite(self.timer):
            self.happen_at(self.timer, TIMER, 0)

    def arrive(self, job: int) -> None:
        """A job is submitted: it joins the queue, or is rejected if it can never fit."""
        self.write(SUBMIT, job)
        self.arrived += 1
        self.user_usage.setdefault(self.user[job], Usage(since=self.now))
        if self.inputs.predicts:
            self.predicted[job] = self.predict(self.user[job])
        if self.inputs.knowledge == "predicted":
            self.estimate[job] = self.predicted[job]
        reason = never_fits(self, job)
        if reason is not None:
            self.write(REJECT, job, reason)
        else:
            self.queue.append(job)

    def finish(self, job: int) -> set[int]:
        """A running job ends and releases its allocation. Returns the other jobs on its GPU."""
        self.write(FINISH, job)
        touched = self.release(job)
        for key in (self.user[job], None):
            self.finished_runs.setdefault(key, []).append(self.run_time[job])
        self.gittins.add(self.attained[job])
        return touched

    def node_up(self, node: int) -> None:
        """A node comes back, idle."""
        self.write(NODE_UP, NO_JOB, node)
        self.outages_left -= 1
        self.up[node] = True
        self.idle_since[node] = self.now

    def node_down(self, node: int) -> set[int]:
        """A node goes down, and with it the jobs on it."""
        self.write(NODE_DOWN, NO_JOB, node)
        self.outages_left -= 1
        self.up[node] = False
        touched: set[int] = set()
        for job in self.jobs_on(node):
            touched |= self.preempt(job, NODE_WENT_DOWN)
        return touched

    def start(self, job: int, allocation: Allocation) -> set[int]:
        """A waiting job starts on its allocation, unless the system refuses."""
        self.queue.remove(job)
        attempt = self.attempts[job]
        self.attempts[job] += 1
        if (
            self.conditions.refusal_rate > 0
            and uniform(self.inputs.refusal_key, int(self.inputs.draw[job]), attempt)
            < self.conditions.refusal_rate
        ):
            self.write(REFUSE, job)
            self.stay_away(job, self.conditions.retry_delay)
            return set()
        allocation = [
            Share(node, gpus, unused_slot(self.free, node) if slot == NEW_SLOT else slot)
            for node, gpus, slot in allocation
        ]
        self.write(RESUME if self.restarts[job] else START, job, len(self.allocated))
        self.allocated.extend(allocation)
        return self.take(job, allocation)

    def take(self, job: int, allocation: Allocation) -> set[int]:
        """A job that starts takes its allocation. Returns it and the other jobs on its GPU."""
        delay, rate = delay_on(self, job, allocation), rate_on(self, job, allocation)
        change(self, self.free, job, allocation, -1)
        running = Running(self.now, allocation, self.now + delay, rate)
        self.running[job] = running
        self.plan_finish(job, delay)
        self.usage.change(self.now, self.milli(job))
        self.user_usage[self.user[job]].change(self.now, self.milli(job))
        self.count_quota(job, allocation, +1)
        return neighbours(self, job) | {job}

    def plan_finish(self, job: int, delay: float) -> None:
        """Plan the end of a job that makes progress again after a delay."""
        running = self.running[job]
        left = max(self.run_time[job] - self.progress[job], 0.0)
        running.planned, running.delay = self.now, delay
        running.expected_end = self.now + (delay + expected_left(self, job) / running.rate)
        self.version[job] += 1
        self.happen_after(delay + left / running.rate, FINISH, job, self.version[job])

    def release(self, job: int) -> set[int]:
        """A running job releases what it holds. Returns the other jobs on its GPU."""
        touched = neighbours(self, job)
        running = self.running.pop(job)
        self.version[job] += 1
        change(self, self.free, job, running.allocation, +1)
        for share in running.allocation:
            if math.isfinite(self.conditions.sleep_after) and not self.jobs_on(share.node):
                self.idle_since[share.node] = self.now
        self.ran[job] += self.now - running.start
        self.attained[job] += self.milli(job) / 1000 * (self.now - running.start)
        self.usage.change(self.now, -self.milli(job))
        self.user_usage[self.user[job]].change(self.now, -self.milli(job))
        self.count_quota(job, running.allocation, -1)
        return touched

    def preempt(self, job: int, reason: int) -> set[int]:
        """A running job stops; what it has done since its last checkpoint is lost."""
        self.write(PREEMPT, job, reason)
        self.preemptions += 1
        if self.preemptions > self.inputs.max_preemptions:
            raise endless_preemption(self.inputs)
        # A job knows when its round ends, and saves its state before.
        keeps_all = reason == END_OF_ROUND
        self.kept[job] = progress_now(self, job) if keeps_all else saved(self, job)
        self.progress[job] = self.kept[job]
        touched = self.release(job)
        self.restarts[job] += 1
        if self.conditions.requeue_delay > 0 and reason != TO_MOVE:
            self.stay_away(job, self.conditions.requeue_delay)
        else:
            bisect.insort(self.queue, job)
        return touched

    def stay_away(self, job: int, delay: float) -> None:
        """A job stays out of the queue for a while."""
        self.away.add(job)
        self.happen_after(delay, RETURN, job)

    def write(self, kind: int, job: int, detail: int = -1) -> None:
        """Add a row to the log."""
        self.log.append((self.now, kind, job, detail))

    def update_rates(self, touched: set[int]) -> None:
        """At the end of an instant, jobs whose neighbours have changed continue at a new rate."""
        for job in sorted(touched & set(self.running)):
            running = self.running[job]
            rate = rate_on(self, job, running.allocation)
            if rate != running.rate:
                self.progress[job] = progress_now(self, job)
                running.since = max(running.since, self.now)
                running.rate = rate
                self.plan_finish(job, running.since - self.now)

    def value(self, formula: Formula, job: int) -> float:
        """Return the value of a formula for a job."""
        return formula.evaluate(lambda word: float(WORDS[word](self, job)))

    # --- knowledge -------------------------------------------------------------------------------

    def predict(self, user: int) -> float:
        """Mean run time of the user's last two finished jobs; else of all users'; else a constant.

        Tsafrir, Etsion and Feitelson, IEEE TPDS 2007. Computed once, at submission.
        """
        runs = self.finished_runs.get(user) or self.finished_runs.get(None)
        if not runs:
            return FIRST_PREDICTION
        return runs[-1] if len(runs) == 1 else (runs[-2] + runs[-1]) / 2
