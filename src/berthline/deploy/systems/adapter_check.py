"""adapter_check: whether an adapter keeps the contract, tried on a live system that may be touched.

The checks hold back jobs of ours that wait, start one where there is room, and give everything
back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.looks.check_look import check_look, in_order
from berthline.deploy.systems.contract import (
    BY_US,
    DONE,
    HELD,
    NOT_KNOWN,
    REFUSED,
    RUNNING,
    UP,
    WAITING,
    Action,
    ActionKind,
)
from berthline.errors import BerthlineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.deploy.systems.contract import Adapter, JobRecord, Look, Outcome


class ContractError(BerthlineError):
    """An adapter does not keep the contract."""

    exit_code = 1


class CheckedAdapter(msgspec.Struct, frozen=True):
    """What was checked.

    Attributes:
        done: the checks that the adapter passed.
        left_out: those for which the system had no job or no room just then.
    """

    done: tuple[str, ...]
    left_out: tuple[str, ...]


def adapter_check(adapter: Adapter, *, patience: float = 10.0) -> CheckedAdapter:
    """Check that an adapter keeps the contract, and return what was checked.

    Args:
        adapter: of a system with a few waiting jobs that may be held and started.
        patience: seconds on its clock in which an action must show, beside its tick.

    Raises:
        ContractError: it does not; the error says what and where.
    """
    check = _Check(adapter, patience)
    done: list[str] = []
    left_out: list[str] = []
    for name, run in check.all().items():
        (done if run() else left_out).append(name)
    return CheckedAdapter(tuple(done), tuple(left_out))


class _Check:
    def __init__(self, adapter: Adapter, patience: float) -> None:
        self.adapter, self.patience = adapter, patience

    def all(self) -> dict[str, Callable[[], bool]]:
        return {
            "a look is sound": self.look_is_sound,
            "the clock goes on": self.clock_goes_on,
            "no actions, no outcomes": self.no_actions,
            "an unknown job is refused": self.unknown_job,
            "another submission is another job": self.other_submission,
            "a job can be held and released": self.hold_and_release,
            "an unknown node is refused": self.unknown_node,
            "a start too many is refused": self.too_much,
            "a start happens, and only once": self.start,
            "a guard lifts what is held": self.guard,
        }

    def fail(self, what: str, expected: str) -> ContractError:
        return ContractError(what, where=self.adapter.name, expected=expected)

    def look(self) -> Look:
        return in_order(self.adapter.look())

    def do(self, kind: ActionKind, job: JobRecord, **more: object) -> Outcome:
        action = Action(kind=kind, job=job.id, submitted=job.submitted, **more)  # type: ignore[arg-type]
        outcomes = self.adapter.do([action])
        if len(outcomes) != 1 or outcomes[0].status not in (DONE, REFUSED, NOT_KNOWN):
            raise self.fail(f"{kind.value} has the outcomes {outcomes!r}", "one outcome an action")
        return outcomes[0]

    def waiting(self, look: Look) -> JobRecord | None:
        return next(
            (
                job
                for job in look.jobs
                if job.ours
                and job.is_eligible
                and (job.gpus or 0) > 0
                and (job.state == WAITING or job.held_by == BY_US)
            ),
            None,
        )

    def until(self, job: JobRecord, good: Callable[[JobRecord], bool]) -> bool:
        """Wait until a look shows a job in this way."""
        ends = self.adapter.clock() + self.patience + self.adapter.abilities.tick
        while True:
            now = next((one for one in self.look().jobs if one.id == job.id), None)
            if now is not None and good(now):
                return True
            if self.adapter.clock() >= ends:
                return False
            self.adapter.wait(min(1.0, self.patience / 4))

    def look_is_sound(self) -> bool:
        look = self.look()
        try:
            check_look(look, clock=self.adapter.clock())
        except BerthlineError as error:
            raise self.fail(f"a look contradicts itself: {error.what}", error.expected) from None
        return True

    def clock_goes_on(self) -> bool:
        before = self.adapter.clock()
        self.adapter.wait(0.1)
        if self.adapter.clock() < before:
            raise self.fail("the clock runs backwards", "a clock that does not")
        return True

    def no_actions(self) -> bool:
        if self.adapter.do([]) != []:
            raise self.fail("no actions have outcomes", "none")
        return True

    def unknown_job(self) -> bool:
        action = Action(kind=ActionKind.HOLD, job="no-such-job", submitted=0.0)
        if self.adapter.do([action])[0].status == DONE:
            raise self.fail("a hold of a job that is not there was done", REFUSED)
        return True

    def other_submission(self) -> bool:
        job = self.waiting(self.look())
        if job is None:
            return False
        other = msgspec.structs.replace(job, submitted=job.submitted - 1000.0)
        if self.do(ActionKind.HOLD, other).status == DONE:
            raise self.fail("an action on an earlier job of the same id was done", REFUSED)
        return True

    def hold_and_release(self) -> bool:
        job = self.waiting(self.look())
        if job is None or not self.adapter.abilities.holds:
            return False
        for _ in range(2):  # twice is once
            self.do(ActionKind.HOLD, job)
        if not self.until(job, lambda now: now.state == HELD and now.held_by == BY_US):
            raise self.fail(f"job {job.id} was held and is not", "held by us")
        for _ in range(2):
            self.do(ActionKind.RELEASE, job)
        if not self.until(job, lambda now: now.state != HELD):
            raise self.fail(f"job {job.id} was released and is held", "waiting or running")
        return True

    def unknown_node(self) -> bool:
        job = self.waiting(self.look())
        if job is None or not self.adapter.abilities.places:
            return False
        outcome = self.do(ActionKind.START, job, nodes={"no-such-node": job.gpus})
        if outcome.status == DONE:
            raise self.fail("a start on a node that is not there was done", REFUSED)
        return True

    def too_much(self) -> bool:
        look = self.look()
        job = self.waiting(look)
        full = next((n for n in look.nodes if n.gpus and n.gpus_in_use == n.gpus), None)
        able = self.adapter.abilities
        if job is None or full is None or not (able.places and able.checks_capacity):
            return False
        outcome = self.do(ActionKind.START, job, nodes={full.name: job.gpus})
        if outcome.status == DONE:
            raise self.fail(f"a start on {full.name}, which is full, was done", REFUSED)
        return True

    def start(self) -> bool:
        look = self.look()
        if not (self.adapter.abilities.places and self.adapter.abilities.holds):
            return False
        for job in look.jobs:
            if self.waiting(msgspec.structs.replace(look, jobs=(job,))) is None:
                continue
            for node in look.nodes:
                free = node.gpus - (node.gpus_in_use or 0)
                if node.state == UP and free >= (job.gpus or 0) and job.pool in ("", node.pool):
                    return self._started(job, node.name)
        return False

    def _started(self, job: JobRecord, node: str) -> bool:
        self.do(ActionKind.HOLD, job)
        nodes = {node: job.gpus}
        first = self.do(ActionKind.START, job, nodes=nodes)
        if first.status == REFUSED:
            return False
        self.do(ActionKind.START, job, nodes=nodes)
        if not self.until(job, lambda now: now.state not in (WAITING, HELD)):
            raise self.fail(f"job {job.id} was started on {node} and does not run", "running")
        now = next((one for one in self.look().jobs if one.id == job.id), None)
        if now is not None and now.state == RUNNING and dict(now.nodes) != nodes:
            raise self.fail(f"job {job.id} runs on {dict(now.nodes)}", f"{nodes}")
        return True

    def guard(self) -> bool:
        import importlib

        orders, job = self.adapter.guard(), self.waiting(self.look())
        if orders is None or job is None:
            return False
        self.do(ActionKind.HOLD, job)
        _, left = importlib.import_module(orders.module).lift(dict(orders.arguments))
        held = [one.id for one in self.look().jobs if one.held_by == BY_US]
        if left or held:
            raise self.fail(f"after the guard {held or left} are held by us", "none")
        return True
