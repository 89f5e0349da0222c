"""replay_journal: all decisions of a journal made again, from the journal alone.

Looks, known jobs, nodes, awaited starts and the files of policies are in the journal; so the same
snapshots follow, and the same decisions. The first difference is reported.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.deploy.control.controller import decided_rows
from berthline.deploy.control.decide_in_time import Made, actions_of
from berthline.deploy.journal.journal_file import JournalReader
from berthline.deploy.looks.known_jobs import KnownJobs
from berthline.deploy.looks.live_cluster import LiveCluster
from berthline.deploy.looks.seen import AskedStart, jobs_of, see, snapshot_hash
from berthline.errors import BerthlineError
from berthline.policies.learned import DIGITS
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from berthline.deploy.journal.journal_file import Entry, PartStart


class ReplayedJournal(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay found.

    Attributes:
        journal: its directory.
        cycles: cycles of the journal.
        decisions: decisions that were made again.
        left_out: decisions of Python objects that only their process had.
        difference: the first one; empty = none.
    """

    journal: str
    cycles: int
    decisions: int
    left_out: int
    difference: str


def replay_journal(
    directory: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> ReplayedJournal:
    """Make all decisions of a journal again.

    Args:
        directory: of the journal.
        progress: called with the number of cycles.

    Raises:
        ConfigError: there is no journal, or it is damaged.
    """
    reader = JournalReader(directory)
    cycles = decisions = left_out = 0
    with tempfile.TemporaryDirectory(prefix="berthline-") as room:
        schedulers = _Schedulers(reader, Path(room))
        for part in reader.parts:
            replay = _Part(reader.start(part), schedulers)
            for entry in reader.entries(part):
                cycles += 1
                if progress is not None:
                    progress(cycles)
                found = replay.difference(entry)
                left_out += found is None
                decisions += bool(entry.cycle.snapshot) and found is not None
                if found:
                    return ReplayedJournal(
                        journal=str(directory),
                        cycles=cycles,
                        decisions=decisions,
                        left_out=left_out,
                        difference=f"cycle {entry.cycle.number}: {found}",
                    )
    return ReplayedJournal(
        journal=str(directory),
        cycles=cycles,
        decisions=decisions,
        left_out=left_out,
        difference="",
    )


class _Schedulers:
    """Schedulers by text; learned policies are read from the journal."""

    def __init__(self, reader: JournalReader, room: Path) -> None:
        self._known: dict[str, Scheduler | None] = {}
        self._rooms: dict[str, Path] = {}
        for sha256, files in reader.policies().items():
            place = room / sha256[:DIGITS]
            place.mkdir()
            for name, content in files.items():
                # Names come from a file that anybody may have written.
                (place / Path(name).name).write_bytes(content)
            onnx = sorted(place.glob("*.onnx"))
            self._rooms[sha256[:DIGITS]] = onnx[0] if onnx else place

    def find(self, text: str) -> Scheduler | None:
        """Return a scheduler; None = a Python object of another process."""
        if text not in self._known:
            self._known[text] = self._parsed(text)
        return self._known[text]

    def _parsed(self, text: str) -> Scheduler | None:
        for digits, place in self._rooms.items():
            _, mark, rules = text.partition(f"#{digits}")
            if mark:
                return Scheduler.parse(f"{place}{mark}{rules}")
        try:
            return Scheduler.parse(text)
        except BerthlineError:
            if text.startswith("policy:"):
                return None
            raise


class _Part:
    """One part of a journal, replayed in order."""

    def __init__(self, start: PartStart, schedulers: _Schedulers) -> None:
        self._known = KnownJobs(start.jobs, start.next_number)
        self._nodes = LiveCluster(start.system, start.nodes)
        self._start, self._schedulers = start, schedulers

    def difference(self, entry: Entry) -> str | None:
        """Return what differs in a cycle; empty = nothing, None = it cannot be made again."""
        cycle, look = entry.cycle, entry.look
        if look is None or not cycle.snapshot:
            return ""
        scheduler = self._schedulers.find(cycle.decided_by)
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
        if (found := snapshot_hash(seen.snapshot)) != cycle.snapshot:
            return f"the snapshot has the hash {found[:12]}, not {cycle.snapshot[:12]}"
        if scheduler is None:
            return None
        actions = actions_of(seen.snapshot, scheduler, cycle.knowledge)
        rows = decided_rows(Made(actions, cycle.decided_by), seen)
        if rows == cycle.decision:
            return ""
        at = next(
            (n for n, (a, b) in enumerate(zip(rows, cycle.decision, strict=False)) if a != b),
            min(len(rows), len(cycle.decision)),
        )
        shown = [str(r[at]) if at < len(r) else "nothing" for r in (rows, cycle.decision)]
        return f"action {at}: {shown[0]}, in the journal {shown[1]}"
