"""Reading trace files, gzip'd or not, with clear errors for files that cannot be read.

Gzip is recognised by its first bytes, not by the file's name. Every error of the file system or of
the decompressor becomes a TraceError that names the file.
"""

from __future__ import annotations

import contextlib
import contextvars
import gzip
import zlib
from typing import TYPE_CHECKING, cast

from berthline import _native
from berthline.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import IO

HEAD_BYTES = 64 * 1024
"""How much of a file a format may read to recognise it."""

PIECE_BYTES = 8 * 1024 * 1024
"""How much of a long file is read at once, if the result is much smaller."""

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes. No record of a job is longer; reading a longer line as one would take minutes."""

_GZIP_MAGIC = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_READABLE = "a text file of jobs, plain or gzip'd"


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked, up to `HEAD_BYTES`.

    Raises:
        TraceError: the file is missing, a directory, empty, or cannot be read or unpacked.
    """
    return _read(path, HEAD_BYTES)


def read_bytes(path: Path) -> bytes:
    """Return all of a file, unpacked.

    Raises:
        TraceError: the file is missing, a directory, empty, or cannot be read or unpacked.
    """
    return _read(path, -1)


class ReadLimit:
    """How much of each file is read; see `only_the_start`.

    Attributes:
        size: bytes, unpacked.
        is_cut: whether a file was longer.
    """

    def __init__(self, size: int) -> None:
        self.size, self.is_cut = size, False


_START: contextvars.ContextVar[ReadLimit | None] = contextvars.ContextVar("start", default=None)


@contextlib.contextmanager
def only_the_start(size: int) -> Iterator[ReadLimit]:
    """Let `read_text` and `text_pieces` return only the first lines of files, of `size` bytes.

    The caller must check `is_cut`, and that the rest of the file does not matter.
    """
    start = ReadLimit(size)
    token = _START.set(start)
    try:
        yield start
    finally:
        _START.reset(token)


def read_text(path: Path, *, long_lines: bool = False) -> bytes:
    r"""Return all of a text file, unpacked, as bytes in which every line ends with `\n`.

    The text stays bytes because headers of old logs come in unstated encodings.

    Args:
        path: the file.
        long_lines: allow lines of any length, as JSON has them.

    Raises:
        TraceError: the file cannot be read or unpacked, is empty, is not text, or has a line that
            is too long.
    """
    start = None if long_lines else _START.get()
    content = _read(path, -1) if start is None else _read_start(path, start)
    if is_binary(content):
        raise binary_error(path)
    content = content.removeprefix(_UTF8_MARK)
    if b"\n" not in content:
        # Files of old Macs end lines with a carriage return only and would be read as one line.
        content = content.replace(b"\r", b"\n")
    if not long_lines:
        _refuse_long_lines(content, path)
    return content if content.endswith(b"\n") else content + b"\n"


def text_pieces(path: Path, size: int = PIECE_BYTES) -> Iterator[bytes]:
    r"""Yield all of a text file in pieces of whole lines; joined, they equal `read_text`.

    A long file then takes only the memory of one piece.

    Args:
        path: the file.
        size: approximate number of bytes in a piece; more if a line is longer.

    Raises:
        TraceError: the file cannot be read or unpacked, is empty, is not text, or has a line that
            is too long.
    """
    rest: list[bytes] = []  # an incomplete last line
    at_start, any_line, lines = True, False, 0
    start, total = _START.get(), 0
    with _opened(path) as file:
        while block := file.read(size):
            if start is not None and total >= start.size:
                start.is_cut = True
                rest = []
                break
            total += len(block)
            if is_binary(block):
                raise binary_error(path)
            if at_start:
                block, at_start = block.removeprefix(_UTF8_MARK), False
            end = block.rfind(b"\n") + 1
            if end:
                any_line = True
                yield b"".join([*rest, memoryview(block)[:end]])
                lines += _native.count_bytes(block, "\n")
                rest = []
            rest.append(block[end:])
            if sum(map(len, rest)) > LONGEST_LINE and b"\r" not in block:
                raise _long_line_error(path, lines + 1)
    if at_start:
        raise _empty_error(path)
    last = b"".join(rest)
    if not any_line:
        last = last.replace(b"\r", b"\n")
    _refuse_long_lines(last, path)
    if last or not any_line:
        yield last if last.endswith(b"\n") else last + b"\n"


def is_binary(content: bytes) -> bool:
    """Return whether `content` has a zero byte, which text in an 8-bit encoding never has."""
    return b"\0" in content


def binary_error(path: Path) -> TraceError:
    """Return the error for a file that is not text."""
    return TraceError(
        "the file is binary, not text",
        where=str(path),
        expected=_READABLE,
        hint="UTF-16 text looks binary too: convert it to UTF-8; unpack archives such as zip first",
    )


def bare_name(path: Path, *suffixes: str) -> str:
    """Return the file's name without `.gz` and then without the first of `suffixes` it ends in.

    Example:
        >>> from pathlib import Path
        >>> bare_name(Path("logs/HPC2N-2.2.swf.gz"), ".swf")
        'HPC2N-2.2'
    """
    name = path.name
    for suffix in (".gz", *suffixes):
        if name.lower().endswith(suffix) and len(name) > len(suffix):
            name = name[: -len(suffix)]
    return name


def is_directory(path: Path) -> bool:
    """Return whether a path is a directory; False if it cannot be accessed."""
    try:
        return path.is_dir()
    except OSError:
        return False


def list_files(directory: Path) -> list[Path]:
    """Return the files in a directory, sorted by name; none if it cannot be listed."""
    try:
        return sorted(entry for entry in directory.iterdir() if entry.is_file())
    except (OSError, ValueError):
        return []


def _read_start(path: Path, start: ReadLimit) -> bytes:
    """Return the first lines of the unpacked file."""
    content = _read(path, start.size + 1)
    if len(content) <= start.size:
        return content
    start.is_cut = True
    return content[: content.rfind(b"\n") + 1] or content


def _read(path: Path, size: int) -> bytes:
    """Return `size` bytes of the unpacked file, -1 = all of it."""
    with _opened(path) as file:
        content = file.read(size) or b""
    if not content:
        raise _empty_error(path)
    return content


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for unpacked reading; any failure while it is open becomes a TraceError."""
    try:
        # Without a buffer, reading a whole file takes its size in memory, not twice its size.
        with path.open("rb", buffering=0) as file:
            packed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            file.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield cast("IO[bytes]", file)
    except FileNotFoundError:
        raise TraceError(
            "no such trace file",
            where=str(path),
            expected=_READABLE,
            hint="check the path; relative paths start at the current directory",
        ) from None
    except IsADirectoryError:
        raise TraceError(
            "this is a directory, not a trace file",
            where=str(path),
            expected=_READABLE,
            hint="name one file in it",
        ) from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(
            f"the gzip file is damaged ({error})",
            where=str(path),
            expected="a complete gzip file",
            hint="it may have been cut short: copy or download it again",
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a path with a zero character in it
        raise TraceError(
            f"cannot read the trace file ({getattr(error, 'strerror', None) or error})",
            where=str(path),
            expected=_READABLE,
        ) from None


def _refuse_long_lines(content: bytes, path: Path) -> None:
    """Raise a TraceError for the first line that is too long, if any."""
    at = 0
    while len(content) - at > LONGEST_LINE:
        end = content.rfind(b"\n", at, at + LONGEST_LINE + 1) + 1
        if not end:
            raise _long_line_error(path, content.count(b"\n", 0, at) + 1)
        at = end


def _long_line_error(path: Path, line: int) -> TraceError:
    return TraceError(
        f"a line is longer than {LONGEST_LINE // 2**20} MiB",
        where=f"{path}, line {line}",
        expected="one job on a line",
        hint="the line breaks may have been lost; export or download the file again",
    )


def _empty_error(path: Path) -> TraceError:
    return TraceError(
        "the trace file is empty",
        where=str(path),
        expected=_READABLE,
        hint="a failed export or download may leave an empty file",
    )
