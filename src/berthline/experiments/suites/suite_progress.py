"""The progress of a suite, as a file that others may read while it runs."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import time
from typing import TYPE_CHECKING, Any

from berthline.atomic_write import write_atomically
from berthline.errors import ConfigError, OutputError
from berthline.runs.run_layout import PROGRESS, SUMMARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from berthline.experiments.suites.suite_work import SuiteWork

RUNNING, FINISHED, INTERRUPTED, FAILED = "running", "finished", "interrupted", "failed"
EVERY = 1.0
"""Seconds between two states of the file."""


class SuiteProgress:
    """Writes how far a suite is.

    Args:
        directory: where the file is; None = there is none.
        work: the runs.
        engine: the name of the engine.
        workers: returns each worker with its name and its node.
    """

    def __init__(
        self,
        directory: Path | None,
        work: SuiteWork,
        engine: str,
        workers: Callable[[], Sequence[tuple[Any, str, str]]],
    ) -> None:
        self._file = None if directory is None else directory / PROGRESS
        self._work, self._engine, self._workers = work, engine, workers
        self._began, self._written = time.monotonic(), 0.0
        self._started = _now()

    def tell(self, state: str = RUNNING) -> None:
        """Write the state; while it runs, at most once a second."""
        now = time.monotonic()
        if self._file is None or (state == RUNNING and now - self._written < EVERY):
            return
        self._written = now
        # A full disk is reported where a result cannot be kept.
        with contextlib.suppress(OutputError):
            write_atomically(self._file, json.dumps(self._content(state)).encode() + b"\n")

    def _content(self, state: str) -> dict[str, Any]:
        work = self._work
        made = work.done - work.kept
        elapsed = time.monotonic() - self._began
        return {
            "suite": work.planned.plan.name,
            "state": state,
            "engine": self._engine,
            "total": work.total,
            "done": work.done,
            "failed": len(work.failures),
            "kept": work.kept,
            "started": self._started,
            "changed": _now(),
            "seconds_left": round(elapsed / made * (work.total - work.done), 1) if made else None,
            "workers": [
                {"name": name, "node": node, "doing": work.doing.get(worker, "")}
                for worker, name, node in (self._workers() if state == RUNNING else ())
            ],
        }


def read_progress(directory: Path) -> dict[str, Any]:
    """Return how far the suite in a directory is.

    Raises:
        ConfigError: there is no suite, or the file is damaged.
    """
    file = directory / PROGRESS
    try:
        found = json.loads(file.read_bytes())
        missing = {"state", "total", "done", "failed"} - found.keys()
    except OSError as error:
        raise ConfigError(
            f"there is no suite ({error.strerror})",
            where=str(directory),
            expected="the run directory of a suite",
        ) from None
    except (ValueError, AttributeError):
        missing = {"content"}
    if missing:
        raise ConfigError("the file is damaged", where=str(file), expected="as a suite wrote it")
    return {**found, "is_complete": (directory / SUMMARY).is_file()}


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
