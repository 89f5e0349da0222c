"""An agent in a seat of the reference simulator: the definition of what environments ask.

A run proceeds by itself. At a decision point the seat (reference_seats.py) decides instead of the
scheduler: whatever belongs to the agent's seat is a `Question` to a Python function, and the base
scheduler decides the rest. The native core (native/src/agent/seats.cpp) must ask the same questions
and produce the same log from the same answers. docs/mdp.md says the same in words.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from typing import TYPE_CHECKING, Literal, NamedTuple

from berthline.policies.formulas import Formula
from berthline.policies.scheduler import Scheduler
from berthline.sim.reference import TIMER, Simulation
from berthline.sim.reference_decide import in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.schedule import Schedule
    from berthline.sim.inputs import Inputs
    from berthline.sim.reference_state import Allocation

End = Literal["terminated", "truncated"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class SeatRules:
    """What an agent is asked; see `berthline.env.options.Options` for what the names mean.

    Attributes:
        running_order: sorts the running jobs; None = none are shown.
        menu: what to choose from: schedulers in the seat meta, rules in the seat place.
    """

    seat: str
    window: int
    window_policy: str = "head"
    window_formulas: tuple[Formula, ...] = ()
    running_window: int = 0
    running_order: Formula | None = None
    semantics: str = "mask"
    reranks: bool = False
    no_op: str = "always"
    menu: tuple[Scheduler, ...] = ()
    every_events: int = 1
    every_seconds: float = 0.0
    protect_head: bool = True
    max_holds: int = 0
    hold_seconds: float = 0.0
    recheck: float = 0.0
    min_run: float = 0.0
    max_restarts: float = math.inf
    max_steps: int | None = None


@dataclasses.dataclass(frozen=True)
class Question:
    """What the agent is asked, or what it sees when the episode is over.

    Attributes:
        now: the clock.
        jobs: the waiting jobs shown, by row.
        running: the running jobs shown, by row.
        mask: which actions are allowed.
        job_at_hand: the job that the question is about; None = no single one.
        pairs: PickPlace: for each row of the window, which nodes may be the job's first.
        can_start: the jobs that this decision may start.
    """

    now: float
    jobs: list[int]
    running: list[int]
    mask: list[bool]
    job_at_hand: int | None = None
    pairs: tuple[tuple[bool, ...], ...] = ()
    can_start: tuple[int, ...] = ()


class Answer(NamedTuple):
    """The agent's answer; `node` is for PickPlace."""

    action: int
    node: int = 0


class _TooManyStepsError(Exception):
    """The agent has no steps left."""


class AgentSimulation(Simulation):
    """One episode.

    Args:
        inputs: the run; its scheduler decides whatever the agent does not.
        rules: of the seat.
        agent: answers questions.
    """

    def __init__(
        self, inputs: Inputs, rules: SeatRules, agent: Callable[[Question], Answer]
    ) -> None:
        from berthline.sim.reference_seats import SEATS

        super().__init__(inputs)
        self.rules = rules
        self.agent = agent
        self.seat = SEATS[rules.seat](self)
        self.steps = 0
        self.was_legal = True
        self.last_instant = 0.0
        self.wake = math.inf  # when to ask the agent even if nothing happens
        self.pretended_now: float | None = None
        self.touched: set[int] = set()
        self.end: End | None = None
        self.question: Question | None = None

    @property
    def now(self) -> float:
        """The clock; rewards over an interval read it at both ends."""
        return float(self.env.now) if self.pretended_now is None else self.pretended_now

    @property
    def no_op(self) -> int | None:
        """The action that does nothing, where there is one."""
        if self.rules.seat in ("pick", "pickplace", "backfill"):
            return self.rules.window
        return {"preempt": self.rules.running_window, "gate": 0}.get(self.rules.seat)

    @property
    def num_actions(self) -> int:
        """Entries of a mask; for PickPlace, rows, no-op and nodes."""
        nodes = len(self.total.gpus)
        if self.rules.seat == "place":
            return len(self.rules.menu) or nodes
        if self.rules.seat == "meta":
            return len(self.rules.menu)
        if self.rules.seat == "gate":
            return 2
        assert self.no_op is not None
        return self.no_op + 1 + (nodes if self.rules.seat == "pickplace" else 0)

    # --- the episode -----------------------------------------------------------------------------

    def play(self) -> Schedule:
        """Process all events, ask the agent for its decisions, and return the log.

        An episode terminates when no job is left. It is truncated at the horizon, after `max_steps`
        steps, or when jobs are left but nothing more can happen.
        """
        last = min(self.inputs.horizon, sys.float_info.max)
        try:
            self.begin()
            is_over = not self.unfinished()
            while not is_over and self.env.peek() <= last:
                self.env.step()
                is_over = not self.agenda and not self.unfinished()
            if is_over:
                self.end = "terminated"
            else:
                self.end = "truncated"
                # The clock may have advanced to events that became void.
                self.pretended_now = self.last_instant
                if math.isfinite(self.inputs.horizon):
                    self.pretended_now = self.inputs.horizon
                    self.time_passes(self.last_instant)
            self.question = self._last_look()
        except _TooManyStepsError:
            self.end = "truncated"  # the next question becomes the last observation
        self.over()
        return self.schedule(self.now if self.end == "truncated" else self.inputs.horizon)

    def plan_events(self) -> None:
        """Plan what does not depend on decisions; if the run has begun, the seat remembers."""
        super().plan_events()
        start = self.inputs.start
        if start is None:
            return
        self.last_instant = start.now
        self.wake = start.memory.wake
        self.seat.recall(start.memory)
        if not start.decides:
            self.plan_wake()

    def do_what_is_due(self) -> set[int]:
        """Process this instant's events."""
        self.time_passes(self.last_instant)
        self.last_instant = self.now
        before = len(self.log)
        touched = super().do_what_is_due()
        self.things_happened(before)
        return touched

    def decide(self) -> set[int]:
        """The seat decides."""
        self.touched = set()
        self.seat.decide()
        return self.touched

    def set_timer(self, *, decided: bool) -> None:
        """Wake up for the agent too, unless nothing else will happen."""
        super().set_timer(decided=decided)
        self.plan_wake()

    def plan_wake(self) -> None:
        """Plan the instant at which the agent wants to be asked."""
        if self.now < self.wake < self.timer and (self.is_to_come or math.isfinite(self.timer)):
            self.timer = self.wake
            self.happen_at(self.timer, TIMER, 0)

    def arrive(self, job: int) -> None:
        """A job is submitted; columns may use its prediction."""
        self.predicted[job] = self.predict(self.user[job])
        super().arrive(job)

    @property
    def is_to_come(self) -> bool:
        """Whether anything will happen if nothing is decided."""
        is_to_arrive = self.arrived < len(self.submit)
        return is_to_arrive or bool(self.running or self.away or self.outages_left)

    def allows_no_op(self, *, is_blocked: bool) -> bool:
        """Whether the no-op is allowed.

        Args:
            is_blocked: nothing that the agent could choose can start now.
        """
        is_for_this = self.rules.no_op == "always" or (
            self.rules.no_op == "when_blocked" and is_blocked
        )
        return is_for_this and self.is_to_come

    # --- asking ----------------------------------------------------------------------------------

    def ask(
        self,
        mask: list[bool],
        *,
        first: int | None = None,
        can_start: tuple[int, ...] = (),
        pairs: tuple[tuple[bool, ...], ...] = (),
    ) -> Answer:
        """Ask the agent, and return an answer that is allowed.

        A forbidden action counts as the no-op, or, if that is forbidden too or there is none, as
        the first allowed action.

        Args:
            mask: which actions are allowed.
            first: the job at hand.
            can_start: the jobs that this decision may start.
            pairs: of PickPlace.
        """
        question = Question(
            now=self.now,
            jobs=self.waiting_shown(first),
            running=self.running_shown(),
            mask=mask,
            job_at_hand=first,
            pairs=pairs,
            can_start=can_start,
        )
        if self.rules.max_steps is not None and self.steps >= self.rules.max_steps:
            self.question = question
            raise _TooManyStepsError
        answer = self.agent(question)
        self.steps += 1
        choices = mask[: self.rules.window + 1] if self.rules.seat == "pickplace" else mask
        self.was_legal = 0 <= answer.action < len(choices) and choices[answer.action]
        if not self.was_legal:
            no_op = self.no_op
            is_allowed = no_op is not None and choices[no_op]
            action = no_op if is_allowed and no_op is not None else choices.index(True)
            answer = Answer(action, answer.node)
        return answer

    def answered(self, *, is_no_op: bool, can_start: tuple[int, ...], starts_before: int) -> None:
        """An answer has been carried out: a hook for rewards."""

    def time_passes(self, since: float) -> None:
        """The clock has advanced and nothing else has changed: a hook for rewards."""

    def things_happened(self, since: int) -> None:
        """Rows of the log from `since` on are new: a hook for rewards."""

    def over(self) -> None:
        """The episode is over: a hook for rewards."""

    def _last_look(self) -> Question:
        """Return what the agent sees after the last question."""
        mask = [False] * self.num_actions
        mask[self.no_op or 0] = True
        if self.rules.seat == "pickplace":
            mask[self.rules.window + 1] = True
        return Question(self.now, self.waiting_shown(None), self.running_shown(), mask)

    def go(self, job: int, allocation: Allocation) -> None:
        """Start a waiting job."""
        self.touched |= self.start(job, allocation)

    # --- what is shown ---------------------------------------------------------------------------

    def waiting_shown(self, first: int | None) -> list[int]:
        """Return the waiting jobs in the window, in order; the job at hand comes before them.

        When more wait than the window holds, the policy `head` shows the first; `head+tail` the
        first for the larger half and the last for the rest; `top` gives an equal part of the
        window to each of several formulas, smallest values first, and the rest to the order.
        """
        queue = in_order(self, self.scheduler.order, self.queue)
        others = [job for job in queue if job != first]
        room = self.rules.window - (first is not None)
        if len(others) <= room or self.rules.window_policy == "head":
            chosen = set(others[:room])
        elif self.rules.window_policy == "head+tail":
            tail = self.rules.window // 2
            chosen = {*others[: room - tail], *others[len(others) - tail :]}
        else:
            part = room // (len(self.rules.window_formulas) + 1)
            chosen = set()
            for formula in self.rules.window_formulas:
                values = {job: self.value(formula, job) for job in others}
                ranked = sorted(
                    others, key=lambda job: math.inf if math.isnan(values[job]) else values[job]
                )
                chosen |= set([job for job in ranked if job not in chosen][:part])
            chosen |= set([job for job in others if job not in chosen][: room - len(chosen)])
        head = [] if first is None else [first]
        return head + [job for job in others if job in chosen]

    def running_shown(self) -> list[int]:
        """Return the running jobs shown: by their own order, then by id."""
        if self.rules.running_order is None:
            return []
        jobs = in_order(self, self.rules.running_order, sorted(self.running))
        return jobs[: self.rules.running_window]
