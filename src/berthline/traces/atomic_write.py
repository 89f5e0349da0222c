"""Writing files so that one of that name is always whole: a temporary name first, then a rename."""

from __future__ import annotations

import contextlib
import gzip
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_atomically(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write `content` to a file, which is replaced if it exists, and return its path.

    Raises:
        TraceError: it cannot be written; what was there before is untouched.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial") if path.name else path
    try:
        partial.write_bytes(content)
        partial.replace(path)
    except (OSError, ValueError) as error:  # ValueError: a path with a zero character in it
        with contextlib.suppress(OSError, ValueError):
            partial.unlink(missing_ok=True)
        raise TraceError(
            f"cannot write the file ({getattr(error, 'strerror', None) or error})",
            where=str(path),
            expected="a file in a directory that exists and can be written to",
        ) from None
    return path


@contextlib.contextmanager
def open_atomically(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file to be written piece by piece; it has its name only when all is written.

    A name that ends in .gz is compressed.

    Raises:
        TraceError: it cannot be written; what was there before is untouched.
    """
    path = Path(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial") if path.name else path
    try:
        with partial.open("wb") as plain:
            if path.suffix == ".gz":
                # Without a time in it, the same content makes the same file.
                with gzip.GzipFile("", "wb", 5, plain, mtime=0) as packed:
                    yield packed  # type: ignore[misc]  # it writes bytes as a BinaryIO does
            else:
                yield plain
        partial.replace(path)
    except OSError as error:
        raise TraceError(
            f"cannot write the file ({error.strerror or error})",
            where=str(path),
            expected="a file in a directory that exists and can be written to",
        ) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
