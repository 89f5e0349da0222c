"""Kept runs: the finished runs of an unfinished comparison, in a file that only grows.

    BERTHLINE RUNS 2           a line
    CRC-32, settings           a line: eight hexadecimal digits, a blank, JSON
    length, CRC-32, content    for each finished run

The content is the run's key, its record and its job outcomes. The key is a hash of everything that
affects the run: version, scheduler, seed, cluster, the jobs. A kept run is used only for a run with
the same key, so a file that was changed in between has no effect. The settings are kept to tell the
user of a changed command what differs. An incomplete last run is dropped, and so is what
follows a damaged one: these runs are made again. If a key is there twice, the last one counts.

Only keys are in memory; a run is read from the file when it is asked for.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from berthline.errors import ConfigError, OutputError
from berthline.sealed_json import damaged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_MAGIC = b"BERTHLINE RUNS 2\n"
_HEAD = struct.Struct("<QI")


class KeptRun(msgspec.Struct, frozen=True, array_like=True):
    """A finished run.

    Attributes:
        key: a hash of everything that affects it.
        record: its metrics, as MessagePack.
        jobs: what became of its jobs (`JobOutcomes.to_bytes`); None = not requested.
    """

    key: bytes
    record: bytes
    jobs: bytes | None


class _Head(msgspec.Struct, array_like=True):
    """A finished run, of which only the key is decoded."""

    key: bytes
    record: msgspec.Raw
    jobs: msgspec.Raw


class KeptRuns:
    """The finished runs in a file.

    Args:
        path: the file; it is created when the first run is added.
        asked: every setting that affects the results, as plain data.

    Raises:
        ConfigError: the file holds runs with other settings, or cannot be read.
    """

    def __init__(self, path: Path, asked: Mapping[str, Any]) -> None:
        self.path = path
        self._asked = json.dumps(asked, sort_keys=True, default=str)
        self._places: dict[bytes, tuple[int, int]] = {}  # where the content begins, its length
        self._end = 0
        self._file: Any = None
        self._reader: Any = None
        if path.is_file():
            self._read()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._places)

    def find(self, key: bytes) -> KeptRun | None:
        """Return the run with a key; None = it is not kept.

        Raises:
            ConfigError: the file cannot be read any more.
        """
        if key not in self._places:
            return None
        place, length = self._places[key]
        try:
            if self._reader is None:
                self._reader = self.path.open("rb")
            self._reader.seek(place)
            return msgspec.msgpack.decode(self._reader.read(length), type=KeptRun)
        except (OSError, msgspec.DecodeError) as error:
            raise ConfigError(
                f"cannot read a finished run: {error}", where=str(self.path)
            ) from None

    def begin(self) -> None:
        """Create the file before the first run is added.

        Raises:
            OutputError: the disk is full, or the directory cannot be written.
        """
        self._write(b"")

    def add(self, run: KeptRun) -> None:
        """Append a run that has just finished.

        Raises:
            OutputError: the disk is full, or the directory cannot be written.
        """
        content = msgspec.msgpack.encode(run)
        self._write(_HEAD.pack(len(content), zlib.crc32(content)) + content)
        self._places[run.key] = (self._end - len(content), len(content))

    def _write(self, content: bytes) -> None:
        try:
            if self._file is None:
                self._open()
            self._file.write(content)
            self._file.flush()
            self._end += len(content)
        except OSError as error:
            raise OutputError(
                f"cannot keep a finished run: {error.strerror or error}",
                where=str(self.path),
                expected="a directory that can be written to",
            ) from None

    def close(self) -> None:
        """Close the file; it is not deleted."""
        for file in (self._file, self._reader):
            if file is not None:
                file.close()
        self._file = self._reader = None

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._end:
            self._file = self.path.open("r+b")
            self._file.truncate(self._end)
            self._file.seek(self._end)
        else:
            self._file = self.path.open("wb")
            asked = self._asked.encode()
            head = _MAGIC + b"%08x %b\n" % (zlib.crc32(asked), asked)
            self._file.write(head)
            self._end = len(head)

    def _read(self) -> None:
        try:
            with self.path.open("rb") as file:
                self._read_all(file)
        except OSError as error:
            raise ConfigError(
                f"cannot read the finished runs: {error.strerror}", where=str(self.path)
            ) from None

    def _read_all(self, file: BinaryIO) -> None:
        first, second = file.readline(), file.readline()
        is_cut = first == _MAGIC and not second.endswith(b"\n")
        if is_cut or (first != _MAGIC and _MAGIC.startswith(first)):
            return  # stopped before the first run was kept
        if first != _MAGIC:
            raise ConfigError(
                "not a file of finished runs",
                where=str(self.path),
                expected="the file that an interrupted comparison leaves",
                hint="start again with `force`",
            )
        check, _, settings = second[:-1].partition(b" ")
        if check != b"%08x" % zlib.crc32(settings):
            raise damaged(
                "the file of finished runs", "the checksum of its settings is wrong",
                where=str(self.path), hint="start again with `force`",
            )  # fmt: skip
        self._check(json.loads(settings))
        self._end = len(first) + len(second)
        size = self.path.stat().st_size
        while len(head := file.read(_HEAD.size)) == _HEAD.size:
            length, crc = _HEAD.unpack(head)
            place = self._end + _HEAD.size
            if place + length > size:
                break
            part = file.read(length)
            if len(part) < length or zlib.crc32(part) != crc:
                break
            self._places[msgspec.msgpack.decode(part, type=_Head).key] = (place, length)
            self._end = place + length

    def _check(self, earlier: dict[str, Any]) -> None:
        """Raise if the settings differ, naming the first difference."""
        now = json.loads(self._asked)
        for name in (*earlier, *now):
            if earlier.get(name) != now.get(name):
                raise ConfigError(
                    f"the unfinished run has other settings: {name} was "
                    f"{_in_words(earlier.get(name))}, and is {_in_words(now.get(name))}",
                    where=str(self.path.parent),
                    expected="the same settings to resume it",
                    hint="start again with `force`, or choose another directory",
                )


def _in_words(value: object) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "none"
    return str(value)
