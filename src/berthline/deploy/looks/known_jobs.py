"""KnownJobs: a number for each job that is the same from look to look, and over restarts.

A system uses ids again after a crash, and some change the submission time at a requeue. So a job is
its id and its first submission together; a later time under the same id is the same job only if the
system says that it was started again, and user, name and request are those of before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.deploy.systems.contract import JobRecord

FORGET_SECONDS = 30 * 86400.0
"""A job that no look has shown for so long is forgotten."""


class KnownJob(msgspec.Struct):
    """A job that was seen.

    Attributes:
        number: counts jobs from 0.
        id: the system's.
        submitted: its first submission.
        now_submitted: the submission that the system reports now.
        restarts: as the system reported last.
        about: user, name and request, by which a requeued job is known again.
        seen: the time of the last look that showed it.
    """

    number: int
    id: str
    submitted: float
    now_submitted: float
    restarts: int
    about: str
    seen: float


class KnownJobs:
    """All jobs that were seen and are not forgotten.

    Args:
        jobs: from an earlier run of the controller.
        next_number: the number of the next new job.
    """

    def __init__(self, jobs: Iterable[KnownJob] = (), next_number: int = 0) -> None:
        self.next_number = next_number
        self._by_key: dict[tuple[str, float], KnownJob] = {}
        self._latest: dict[str, KnownJob] = {}
        self.changed: dict[int, KnownJob] = {}
        """Jobs that are new or have changed since this was last cleared, by number."""
        for job in jobs:
            self._add(job)

    def __len__(self) -> int:
        return len(self._latest)

    def _add(self, job: KnownJob) -> None:
        self._by_key[job.id, job.submitted] = job
        self._by_key[job.id, job.now_submitted] = job
        latest = self._latest.get(job.id)
        if latest is None or latest.number <= job.number:
            self._latest[job.id] = job
        self.next_number = max(self.next_number, job.number + 1)

    def find(self, record: JobRecord, time: float) -> KnownJob:
        """Return the job of a record, a new one if it was never seen."""
        known = self._by_key.get((record.id, record.submitted))
        if known is None:
            known = self._requeued(record) or self._new(record, time)
        if known.restarts != record.restarts:
            known.restarts = record.restarts
            self.changed[known.number] = known
        known.seen = time
        return known

    def peek(self, record: JobRecord) -> KnownJob | None:
        """Return the job of a record if it is known by this very submission; nothing changes."""
        return self._by_key.get((record.id, record.submitted))

    def _requeued(self, record: JobRecord) -> KnownJob | None:
        known = self._latest.get(record.id)
        if (
            known is None
            or record.restarts <= known.restarts
            or record.submitted < known.now_submitted
            or _about(record) != known.about
        ):
            return None
        known.now_submitted = record.submitted
        self.changed[known.number] = known
        self._add(known)
        return known

    def _new(self, record: JobRecord, time: float) -> KnownJob:
        job = KnownJob(
            number=self.next_number,
            id=record.id,
            submitted=record.submitted,
            now_submitted=record.submitted,
            restarts=record.restarts,
            about=_about(record),
            seen=time,
        )
        self.changed[job.number] = job
        self._add(job)
        return job

    def all(self) -> list[KnownJob]:
        """Return all jobs, by number."""
        found = {job.number: job for job in self._by_key.values()}
        return [found[number] for number in sorted(found)]

    def forget(self, time: float) -> list[int]:
        """Forget jobs that were not seen for long; return their numbers."""
        old = {job.number: job for job in self._by_key.values() if job.seen < time - FORGET_SECONDS}
        for job in old.values():
            self._by_key.pop((job.id, job.submitted), None)
            self._by_key.pop((job.id, job.now_submitted), None)
            if self._latest.get(job.id) is job:
                del self._latest[job.id]
        return list(old)


def _about(record: JobRecord) -> str:
    # Users and names are hostile text: what parts them must not be in them.
    parts = (record.user, record.name, str(record.gpus))
    return "\0".join(part.replace("\0", "") for part in parts)
