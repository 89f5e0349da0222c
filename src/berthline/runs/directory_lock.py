"""A lock on a directory: one process at a time writes there.

The lock is of the operating system, so it ends with its owner, however that ends. The file names
the owner for the others.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import platform
from typing import IO, TYPE_CHECKING

from berthline.errors import OutputError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a file while the block runs; the file is removed with it.

    Raises:
        RefusedError: another process holds it.
        OutputError: the file cannot be written.
    """
    with _held(file) as stream:
        try:
            stream.truncate(0)
            owner = {
                "pid": os.getpid(),
                "machine": platform.node(),
                "started": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            }
            stream.write(json.dumps(owner) + "\n")
            stream.flush()
            yield
        finally:
            with contextlib.suppress(OSError):
                file.unlink()


def _held(file: Path) -> IO[str]:
    """Return the open file, with its lock."""
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            stream = file.open("a+", encoding="utf-8")
        except OSError as error:
            raise OutputError(
                f"cannot write the output directory: {error.strerror}", where=str(file.parent)
            ) from None
        try:
            _take(stream, file)
        except BaseException:
            stream.close()
            raise
        # An owner that has just ended may have removed the file in between.
        with contextlib.suppress(OSError):
            if os.fstat(stream.fileno()).st_ino == file.stat().st_ino:
                return stream
        stream.close()


def refuse_if_held(file: Path) -> None:
    """Raise if another process holds the lock of a file.

    Raises:
        RefusedError: one does.
    """
    with contextlib.suppress(OSError), file.open("r+", encoding="utf-8") as stream:
        _take(stream, file)


def _take(stream: IO[str], file: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on this system: it has no such locks
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RefusedError(
            f"another process writes there{_owner(stream)}",
            where=str(file.parent),
            expected="a directory for this one alone",
            hint="wait until it has ended, or choose another directory",
        ) from None
    except OSError:
        return  # a file system without locks


def _owner(stream: IO[str]) -> str:
    try:
        stream.seek(0)
        owner = json.loads(stream.read())
        return f" (process {owner['pid']} on {owner['machine']}, since {owner['started']})"
    except (OSError, ValueError, KeyError, TypeError):
        return ""
