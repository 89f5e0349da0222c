"""Intents: what was asked of the system and no look has shown yet.

No action is trusted to have worked. A start holds its GPUs until a look shows the job running; if
none does in time it is repeated, and in the end taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.journal.journal_records import Held, Numbered
from berthline.deploy.looks.seen import AskedStart
from berthline.deploy.systems.contract import (
    BY_US,
    FINISHED,
    HELD,
    NOT_KNOWN,
    REFUSED,
    RUNNING,
    Action,
    ActionKind,
    Outcome,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from berthline.deploy.control.deploy_settings import RuleSettings
    from berthline.deploy.looks.seen import LiveJob
    from berthline.deploy.systems.contract import Look

_VANISHED = 3
"""Looks without the job after which an intent about it is dropped."""


class Intent(msgspec.Struct):
    """An action whose effect is awaited.

    Attributes:
        action: the action.
        since: when it was first asked for.
        asked: when it was last asked for.
        tries: how often.
        missing: looks in a row without the job.
        withdraws: the start is being taken back.
    """

    action: Action
    since: float
    asked: float
    tries: int = 1
    missing: int = 0
    withdraws: bool = False


class Intents:
    """What is awaited, by number of job.

    Args:
        settings: of the rules.
        tick: of the system: nothing is expected to show earlier.
    """

    def __init__(self, settings: RuleSettings, tick: float) -> None:
        self._settings = settings
        self._patience = settings.confirm_after + tick
        self.of: dict[int, Intent] = {}

    def asked(self) -> dict[int, AskedStart]:
        """Return the starts that hold their GPUs."""
        return {
            number: AskedStart(intent.since, intent.action.nodes)
            for number, intent in self.of.items()
            if intent.action.kind == ActionKind.START
        }

    def held(self) -> tuple[Held, ...]:
        """Return the same for the journal."""
        return tuple(Held(number, one.time, one.nodes) for number, one in self.asked().items())

    def follow(self, look: Look, jobs: Mapping[int, LiveJob]) -> list[Numbered]:
        """Drop what has happened; return what is to be asked again or taken back."""
        again: list[Numbered] = []
        for number, intent in list(self.of.items()):
            job = jobs.get(number)
            if job is None:
                intent.missing += 1
                if intent.missing >= _VANISHED:
                    del self.of[number]
                continue
            intent.missing = 0
            if _has_happened(intent, job):
                del self.of[number]
            elif look.time - intent.asked >= self._patience:
                again += self._again(number, intent, job)
        self._drop_impossible(look, jobs)
        return again

    def _again(self, number: int, intent: Intent, job: LiveJob) -> list[Numbered]:
        record, kind = job.record, intent.action.kind
        if kind != ActionKind.START:
            del self.of[number]  # it is decided or held again
            return []
        if not record.ours or (record.state == HELD and record.held_by != BY_US):
            del self.of[number]  # others hold it now
            return []
        if intent.withdraws or intent.tries > self._settings.max_repeats:
            intent.withdraws = True
            action = msgspec.structs.replace(
                intent.action, kind=ActionKind.HOLD, nodes={}, submitted=record.submitted
            )
            return [Numbered(number, action, "withdraw")]
        action = msgspec.structs.replace(intent.action, submitted=record.submitted)
        return [Numbered(number, action, "repeat")]

    def _drop_impossible(self, look: Look, jobs: Mapping[int, LiveJob]) -> None:
        """Drop starts whose GPUs others have taken: they cannot happen, and nothing holds them."""
        free = {node.name: node.gpus for node in look.nodes}
        for job in jobs.values():
            if job.record.state == RUNNING:
                for name, gpus in job.record.nodes.items():
                    free[name] = free.get(name, 0) - gpus
        for number, one in self.asked().items():
            if all(free.get(name, 0) >= gpus for name, gpus in one.nodes.items()):
                for name, gpus in one.nodes.items():
                    free[name] -= gpus
            elif number in jobs and not self.of[number].withdraws:
                self.of[number].withdraws = True
                self.of[number].action = msgspec.structs.replace(self.of[number].action, nodes={})

    def ask(self, actions: Iterable[Numbered], outcomes: Iterable[Outcome], now: float) -> None:
        """Remember what was asked for, and how the system answered."""
        for one, outcome in zip(actions, outcomes, strict=True):
            kind, old = one.action.kind, self.of.get(one.job)
            if kind in (ActionKind.RELEASE, ActionKind.RANK):
                self.of.pop(one.job, None)
            elif one.why == "withdraw":
                if outcome.status == REFUSED:
                    # It may have started at last: the next look tells.
                    if old is not None:
                        old.asked = now
                elif outcome.status != NOT_KNOWN:
                    self.of.pop(one.job, None)
            elif outcome.status == REFUSED:
                if old is None or old.tries > self._settings.max_repeats:
                    self.of.pop(one.job, None)
                else:
                    old.tries, old.asked = old.tries + 1, now
            elif old is not None and old.action.kind == kind:
                old.action, old.tries, old.asked = one.action, old.tries + 1, now
            else:
                self.of[one.job] = Intent(one.action, now, now)

    def forget_all(self) -> None:
        """Await nothing any more."""
        self.of.clear()


def _has_happened(intent: Intent, job: LiveJob) -> bool:
    record, kind = job.record, intent.action.kind
    if record.state == FINISHED:
        return True
    if kind == ActionKind.START:
        return record.state == RUNNING
    if kind == ActionKind.PREEMPT:
        return record.state != RUNNING
    if kind == ActionKind.HOLD:
        return record.state != "waiting"
    return True
