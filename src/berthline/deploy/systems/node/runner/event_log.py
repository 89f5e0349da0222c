"""The runner's log: one JSON object a line, on disk before anything follows from it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class EventLog:
    """A log that is only ever appended to.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.events = read_events(path)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # Nothing followed from a line that a crash has cut off.
        os.ftruncate(descriptor, _whole_bytes(path))
        self._descriptor = descriptor

    def write(self, event: dict[str, Any]) -> None:
        """Append an event; it is on disk when this returns."""
        os.write(self._descriptor, json.dumps(event).encode() + b"\n")
        os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _whole_bytes(path: Path) -> int:
    return path.read_bytes().rfind(b"\n") + 1


def read_events(path: Path) -> list[dict[str, Any]]:
    """Return the events of a log, in order; none if there is no log."""
    if not path.exists():
        return []
    whole = path.read_bytes()[: _whole_bytes(path)]
    return [json.loads(line) for line in whole.splitlines()]
