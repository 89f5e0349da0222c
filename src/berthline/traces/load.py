"""load_trace: a trace file in, a Workload out, whatever the format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import TraceError, unknown_name
from berthline.traces.detection import head_lines
from berthline.traces.files import binary_error, is_binary, read_head
from berthline.traces.formats import FORMATS, detect_format

if TYPE_CHECKING:
    import os

    from berthline.model.workload import Workload

_SHOWN_CHARACTERS = 60


def load_trace(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the public name, the same as the --format option
) -> Workload:
    """Return the jobs of a trace file, sorted by submission and rebased to time 0.

    Gzip'd files are read as they are. `Workload.provenance` says what the file held and what was
    left out: `format`, `path` (the file's name), `rows`, `used`, `dropped` (a count for each
    reason) and what the format itself knows, such as `origin_unix_time`.

    Args:
        path: the file.
        format: the name of its format; None = recognise it by its content.

    Raises:
        TraceError: the file cannot be read, is of no known format, has a line that makes no sense
            (the message has its number), or holds no usable job.
    """
    path = Path(path)
    if format is not None:
        if format not in FORMATS:
            what, expected, hint = unknown_name("trace format", format, FORMATS)
            raise TraceError(what, where=str(path), expected=expected, hint=hint)
        return FORMATS[format].read(path)
    head = read_head(path)
    found = detect_format(head, path)
    if found is not None:
        return found.read(path)
    if is_binary(head):
        raise binary_error(path)
    raise TraceError(
        f"the trace format was not recognised; the first line is {_first_line(head)!r}",
        where=str(path),
        expected="one of " + ", ".join(FORMATS),
        hint=f"if you know the format, name it, such as --format {next(iter(FORMATS))}",
    )


def _first_line(head: bytes) -> str:
    line = next(iter(head_lines(head)), "")
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "..."
