"""Atomic writes: a file or directory under its final name is always complete.

The content is written under a temporary name in the same directory and then renamed. If the process
is killed, the old or the new content remains. A directory cannot be replaced in one step: a process
killed between the two renames leaves the old one beside its place, under a name with REPLACED.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from berthline.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTIAL = ".partial-"
"""Part of every temporary name; the process id follows."""
REPLACED = ".replaced-"
"""Part of the name of a directory while another takes its place; the process id follows."""


def partial_name(path: Path) -> Path:
    """Return the temporary name of a file or directory; it has the same suffix."""
    return path.with_name(f".{path.name}{PARTIAL}{os.getpid()}{path.suffix}")


@contextlib.contextmanager
def complete_file(path: str | os.PathLike[str], *, what: str = "the file") -> Iterator[Path]:
    """Yield a temporary name, which becomes `path` when the block ends without an error.

    Args:
        path: the file, which is replaced if it exists.
        what: how an error message names the file.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
    """
    path = Path(path)
    _check_name(path, what)
    partial = partial_name(path)
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        raise _unwritable(error.strerror or error, path, what) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write `content` to a file, which is replaced if it exists, and return its path.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
    """
    with complete_file(path) as partial:
        partial.write_bytes(content)
    return Path(path)


@contextlib.contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece; it gets its name when it is complete.

    A name that ends in .gz is compressed.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
    """
    with complete_file(path) as partial, partial.open("wb") as plain:
        if Path(path).suffix == ".gz":
            # Without a timestamp, equal content gives equal files.
            with gzip.GzipFile("", "wb", 5, plain, mtime=0) as packed:
                yield packed  # type: ignore[misc]  # it writes bytes as a BinaryIO does
        else:
            yield plain


@contextlib.contextmanager
def complete_directory(
    path: str | os.PathLike[str], *, what: str = "the directory"
) -> Iterator[Path]:
    """Yield a new directory, which becomes `path` when the block ends without an error.

    Args:
        path: the directory, which is replaced if it exists; its parents need not exist.
        what: how an error message names the directory.

    Raises:
        OutputError: it cannot be written; what was there before is untouched.
    """
    path = Path(path).absolute()
    _check_name(path, what)
    partial = partial_name(path)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        yield partial
        replace_directory(partial, path)
    except OSError as error:
        raise _unwritable(error.strerror or error, path, what) from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def replace_directory(new: Path, path: Path) -> None:
    """Give a directory its name; what has the name is removed last, when the new one is in place.

    Raises:
        OSError: it cannot be renamed; what was there before is untouched.
    """
    if not path.exists():
        new.rename(path)
        return
    if path.is_symlink() or not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "not a directory", str(path))
    old = path.with_name(f".{path.name}{REPLACED}{os.getpid()}")
    shutil.rmtree(old, ignore_errors=True)  # of a killed process that had this id
    path.rename(old)
    try:
        new.rename(path)
    except BaseException:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _check_name(path: Path, what: str) -> None:
    """Raise for a path that no file system accepts; opening it would raise a ValueError."""
    try:
        is_name = bool(path.name) and b"\0" not in os.fsencode(path)
    except UnicodeError:
        is_name = False
    if not is_name:
        raise _unwritable("not a valid name", path, what)


def _unwritable(reason: object, path: Path, what: str) -> OutputError:
    return OutputError(
        f"cannot write {what} ({reason})",
        where=str(path),
        expected="a name in a directory that exists and can be written to",
    )
