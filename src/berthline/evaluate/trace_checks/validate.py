"""validate_trace: everything that is wrong or odd in a trace file, not only the first thing.

A reader stops at the first line it cannot use. Therefore the file is read again with that line, and
all others like it, blanked out in a copy, until the reader succeeds or the list is long enough.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.errors import TraceError
from berthline.evaluate.trace_checks.card import is_on_part
from berthline.evaluate.trace_checks.early_starts import negative_waits
from berthline.evaluate.trace_checks.job_lines import UNKNOWN, lines_of_jobs
from berthline.evaluate.trace_checks.trace_warnings import TraceWarning, find_warnings
from berthline.text_or_path import text_of
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.load import load_trace
from berthline.traces.reading.files import read_text
from berthline.traces.reading.line_error import LineError

if TYPE_CHECKING:
    import numpy.typing as npt

    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath

MOST_ERRORS = 20
"""The most kinds of errors to list."""

_MOST_NEIGHBOURS = 200
_LINE = re.compile(r", line (\d+)")
_FIRST_ROW = 2  # a header line cannot be blanked out


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong (an error) or odd (a warning)."""

    what: str
    where: str = ""
    """File, line and job, as far as they are known."""
    line: int | None = None
    expected: str = ""
    hint: str = ""


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong or odd in a trace file."""

    file: str
    format: str
    """The format it was read as; empty = it could not be read at all."""
    usable: bool
    jobs: int
    """Jobs that can be used, with the lines in error left out."""
    jobs_on_parts: int
    """Of these, jobs that take a part of one GPU."""
    jobs_without_gpus: int
    """Of these, jobs that need CPUs or memory only."""
    errors: list[Problem]
    warnings: list[Problem]
    complete: bool
    """False = there may be more errors than are listed."""


def validate_trace(
    path: str | Path,
    format: str | None = None,  # noqa: A002 - the same name as the --format option
    cluster: Cluster | TextOrPath | None = None,
    **options: object,
) -> Validation:
    """Return what is wrong or odd in a trace file.

    Args:
        path: the file.
        format: the name of its format; None = recognise it.
        cluster: a Cluster or a CLUSTER argument: also list what would be odd about running the jobs
            there.
        **options: settings of the format, as of `load_trace`.

    Raises:
        ConfigError: an option is wrong. What is wrong with the file itself is returned.
    """
    path = Path(text_of("path", path))
    nodes = None if cluster is None else resolve_cluster(cluster)
    errors, workload, complete = _read_all(path, format, options)
    errors.sort(key=lambda problem: problem.line or 0)
    warnings = [] if workload is None else _warnings(path, workload, nodes)
    return Validation(
        file=str(path),
        format="" if workload is None else str(workload.provenance.get("format") or ""),
        usable=not errors,
        jobs=0 if workload is None else len(workload),
        jobs_on_parts=0 if workload is None else int(is_on_part(workload).sum()),
        jobs_without_gpus=0 if workload is None else int((workload.gpus == 0).sum()),
        errors=errors,
        warnings=warnings,
        complete=complete,
    )


def _read_all(
    path: Path, format_name: str | None, options: dict[str, object]
) -> tuple[list[Problem], Workload | None, bool]:
    """Return all errors, the jobs without the lines in error, and whether the list is complete."""
    try:
        return [], load_trace(path, format_name, **options), True
    except TraceError as caught:
        error = caught
    errors = [_problem(error)]
    if not path.is_file() or not error.where.startswith(f"{path}, line "):
        return errors, None, False
    with tempfile.TemporaryDirectory(prefix="berthline-validate-") as folder:
        copy = _Copy(path, Path(folder))
        while len(errors) < MOST_ERRORS and copy.blank(error):
            try:
                return errors, load_trace(copy.path, format_name, **options), True
            except TraceError as caught:
                error = copy.renamed(caught)
            found = _problem(error)
            if found.line is None:
                break  # due to the blanked lines, not to the file itself
            errors.append(found)
    return errors, None, False


class _Copy:
    """A copy of a trace file in which lines can be blanked out, with its neighbouring files."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._original = path
        self.path = folder / path.name.removesuffix(".gz")
        self._lines = read_text(path, long_lines=True).split(b"\n")
        # Some formats read a second table from the same folder.
        neighbours = sorted(path.absolute().parent.iterdir())[:_MOST_NEIGHBOURS]
        for neighbour in neighbours:
            if neighbour.is_file() and neighbour.name not in (path.name, self.path.name):
                (folder / neighbour.name).symlink_to(neighbour)

    def blank(self, error: TraceError) -> bool:
        """Blank out the lines of an error; return whether that changed anything."""
        line = _line_of(error)
        numbers = error.lines() if isinstance(error, LineError) else [line] if line else []
        changed = False
        for number in numbers:
            if _FIRST_ROW <= number <= len(self._lines) and self._lines[number - 1].strip():
                self._lines[number - 1] = b""
                changed = True
        if changed:
            self.path.write_bytes(b"\n".join(self._lines))
        return changed

    def renamed(self, error: TraceError) -> TraceError:
        """Return an error about the copy as one about the original."""
        error.where = error.where.replace(str(self.path), str(self._original))
        return error


def _line_of(error: TraceError) -> int | None:
    match = _LINE.search(error.where)
    return int(match[1]) if match else None


def _problem(error: TraceError) -> Problem:
    return Problem(
        what=error.what,
        where=error.where,
        line=_line_of(error),
        expected=error.expected,
        hint=error.hint,
    )


def _warnings(path: Path, workload: Workload, cluster: Cluster | None) -> list[Problem]:
    lines = lines_of_jobs(path, workload.names)
    found = [
        *_order(workload, lines),
        *negative_waits(path, str(workload.provenance.get("format"))),
        *find_warnings(workload, cluster),
    ]
    return [_warning(path, warning, workload, lines) for warning in found]


def _order(workload: Workload, lines: npt.NDArray[np.int64]) -> list[TraceWarning]:
    """Return a warning if the file is not in the order of submission, as far as that is known."""
    known = np.flatnonzero(lines != UNKNOWN)
    if len(known) < 2 or len(np.unique(lines[known])) < len(known):
        return []
    in_file = known[np.argsort(lines[known])]
    steps = np.diff(workload.submit[in_file])
    back = np.flatnonzero(steps < 0)
    if not back.size:
        return []
    furthest = back[np.argmin(steps[back])]
    count = "1 line goes" if back.size == 1 else f"{back.size:,} lines go"
    return [
        TraceWarning(
            f"the file is not sorted by submission: {count} back in time, the furthest by "
            f"{-steps[furthest]:,.0f} s",
            int(in_file[furthest + 1]),
            "jobs are sorted when they are read; single steps of about an hour mean that a clock "
            "was set back",
        )
    ]


def _warning(
    path: Path, warning: TraceWarning, workload: Workload, lines: npt.NDArray[np.int64]
) -> Problem:
    job, line = warning.job, warning.line
    where = []
    if job >= 0 and lines.size and lines[job] != UNKNOWN:
        line = int(lines[job])
    if line:
        where.append(f"{path}, line {line}")
    if job >= 0:
        names = workload.names
        where.append(f"job {job} by submission" if names is None else f"job {names[job]}")
    return Problem(what=warning.what, where=", ".join(where), line=line or None, hint=warning.hint)
