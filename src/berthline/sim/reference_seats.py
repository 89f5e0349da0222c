"""The seats an agent can take in the reference simulator: what each asks, and what the answers do.

A seat decides at one decision point, from the first question to the last. A question with nothing
to choose from is omitted, so every question has an allowed answer that matters.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from typing import TYPE_CHECKING

from berthline.model.schedule import FOR_ANOTHER
from berthline.sim.reference_backfilling import may_pass, reserve
from berthline.sim.reference_decide import (
    candidates,
    choose,
    choose_in_state,
    in_order,
    pool_is_idle,
)
from berthline.sim.reference_place import (
    capacity,
    change,
    choices_of_nodes,
    place,
    place_on,
    qualifying,
    share_on,
    units,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berthline.model.snapshot import Memory
    from berthline.policies.scheduler import Scheduler
    from berthline.sim.reference_agent import AgentSimulation, Answer
    from berthline.sim.reference_state import Allocation, Free


Pairs = tuple[tuple[bool, ...], ...]


class Seat:
    """The common part of all seats."""

    def __init__(self, sim: AgentSimulation) -> None:
        self.sim = sim

    def decide(self) -> None:
        """Decide at one decision point."""
        raise NotImplementedError

    def recall(self, memory: Memory) -> None:
        """Continue with what the seat remembered when the run was in the middle."""

    @contextlib.contextmanager
    def carried_out(self, answer: Answer, can_start: tuple[int, ...]) -> Iterator[None]:
        """Carry out an answer; then reward it."""
        starts = len(self.sim.allocated)
        yield
        self.sim.answered(
            is_no_op=answer.action == self.sim.no_op, can_start=can_start, starts_before=starts
        )

    def start_by_rule(self) -> bool:
        """Start what the base scheduler would start; return whether anything started."""
        has_started = False
        while (choice := choose(self.sim)) is not None:
            self.sim.go(*choice)
            has_started = True
        return has_started


class Pick(Seat):
    """Which of the jobs that can start now starts next, until the agent says no-op.

    A job can start if its gate is open, its quotas have room and it fits. There is no question when
    no job of the window can start; the no-op is forbidden when nothing else would ever happen.

    PickPlace also asks for the job's first node. The node takes as many of the job's GPUs
    as it can; the base rule places what is left. Nodes that leave no place for the rest are
    forbidden. If the agent chooses one, the base rule places the whole job.
    """

    def decide(self) -> None:
        """Ask until no job of the window can start, or the agent says no-op."""
        sim = self.sim
        while sim.queue:
            rows = sim.waiting_shown(None)
            open_jobs = set(candidates(sim))
            may = [job in open_jobs and place(sim, job, sim.free) is not None for job in rows]
            if not any(may):
                return
            can_start = tuple(job for job, allowed in zip(rows, may, strict=True) if allowed)
            padding = [False] * (sim.rules.window - len(rows))
            mask = [*may, *padding, sim.allows_no_op(is_blocked=False)]
            pairs: Pairs = ()
            if sim.rules.seat == "pickplace":
                pairs = self.pairs(rows, may)
                mask += map(any, zip(*pairs, strict=True))
            answer = sim.ask(mask, can_start=can_start, pairs=pairs)
            with self.carried_out(answer, can_start):
                if answer.action != sim.no_op:
                    job = rows[answer.action]
                    allocation = self.placed_first(job, answer, pairs) if pairs else None
                    allocation = allocation or place(sim, job, sim.free)
                    assert allocation
                    sim.go(job, allocation)
            if answer.action == sim.no_op:
                return

    def pairs(self, rows: list[int], may: list[bool]) -> Pairs:
        """Return which nodes may be the first of each job of the window."""
        table = [[False] * len(self.sim.up) for _ in range(self.sim.rules.window)]
        for row, (job, allowed) in enumerate(zip(rows, may, strict=True)):
            if allowed:
                room, fewest = rooms(self.sim, job, self.sim.free)
                for node in qualifying(room, units(self.sim, job), fewest - 1):
                    table[row][node] = True
        return tuple(map(tuple, table))

    def placed_first(self, job: int, answer: Answer, pairs: Pairs) -> Allocation | None:
        """Return an allocation that begins with the chosen node; None = it is forbidden."""
        sim, node = self.sim, answer.node
        if not (0 <= node < len(sim.up) and pairs[answer.action][node]):
            sim.was_legal = False
            return None
        room, fewest = rooms(sim, job, sim.free)
        left = units(sim, job)
        pieces = min(room[node], left)
        first = [share_on(sim, job, node, pieces, sim.free)]
        if pieces == left:
            return first
        free = sim.free.copy()
        change(sim, free, job, first, -1)
        rest = place_on(sim, job, free, list(room), fewest - 1, left - pieces)
        assert rest
        return first + rest


class PickAndWait(Seat):
    """Which job is to start next: time runs until it does, then the agent is asked again.

    Meanwhile others may pass the chosen job as the base discipline lets them pass a blocked head.
    """

    def __init__(self, sim: AgentSimulation) -> None:
        super().__init__(sim)
        self.chosen: int | None = None

    def recall(self, memory: Memory) -> None:
        """Continue to wait for the chosen job."""
        self.chosen = memory.committed if memory.committed >= 0 else None

    def decide(self) -> None:
        """Ask which job is next whenever none is chosen."""
        sim = self.sim
        while True:
            if self.chosen is not None and not self.start_chosen():
                self.let_pass(self.chosen)
                return
            if not sim.queue:
                return
            rows = sim.waiting_shown(None)
            padding = [False] * (sim.rules.window - len(rows))
            is_blocked = not any(place(sim, job, sim.free) for job in rows)
            mask = [True] * len(rows) + padding + [sim.allows_no_op(is_blocked=is_blocked)]
            answer = sim.ask(mask, can_start=tuple(rows))
            with self.carried_out(answer, tuple(rows)):
                if answer.action != sim.no_op:
                    self.chosen = rows[answer.action]
                    self.start_chosen()
            if answer.action == sim.no_op:
                return

    def start_chosen(self) -> bool:
        """Start the chosen job, if it can."""
        if self.chosen is not None:
            found = place(self.sim, self.chosen, self.sim.free)
            if found is None:
                return False
            self.sim.go(self.chosen, found)
            self.chosen = None
        return True

    def let_pass(self, head: int) -> None:
        """Start jobs that may pass the chosen one, in order, beginning again after each."""
        discipline = self.sim.scheduler.discipline
        while discipline != "strict":
            reservation = reserve(self.sim, head) if discipline == "easy" else None
            for job in in_order(self.sim, self.sim.scheduler.order, self.sim.queue):
                found = None if job == head else may_pass(self.sim, job, reservation)
                if found is not None:
                    self.sim.go(job, found[0])
                    break
            else:
                return


class Place(Seat):
    """Where the next job of the base scheduler goes: node by node, or by a chosen rule.

    Each chosen node takes as many of the job's GPUs as it can, until all are placed, on as few
    nodes as the job needs on an empty cluster. A rule of the menu that finds no place leaves the
    job where the base rule would put it.
    """

    def decide(self) -> None:
        """Ask for every job that the base scheduler starts."""
        sim = self.sim
        while (found := choose_in_state(sim, candidates(sim))) is not None:
            job, allocation, free = found
            if sim.rules.menu:
                answer = sim.ask([True] * len(sim.rules.menu), first=job, can_start=(job,))
                with self.carried_out(answer, (job,)):
                    rule = sim.rules.menu[answer.action]
                    sim.go(job, self.placed_by(rule, job, free) or allocation)
            else:
                self.ask_for_nodes(job, free)

    def placed_by(self, rule: Scheduler, job: int, free: Free) -> Allocation | None:
        """Return where another placement rule puts the job."""
        sim, own = self.sim, self.sim.scheduler
        sim.scheduler = dataclasses.replace(
            own, placement=rule.placement, node_order=rule.node_order
        )
        allocation = place(sim, job, free)
        sim.scheduler = own
        return allocation

    def ask_for_nodes(self, job: int, free: Free) -> None:
        """Ask for one node after another."""
        sim = self.sim
        room, fewest = rooms(sim, job, free)
        left = units(sim, job)
        allocation: Allocation = []
        while left > 0:
            allowed = qualifying(room, left, fewest - len(allocation) - 1)
            mask = [node in allowed for node in range(len(sim.up))]
            answer = sim.ask(mask, first=job, can_start=(job,))
            pieces = min(room.pop(answer.action), left)
            allocation.append(share_on(sim, job, answer.action, pieces, free))
            left -= pieces
            with self.carried_out(answer, (job,)):
                if left == 0:
                    sim.go(job, allocation)


class Meta(Seat):
    """Which scheduler of the menu applies from now on; before the first choice, the first one.

    It is asked at decision points with waiting jobs: at every k-th of them, and not sooner than
    `every_seconds` after the last choice.
    """

    def __init__(self, sim: AgentSimulation) -> None:
        super().__init__(sim)
        sim.scheduler = sim.rules.menu[0]
        self.points = 0  # decision points to which the last choice still applies
        self.not_before = 0.0

    def recall(self, memory: Memory) -> None:
        """Let the scheduler rule that was chosen last, for as long as it still applies."""
        self.sim.scheduler = self.sim.rules.menu[memory.ruler]
        self.points, self.not_before = memory.decisions_left, memory.ask_again

    def decide(self) -> None:
        """Ask, if it is time to, and let the chosen scheduler decide."""
        sim = self.sim
        if not sim.queue:
            return
        if self.points > 0 or sim.now < self.not_before:
            self.points -= 1
            self.start_by_rule()
            return
        answer = sim.ask([True] * len(sim.rules.menu))
        with self.carried_out(answer, ()):
            sim.scheduler = sim.rules.menu[answer.action]
            self.points = sim.rules.every_events - 1
            if sim.rules.every_seconds > 0:
                self.not_before = sim.wake = sim.now + sim.rules.every_seconds
            self.start_by_rule()


class Backfill(Seat):
    """Which job passes the first job in order while it is blocked.

    The head starts whenever it can. With `protect_head`, only jobs that EASY would let pass may
    pass it: they end before its reservation, or use what it leaves free. There is no question when
    no job in the window may pass.
    """

    def decide(self) -> None:
        """Start the head while it can start; then ask which job passes it."""
        sim = self.sim
        while jobs := candidates(sim):
            head = jobs[0]
            allocation = place(sim, head, sim.free)
            if allocation is not None:
                sim.go(head, allocation)
                continue
            reservation = reserve(sim, head) if sim.rules.protect_head else None
            rows = sim.waiting_shown(head)
            found = {
                job: passing[0]
                for job in rows[1:]
                if job in jobs and (passing := may_pass(sim, job, reservation)) is not None
            }
            if not found:
                return
            padding = [False] * (sim.rules.window - len(rows))
            no_op = sim.allows_no_op(is_blocked=False)
            mask = [*(job in found for job in rows), *padding, no_op]
            can_start = tuple(job for job in rows if job in found)
            answer = sim.ask(mask, first=head, can_start=can_start)
            with self.carried_out(answer, can_start):
                if answer.action != sim.no_op:
                    sim.go(rows[answer.action], found[rows[answer.action]])
            if answer.action == sim.no_op:
                return


class Gate(Seat):
    """Whether the next job of the base scheduler starts (1) or is held (0).

    A held job is out of this decision point, and of those in the next `hold_seconds`, like one
    whose gate is closed. A job that has been held often enough, or whose pool is idle, starts
    without a question. With `recheck` there is a decision point after that time from each hold, or
    when the hold ends, whichever is later.
    """

    def __init__(self, sim: AgentSimulation) -> None:
        super().__init__(sim)
        self.holds = [0] * len(sim.submit)
        self.again: dict[int, float] = {}  # when a held job is looked at again

    def recall(self, memory: Memory) -> None:
        """Remember how often, since when and until when jobs were held."""
        self.holds[: len(memory.holds)] = memory.holds.tolist()
        self.sim.held_until = dict(enumerate(memory.held_until.tolist()))
        self.again = dict(enumerate(memory.checked_again.tolist()))

    def decide(self) -> None:
        """Ask about every job that the base scheduler starts."""
        sim = self.sim
        sim.held = set()
        while (choice := choose(sim)) is not None:
            job, allocation = choice
            if self.holds[job] >= sim.rules.max_holds or pool_is_idle(sim, job):
                sim.go(job, allocation)
                continue
            answer = sim.ask([True, True], first=job, can_start=(job,))
            with self.carried_out(answer, (job,)):
                if answer.action == 1:
                    sim.go(job, allocation)
                else:
                    self.holds[job] += 1
                    sim.held.add(job)
                    sim.held_until[job] = sim.now + sim.rules.hold_seconds
                    if sim.rules.recheck > 0:
                        wait = max(sim.rules.recheck, sim.rules.hold_seconds)
                        self.again[job] = sim.now + wait
        times = [time for job, time in self.again.items() if job in sim.queue and time > sim.now]
        sim.wake = min(times, default=math.inf)


class Preempt(Seat):
    """Which running job yields to the first waiting job that cannot start, or none.

    The base scheduler starts what it can first. Victims yield one by one until the job at hand
    fits; it then starts. After the no-op, and when no job is left that may
    yield, the base scheduler continues.
    """

    def decide(self) -> None:
        """Let the base scheduler start what it can, then ask which job yields."""
        sim = self.sim
        is_going_on = True
        while is_going_on:
            self.start_by_rule()
            waiting = candidates(sim)
            if not waiting:
                return
            is_going_on = self.make_room(waiting[0])

    def make_room(self, job: int) -> bool:
        """Ask which jobs yield to a job until it starts; return whether more may be asked."""
        sim = self.sim
        while True:
            running = sim.running_shown()
            may = [self.may_yield(other) for other in running]
            if not any(may):
                return self.start_by_rule()
            padding = [False] * (sim.rules.running_window - len(running))
            no_op = sim.rules.no_op != "never"  # nothing can start
            answer = sim.ask([*may, *padding, no_op], first=job)
            has_started = False
            with self.carried_out(answer, ()):
                if answer.action != sim.no_op:
                    sim.touched |= sim.preempt(running[answer.action], FOR_ANOTHER)
                    allocation = place(sim, job, sim.free)
                    if allocation is not None:
                        sim.go(job, allocation)
                        has_started = True
                else:
                    self.start_by_rule()
            if has_started:
                return True
            if answer.action == sim.no_op:
                return False

    def may_yield(self, job: int) -> bool:
        """Whether a running job may be chosen; one that started at this instant never is."""
        sim = self.sim
        ran = sim.now - sim.running[job].start
        return ran > 0 and ran >= sim.rules.min_run and sim.restarts[job] < sim.rules.max_restarts


def rooms(sim: AgentSimulation, job: int, free: Free) -> tuple[dict[int, int], int]:
    """Return how many pieces of a job each node can take, and how many nodes it needs.

    The nodes are those of its own pool, or, if they cannot hold it, also those it may borrow.
    """
    for nodes, fewest in choices_of_nodes(sim, job):
        room = {node: capacity(sim, job, node, free) for node in nodes}
        if sum(sorted(room.values(), reverse=True)[:fewest]) >= units(sim, job):
            return room, fewest
    raise AssertionError("a job that fits has room")


def _pick(sim: AgentSimulation) -> Seat:
    from berthline.sim.reference_rank import Rank

    return {"mask": Pick, "wait": PickAndWait, "rank": Rank}[sim.rules.semantics](sim)


SEATS = {
    "pick": _pick,
    "pickplace": Pick,
    "place": Place,
    "meta": Meta,
    "backfill": Backfill,
    "gate": Gate,
    "preempt": Preempt,
}
