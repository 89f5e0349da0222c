"""Writing files so that one of that name is always whole: a temporary name first, then a rename."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from berthline.errors import TraceError


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
