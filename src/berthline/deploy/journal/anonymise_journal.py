"""anonymise_journal: a copy of a journal without names of users and jobs, for bug reports.

Users and names of jobs become hashes with a key that is thrown away; words of the system are left
out. The copy can be replayed: hashes of snapshots are made again.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.journal.journal_file import JournalReader, JournalWriter, PartStart
from berthline.deploy.looks.check_look import in_order
from berthline.deploy.looks.known_jobs import KnownJob, KnownJobs
from berthline.deploy.looks.live_cluster import LiveCluster
from berthline.deploy.looks.seen import AskedStart, jobs_of, see, snapshot_hash
from berthline.errors import ConfigError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from berthline.deploy.journal.journal_file import Entry
    from berthline.deploy.systems.contract import JobRecord, Look


class Copied(msgspec.Struct, frozen=True, kw_only=True):
    """What was copied."""

    journal: str
    cycles: int


def anonymise_journal(
    directory: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    progress: Callable[[int], None] | None = None,
) -> Copied:
    """Write a copy of a journal without names.

    Args:
        directory: of the journal.
        out: a directory that does not exist.
        progress: called with the number of cycles.

    Raises:
        ConfigError: there is no journal, or the directory exists.
    """
    target = Path(out)
    if target.exists():
        raise ConfigError("the copy exists", where=str(target), expected="a new directory")
    reader = JournalReader(directory)
    start = reader.start()
    writer = JournalWriter(target, start.system)
    copy = _Copy(writer)
    cycles = 0
    try:
        for part in reader.parts:
            copy.begin(reader.start(part))
            for sha256, files in reader.policies(part).items():
                writer.write_policy(sha256, files)
            for entry in reader.entries(part):
                copy.write(entry)
                cycles += 1
                if progress is not None:
                    progress(cycles)
    finally:
        writer.close()
    return Copied(journal=str(target), cycles=cycles)


class _Copy:
    def __init__(self, writer: JournalWriter) -> None:
        self._writer, self._key = writer, secrets.token_bytes(16)
        self._known, self._nodes = KnownJobs(), LiveCluster("")
        self._start: PartStart | None = None

    def _hashed(self, text: str) -> str:
        if not text:
            return ""
        return hashlib.blake2b(text.encode(), key=self._key, digest_size=6).hexdigest()

    def begin(self, start: PartStart) -> None:
        jobs = [self._job(job) for job in start.jobs]
        self._start = msgspec.structs.replace(start, jobs=jobs)
        self._known = KnownJobs(jobs, start.next_number)
        self._nodes = LiveCluster(start.system, start.nodes)
        self._writer.begin_part(self._start)

    def _job(self, job: KnownJob) -> KnownJob:
        user, name, gpus = job.about.split("\0")
        about = f"{self._hashed(user)}\0{self._hashed(name)}\0{gpus}"
        return msgspec.structs.replace(job, about=about)

    def _record(self, job: JobRecord) -> JobRecord:
        return msgspec.structs.replace(
            job, user=self._hashed(job.user), name=self._hashed(job.name), words="", reason=""
        )

    def _look(self, look: Look) -> Look:
        return in_order(
            msgspec.structs.replace(look, jobs=tuple(self._record(job) for job in look.jobs))
        )

    def write(self, entry: Entry) -> None:
        assert self._start is not None
        cycle, look = entry.cycle, entry.look
        if look is not None:
            look = self._look(look)
        if look is not None and cycle.snapshot:
            seen = see(
                look,
                jobs_of(look, self._known),
                self._nodes,
                origin=self._start.origin,
                asked={held.job: AskedStart(held.time, held.nodes) for held in cycle.held},
                scheduler=cycle.scheduler,
                knowledge=cycle.knowledge,
                seed=self._start.seed,
            )
            cycle = msgspec.structs.replace(cycle, snapshot=snapshot_hash(seen.snapshot))
        self._writer.write_cycle(
            cycle, look, self._known.changed.values(), self._nodes.changed.values()
        )
        self._known.changed.clear()
        self._nodes.changed.clear()
        if entry.outcomes is not None:
            self._writer.write_outcomes(entry.outcomes)
