"""What happened between looks: starts, ends, jobs that went back or vanished."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.journal.journal_records import SeenStart
from berthline.deploy.systems.contract import FINISHED, RUNNING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from berthline.deploy.looks.seen import LiveJob

VANISHED = 3
"""A job that this number of looks in a row does not show is over."""


class _Last(msgspec.Struct):
    state: str
    started: float | None
    missing: int = 0


class Observer:
    """The states of jobs as looks have shown them."""

    def __init__(self) -> None:
        self._last: dict[int, _Last] = {}

    def follow(self, time: float, jobs: Mapping[int, LiveJob]) -> tuple[SeenStart, ...]:
        """Return what a look shows for the first time."""
        seen: list[SeenStart] = []
        for number, job in jobs.items():
            record = job.record
            last = self._last.get(number)
            was = "" if last is None else last.state
            started = record.started if record.state == RUNNING else None
            if record.state == RUNNING:
                if was != RUNNING or (last is not None and last.started != started):
                    if was == RUNNING:
                        seen.append(SeenStart("stop", number, time))
                    seen.append(SeenStart("start", number, started or time, dict(record.nodes)))
            elif record.state == FINISHED:
                if was and was != FINISHED:
                    end = time if record.finished is None else record.finished
                    seen.append(SeenStart("finish", number, end))
            elif was == RUNNING:
                seen.append(SeenStart("stop", number, time))
            self._last[number] = _Last(record.state, started)
        for number in [number for number in self._last if number not in jobs]:
            last = self._last[number]
            last.missing += 1
            if last.missing >= VANISHED:
                del self._last[number]
                if last.state != FINISHED:
                    seen.append(SeenStart("vanish", number, time))
        return tuple(seen)

    @property
    def gone(self) -> int:
        """How many jobs are known that the last look did not show."""
        return sum(1 for last in self._last.values() if last.missing)
