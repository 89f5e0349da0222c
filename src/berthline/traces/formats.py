"""The table of trace formats.

A format is one module with two functions, and one entry in the table below: `detect` says how sure
it is that a file is of its kind, `read` turns the file into a Workload. Nothing else in Berthline
knows a format by name. Tables sit here, not in the modules, so that one look shows all there is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from berthline.model.workload import Workload
from berthline.traces import swf
from berthline.traces.detection import Match


@dataclasses.dataclass(frozen=True)
class Format:
    """One kind of trace file.

    Attributes:
        name: what `--format` and `load_trace(format=...)` call it.
        description: one line for lists.
        detect: from the unpacked first bytes of a file and its path, how sure the format is that
            the file is of its kind.
        read: returns the jobs of a file; raises TraceError, with the line, when it cannot.
    """

    name: str
    description: str
    detect: Callable[[bytes, Path], Match]
    read: Callable[[Path], Workload]


FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "swf",
            "Standard Workload Format of the Parallel Workloads Archive; processors are GPUs",
            swf.detect,
            swf.read,
        ),
    )
}


def detect_format(head: bytes, path: Path) -> Format | None:
    """Return the format that is surest of a file, the first of equals, or None.

    Args:
        head: the unpacked first bytes of the file.
        path: the file, for its name.
    """
    best, surest = None, Match.NO
    for entry in FORMATS.values():
        match = entry.detect(head, path)
        if match > surest:
            best, surest = entry, match
    return best
