"""Journal: the directory of a controller's journal. One process writes; any number read.

    journal-0001.sqlite   a part: a day of cycles; older parts can be moved away
    lock                  held by the process that writes
    heartbeat             of the controller, and `guard-heartbeat` of its guard

A part begins with all that is needed to read it alone: the known jobs, the nodes, a whole look.
Rows are added and never changed. A commit is on the disk when it returns.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from berthline.deploy.journal.journal_records import (
    CycleRecord,
    Outcomes,
    Remark,
    packed_record,
    unpacked_record,
)
from berthline.deploy.looks.known_jobs import KnownJob
from berthline.deploy.looks.look_changes import change, changed, packed, unpacked, whole
from berthline.deploy.systems.contract import Look, NodeRecord
from berthline.errors import ConfigError, OutputError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SCHEMA = 1
PART_SECONDS = 86400.0
WHOLE_EVERY = 3600.0
_LOCK = "lock"
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE cycles (number INTEGER PRIMARY KEY, time REAL NOT NULL, look BLOB, cycle BLOB NOT NULL,
                     is_whole INTEGER NOT NULL);
CREATE TABLE outcomes (cycle INTEGER NOT NULL, outcomes BLOB NOT NULL);
CREATE TABLE jobs (job BLOB NOT NULL);
CREATE TABLE nodes (node BLOB NOT NULL);
CREATE TABLE remarks (remark BLOB NOT NULL);
CREATE TABLE policies (sha256 TEXT PRIMARY KEY, files BLOB NOT NULL);
"""


class PartStart(msgspec.Struct, kw_only=True):
    """What a part begins with.

    Attributes:
        schema: of the file.
        system: the adapter's name.
        origin: the time of the system's clock that is 0 in snapshots.
        nodes: the nodes so far, by id.
        jobs: the known jobs.
        next_number: of the next new job.
        began: the time of the first look of the part.
        seed: of random draws.
    """

    schema: int
    system: str
    origin: float
    nodes: list[NodeRecord]
    jobs: list[KnownJob]
    next_number: int
    began: float
    seed: int = 0


class Entry(NamedTuple):
    """A cycle as read: its look, if it had one, and what became of its actions."""

    cycle: CycleRecord
    look: Look | None
    outcomes: Outcomes | None


def parts_of(directory: Path) -> list[Path]:
    """Return the parts of a journal, oldest first.

    Raises:
        ConfigError: there are none.
    """
    found = sorted(directory.glob("journal-*.sqlite")) if directory.is_dir() else []
    if not found:
        raise ConfigError(
            "there is no journal",
            where=str(directory),
            expected="a directory that berthline deploy --journal wrote",
        )
    return found


def is_journal(path: str | os.PathLike[str]) -> bool:
    """Whether a path is the directory of a journal."""
    directory = Path(path)
    try:
        return directory.is_dir() and any(directory.glob("journal-*.sqlite"))
    except (OSError, ValueError):
        return False


class JournalReader:
    """A journal as it is now; another process may be writing it.

    Args:
        directory: of the journal.

    Raises:
        ConfigError: there is none, or it cannot be read.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.parts = parts_of(self.directory)

    def start(self, part: Path | None = None) -> PartStart:
        """Return what a part begins with; None = the first."""
        with closing(_connected(part or self.parts[0])) as file:
            return _start_of(file, part or self.parts[0])

    def entries(self, part: Path | None = None) -> Iterator[Entry]:
        """Yield the cycles of a part, or of all, in order."""
        for path in self.parts if part is None else [part]:
            with closing(_connected(path)) as file:
                yield from _entries(file, path)

    def remarks(self) -> list[Remark]:
        """Return all remarks, in order."""
        found = []
        for path in self.parts:
            with closing(_connected(path)) as file:
                rows = _rows(file, path, "SELECT remark FROM remarks ORDER BY rowid")
                found += [_unpacked(row[0], Remark, path) for row in rows]
        return found

    def last(self) -> CycleRecord | None:
        """Return the last cycle."""
        for path in reversed(self.parts):
            with closing(_connected(path)) as file:
                query = "SELECT cycle FROM cycles ORDER BY number DESC LIMIT 1"
                for row in _rows(file, path, query):
                    found: CycleRecord = _unpacked(row[0], CycleRecord, path)
                    return found
        return None

    def last_look(self) -> Look | None:
        """Return the last look."""
        for path in reversed(self.parts):
            with closing(_connected(path)) as file:
                if (look := _last_look(file, path)) is not None:
                    return look
        return None

    def policies(self, part: Path | None = None) -> dict[str, dict[str, bytes]]:
        """Return the files of the policies that decided in a part, or in all, by hash."""
        found: dict[str, dict[str, bytes]] = {}
        for path in self.parts if part is None else [part]:
            with closing(_connected(path)) as file:
                for sha256, files in _rows(file, path, "SELECT sha256, files FROM policies"):
                    found[sha256] = msgspec.msgpack.decode(files, type=dict[str, bytes])
        return found


class JournalWriter:
    """The one process that writes a journal.

    Args:
        directory: of the journal, which is made if it is not there.
        system: the adapter's name; a journal is about one system.

    Raises:
        RefusedError: another process writes it, or it is about another system.
    """

    def __init__(self, directory: str | os.PathLike[str], system: str) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise OutputError(
                f"the journal cannot be written: {error.strerror}", where=str(self.directory)
            ) from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise RefusedError(
                "another controller writes this journal",
                where=str(self.directory),
                expected="one controller for a journal",
                hint=f"berthline deploy stop {self.directory}",
            ) from None
        self.system = system
        self._file: sqlite3.Connection | None = None
        self.begin: PartStart | None = None
        self.last_cycle = 0
        self.last_look: Look | None = None
        self.known: list[KnownJob] = []
        self.nodes: list[NodeRecord] = []
        self._whole_at = float("-inf")
        self._policies: set[str] = set()
        if is_journal(self.directory):
            self._continue(parts_of(self.directory)[-1])

    def _continue(self, path: Path) -> None:
        """Continue the last part."""
        file = self._file = _connected(path, may_write=True)
        begin = self.begin = _start_of(file, path)
        if begin.system != self.system:
            self.close()
            raise RefusedError(
                f"the journal is about {begin.system!r}, not {self.system!r}",
                where=str(self.directory),
                hint="choose another directory: `journal`",
            )
        jobs = {job.number: job for job in begin.jobs}
        for (data,) in _rows(file, path, "SELECT job FROM jobs ORDER BY rowid"):
            job = msgspec.msgpack.decode(data, type=KnownJob)
            jobs[job.number] = job
        self.known = list(jobs.values())
        self._policies = {row[0] for row in _rows(file, path, "SELECT sha256 FROM policies")}
        query = "SELECT max(number) FROM cycles"
        self.last_cycle = _rows(file, path, query)[0][0] or 0
        # The next look is whole, so a reader never needs what came before the stop.
        self.last_look = _last_look(file, path)
        nodes = {node.name: node for node in begin.nodes}
        for (data,) in _rows(file, path, "SELECT node FROM nodes ORDER BY rowid"):
            node = msgspec.msgpack.decode(data, type=NodeRecord)
            nodes[node.name] = node
        self.nodes = list(nodes.values())

    @property
    def is_new(self) -> bool:
        """Whether nothing has been written yet."""
        return self.begin is None

    def begin_part(self, start: PartStart) -> None:
        """Begin the next part."""
        if self._file is not None:
            self._file.close()
        names = [int(p.stem.rpartition("-")[2]) for p in self.directory.glob("journal-*.sqlite")]
        number = max([0, *names]) + 1
        path = self.directory / f"journal-{number:04}.sqlite"
        partial = path.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial, isolation_level=None)) as file:
            file.executescript(_TABLES)
            file.execute("INSERT INTO facts VALUES ('start', ?)", (msgspec.msgpack.encode(start),))
        partial.rename(path)
        self._file = _connected(path, may_write=True)
        self.begin = start
        self.last_look = None
        self._policies = set()
        self._whole_at = float("-inf")

    def write_cycle(
        self,
        cycle: CycleRecord,
        look: Look | None,
        jobs: Iterable[KnownJob] = (),
        nodes: Iterable[NodeRecord] = (),
    ) -> None:
        """Add a cycle, before anything is done.

        Args:
            cycle: the cycle.
            look: what was seen, in order; None = nothing was.
            jobs: known jobs that are new or have changed.
            nodes: nodes that are new or whose size or type has changed.
        """
        data, is_whole = None, False
        if look is not None:
            is_whole = self.last_look is None or look.time >= self._whole_at + WHOLE_EVERY
            is_whole = is_whole or self._whole_at == float("-inf")
            found = whole(look) if is_whole else change(self.last_look or look, look)
            data, is_whole = packed(found), found.whole
            if is_whole:
                self._whole_at = look.time
        with self._transaction() as file:
            file.execute(
                "INSERT INTO cycles VALUES (?, ?, ?, ?, ?)",
                (cycle.number, cycle.time, data, packed_record(cycle), int(is_whole)),
            )
            rows = [(msgspec.msgpack.encode(job),) for job in jobs]
            file.executemany("INSERT INTO jobs VALUES (?)", rows)
            rows = [(msgspec.msgpack.encode(node),) for node in nodes]
            file.executemany("INSERT INTO nodes VALUES (?)", rows)
        self.last_look = look or self.last_look
        self.last_cycle = cycle.number

    def write_outcomes(self, outcomes: Outcomes) -> None:
        """Add what became of the actions of a cycle."""
        with self._transaction() as file:
            file.execute(
                "INSERT INTO outcomes VALUES (?, ?)", (outcomes.cycle, packed_record(outcomes))
            )

    def write_policy(self, sha256: str, files: dict[str, bytes]) -> None:
        """Keep the files of a policy, so that its decisions can be made again anywhere."""
        if sha256 in self._policies:
            return
        with self._transaction() as file:
            file.execute(
                "INSERT INTO policies VALUES (?, ?)", (sha256, msgspec.msgpack.encode(files))
            )
        self._policies.add(sha256)

    def remark(self, kind: str, words: str, **facts: Any) -> None:
        """Add a remark."""
        record = Remark(wall=time.time(), kind=kind, words=words, facts=facts)
        with self._transaction() as file:
            file.execute("INSERT INTO remarks VALUES (?)", (packed_record(record),))

    def _transaction(self) -> sqlite3.Connection:
        """Return the file; as a context, all of the block is written, or nothing."""
        assert self._file is not None, "begin_part comes first"
        return self._file

    def close(self) -> None:
        """Let another process write."""
        if self._file is not None:
            self._file.close()
            self._file = None
        os.close(self._lock)


def _connected(path: Path, *, may_write: bool = False) -> sqlite3.Connection:
    try:
        if not may_write:
            # Not read-only as SQLite means it: a reader of a WAL takes part in its shared memory.
            file = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
            file.execute("PRAGMA query_only = ON")
            return file
        file = sqlite3.connect(path, timeout=30.0, check_same_thread=False)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA synchronous = FULL")
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None
    return file


def _rows(file: sqlite3.Connection, path: Path, query: str) -> list[Any]:
    try:
        return file.execute(query).fetchall()
    except sqlite3.Error as error:
        raise _unreadable(path, error) from None


def _start_of(file: sqlite3.Connection, path: Path) -> PartStart:
    rows = _rows(file, path, "SELECT value FROM facts WHERE name = 'start'")
    try:
        start = msgspec.msgpack.decode(rows[0][0], type=PartStart)
    except (IndexError, msgspec.MsgspecError) as error:
        raise _unreadable(path, error) from None
    if start.schema != SCHEMA:
        raise ConfigError(
            f"the journal has schema {start.schema}", where=str(path), expected=str(SCHEMA)
        )
    return start


def _entries(file: sqlite3.Connection, path: Path, since: int = 0) -> Iterator[Entry]:
    outcomes: dict[int, Outcomes] = {}
    for number, data in _rows(file, path, f"SELECT * FROM outcomes WHERE cycle >= {int(since)}"):
        outcomes[number] = _unpacked(data, Outcomes, path)
    look: Look | None = None
    query = f"SELECT number, look, cycle FROM cycles WHERE number >= {int(since)} ORDER BY number"
    for number, seen, data in _rows(file, path, query):
        now = None
        if seen is not None:
            try:
                now = look = changed(look, unpacked(seen))
            except (ValueError, KeyError) as error:
                raise _unreadable(path, error) from None
        yield Entry(_unpacked(data, CycleRecord, path), now, outcomes.get(number))


def _last_look(file: sqlite3.Connection, path: Path) -> Look | None:
    since = _rows(file, path, "SELECT max(number) FROM cycles WHERE is_whole")[0][0]
    look = None
    for entry in _entries(file, path, since or 0):
        look = entry.look or look
    return look


def _unpacked(data: bytes, kind: Any, path: Path) -> Any:
    try:
        return unpacked_record(data, kind)
    except ValueError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: object) -> ConfigError:
    return ConfigError(f"the journal cannot be read: {error}", where=str(path))
