"""Kept runs: the finished runs of a comparison that is under way, in a file that only grows.

    BERTHLINE RUNS 1, and what was asked for, as a line of JSON each
    length, CRC-32, content    for each finished run

The content is the run's key, its record and its job outcomes. The key is a hash of everything that
decides the run: version, scheduler, seed, cluster, the jobs themselves. So a run is taken up again
only by the very same run, whoever changed which file in between. What is asked for is there so
that a changed command can be told what differs. A last run that was cut short is dropped.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import zlib
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.errors import ConfigError
from berthline.evaluate.job_outcomes import JobOutcomes
from berthline.evaluate.run_record import FinishedRun, RunRecord

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from berthline.evaluate.energy_rate import EnergyRate
    from berthline.evaluate.grid import Grid, Place
    from berthline.model.workload import Workload

_MAGIC = b"BERTHLINE RUNS 1\n"
_HEAD = struct.Struct("<QI")
_KEY_BYTES = hashlib.sha256().digest_size


class _Kept(msgspec.Struct, frozen=True, array_like=True):
    key: bytes
    record: bytes
    jobs: bytes | None


class KeptRuns:
    """The finished runs in a file.

    Args:
        path: the file; it is made when the first run is added.
        asked: what was asked for: every option that decides the results, as plain data.

    Raises:
        ConfigError: the file holds runs of something else, or cannot be read.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self._asked = json.dumps(asked, sort_keys=True, default=str)
        self._found: dict[bytes, _Kept] = {}
        self._keys: dict[Place, bytes] = {}
        self._end = 0
        self._file: Any = None
        if path.is_file():
            self._read()

    def __len__(self) -> int:
        return len(self._found)

    def runs_on(
        self, grid: Grid, cell: int, window: int, workload: Workload
    ) -> Iterator[tuple[Place, FinishedRun]]:
        """Yield the kept runs of a window, and note the keys of all its runs."""
        shared = _key_of_window(grid, cell, workload)
        for place in grid.runs_of(cell, window):
            key = _key_of_run(shared, grid.schedulers[place.scheduler], grid.seeds[place.seed])
            self._keys[place] = key
            # A log is not kept: runs whose log is wanted are made again.
            if (found := self._found.get(key)) and not grid.keeps_log(place):
                record = msgspec.msgpack.decode(found.record, type=RunRecord)
                jobs = None if found.jobs is None else JobOutcomes.from_bytes(found.jobs)
                yield place, FinishedRun(record, jobs)

    def add(self, place: Place, run: FinishedRun) -> None:
        """Append a run that has just finished."""
        kept = _Kept(
            self._keys[place],
            msgspec.msgpack.encode(run.record),
            None if run.jobs is None else run.jobs.to_bytes(),
        )
        content = msgspec.msgpack.encode(kept)
        if self._file is None:
            self._open()
        self._file.write(_HEAD.pack(len(content), zlib.crc32(content)) + content)
        self._file.flush()

    def close(self) -> None:
        """Close the file, which stays."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._end:
            self._file = self.path.open("r+b")
            self._file.truncate(self._end)
            self._file.seek(self._end)
        else:
            self._file = self.path.open("wb")
            self._file.write(_MAGIC + self._asked.encode() + b"\n")

    def _read(self) -> None:
        try:
            content = self.path.read_bytes()
        except OSError as error:
            raise ConfigError(
                f"cannot read the finished runs: {error.strerror}", where=str(self.path)
            ) from None
        line_end = content.find(b"\n", len(_MAGIC))
        if not content.startswith(_MAGIC) or line_end < 0:
            raise ConfigError(
                "not a file of finished runs",
                where=str(self.path),
                expected="what an interrupted berthline compare has left",
                hint="start again with --force",
            )
        self._check(json.loads(content[len(_MAGIC) : line_end]))
        position = line_end + 1
        while position + _HEAD.size <= len(content):
            length, check = _HEAD.unpack_from(content, position)
            part = content[position + _HEAD.size : position + _HEAD.size + length]
            if len(part) < length or zlib.crc32(part) != check:
                break
            kept = msgspec.msgpack.decode(part, type=_Kept)
            self._found[kept.key] = kept
            position += _HEAD.size + length
        self._end = position

    def _check(self, earlier: dict[str, Any]) -> None:
        """Raise unless the same was asked for, naming what differs."""
        now = json.loads(self._asked)
        for name in (*earlier, *now):
            if earlier.get(name) != now.get(name):
                raise ConfigError(
                    f"the unfinished run was asked for something else: {name} was "
                    f"{_shown(earlier.get(name))}, and is {_shown(now.get(name))}",
                    where=str(self.path.parent),
                    expected="--resume with the same command",
                    hint="start again with --force, or choose another --out",
                )


def _shown(value: object) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return str(value)


def _key_of_window(grid: Grid, cell: int, workload: Workload) -> hashlib._Hash:
    """Return a hash of what all runs of a window share."""
    from importlib.metadata import version

    from berthline.model.write_cluster_file import cluster_text

    place = grid.cells[cell]
    digest = hashlib.sha256()
    texts = (
        version("berthline"),
        repr(grid.settings),
        cluster_text(place.cluster),
        _rate_text(place.energy_rate),
        workload.reference_type,
        repr((workload.user_names, workload.pool_names, workload.gpu_type_sets)),
    )
    for text in texts:
        digest.update(text.encode() + b"\0")
    for field in dataclasses.fields(workload):
        column = getattr(workload, field.name)
        if isinstance(column, np.ndarray) and field.name != "names":
            digest.update(np.ascontiguousarray(column).data)
    return digest


def _rate_text(rate: EnergyRate | None) -> str:
    return "" if rate is None else repr((list(rate.times), list(rate.values), rate.period))


def _key_of_run(shared: hashlib._Hash, scheduler: str, seed: int) -> bytes:
    from berthline.policies.scheduler import Scheduler

    digest = shared.copy()
    digest.update(f"{Scheduler.parse(scheduler)!r}\0{seed}".encode())
    return digest.digest()
