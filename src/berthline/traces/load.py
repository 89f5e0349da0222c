"""load_trace: read a trace file of any supported format as a Workload."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, TraceError, unknown_name
from berthline.model.workload_rows import with_reference_type
from berthline.text_or_path import text_of
from berthline.traces.formats.column_mapping import FORM
from berthline.traces.formats.detection import Match, head_lines
from berthline.traces.formats.format_table import COMMON_OPTIONS, FORMATS, Format, detect_format
from berthline.traces.node_lists.node_list_formats import node_list_kind
from berthline.traces.reading.files import (
    binary_error,
    is_binary,
    is_directory,
    only_the_start,
    read_head,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from berthline.model.workload import Workload

_SHOWN_CHARACTERS = 60
(_REFERENCE,) = COMMON_OPTIONS

LONG_FILE = 64 * 2**20
"""Bytes on disk. Shorter files are always read whole."""
_FIRST_BYTES = 32 * 2**20
_BYTES_PER_JOB = 512


def load_trace(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the public name, the same as the --format option
    **options: object,
) -> Workload:
    """Return the jobs of a trace file, sorted by submission and rebased to time 0.

    Gzip'd files are read directly. `Workload.provenance` states what the file contained and what
    was left out: `format`, `path` (the file's name), `rows`, `used`, `dropped` (a count for each
    reason) and format-specific entries, such as `origin_unix_time`.

    Args:
        path: the file; for formats that come in parts or tables, also their directory.
        format: the name of its format; None = recognise it by its content, or by an option that
            only one format has.
        **options: settings of the format, such as `mapping` of `csv`, or `reference_type` for every
            format: the GPU type that all run times were recorded on; None = not given.

    Raises:
        ConfigError: no format, or not this one, has such an option.
        TraceError: the file cannot be read, has an unknown format or an invalid line (the message
            has its number), or contains no usable job.
    """
    path = Path(text_of("path", path))
    reference = options.pop(_REFERENCE, None)
    given = {name: value for name, value in options.items() if value is not None}
    if format is not None:
        if format not in FORMATS:
            what, expected, hint = unknown_name("trace format", format, FORMATS)
            raise TraceError(what, where=str(path), expected=expected, hint=hint)
        found: Format | None = _takers(given, [FORMATS[format]], path)[0]
    else:
        takers = _takers(given, FORMATS.values(), path)
        # An option that only one format has selects it: with a mapping, any table is a trace.
        only = bool(given) and len(takers) == 1
        found = takers[0] if only else _recognise(path, FORMATS.values())
        if found is not None:
            _takers(given, [found], path)  # the recognised format may not have such an option
    if found is None:
        raise _unrecognised(path)
    try:
        workload = found.read(path, **given)
        return workload if reference is None else with_reference_type(workload, str(reference))
    except TraceError as error:
        other = None if format is None else _better_format(path, found)
        if other is not None:
            raise TraceError(
                f"the file looks like {other.name} and cannot be read as {found.name}",
                where=str(path),
                expected=error.expected,
                hint=f"omit `format`, or use `format={other.name}`",
            ) from None
        for name in found.options:
            if error.expected.startswith(f"the option {name}:") and name not in given:
                error.hint = f"give it as option `{name}=FILE`; {error.hint}".removesuffix("; ")
        # Errors from Workload have a row but no file; other errors already name their file.
        if ", row " in error.where and str(path) not in error.where:
            error.where = f"{path}: {error.where}"
        raise


_NOT_IN_ORDER = "its jobs are not in order of submission"


def load_first_jobs(
    path: Path,
    jobs: int,
    format: str | None = None,  # noqa: A002 - as in load_trace
    **options: object,
) -> Workload:
    """Return at least the first jobs of a trace file, without reading all of a long one.

    Only the start of a long file is read, if its jobs are in order of submission there: the rest is
    then assumed to be later. The provenance has the bytes read, unpacked, as `part_read`; or as
    `read_whole` why all of the file was read.

    Args:
        path: as for `load_trace`.
        jobs: how many are needed; fewer are returned if the file has fewer.
        format: as for `load_trace`.
        **options: as for `load_trace`.

    Raises:
        BerthlineError: as for `load_trace`.
    """
    entry = None
    if _size(path) >= LONG_FILE:
        entry = FORMATS.get(format) if format else _recognise(path, FORMATS.values())
        if entry is not None and not entry.whole and not path.is_file():
            entry = None  # which part has the first jobs is not known
    size = max(_FIRST_BYTES, _BYTES_PER_JOB * jobs)
    failed = False
    if entry is not None and entry.read_first is not None and not options:
        # One more, so that the caller sees, and says, that there are more.
        return entry.read_first(path, jobs + 1)
    while entry is not None and entry.by_line:
        with only_the_start(size) as start:
            try:
                workload = load_trace(path, format, **options)
            except TraceError:
                # The end of the part may be inside a quoted cell; a wrong line is wrong again.
                if not start.is_cut or failed:
                    raise
                failed, size = True, size + _FIRST_BYTES // 8
                continue
        if not start.is_cut:
            return workload
        if not workload.in_order:
            break
        if len(workload) > jobs:
            facts = {**workload.provenance, "part_read": size}
            return dataclasses.replace(workload, provenance=facts)
        size *= 4
    workload = load_trace(path, format, **options)
    why = "" if entry is None else _NOT_IN_ORDER if entry.by_line else entry.whole
    if not why or len(workload) <= jobs:
        return workload
    return dataclasses.replace(workload, provenance={**workload.provenance, "read_whole": why})


def _size(path: Path) -> int:
    """Return the bytes of a file, or of the files in a directory."""
    files = path.iterdir() if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _recognise(path: Path, among: Iterable[Format]) -> Format | None:
    """Return the format of a file, or of a directory whose files are the parts of one trace."""
    for entry in among if is_directory(path) else ():
        parts = entry.parts(path) if entry.parts else []
        if parts and entry.detect(read_head(parts[0]), parts[0]):
            return entry
    return detect_format(read_head(path), path, among)  # read_head raises for other directories


def _better_format(path: Path, named: Format) -> Format | None:
    """Return the format that a file looks like, if it does not look like the named one at all."""
    try:
        head = read_head(path)
    except TraceError:
        return None  # a directory, or not readable
    if named.detect(head, path) > Match.NO:
        return None  # it has the named format, but is damaged
    other = detect_format(head, path)
    return other if other is not None and other.detect(head, path) > Match.READABLE else None


def _takers(given: Iterable[str], among: Iterable[Format], path: Path) -> list[Format]:
    """Return the formats that have all given options.

    Raises:
        ConfigError: there is no such format.
    """
    among = list(among)
    takers = [entry for entry in among if entry.options.keys() >= set(given)]
    if takers:
        return takers
    known = {*COMMON_OPTIONS, *(name for entry in among for name in entry.options)}
    wrong = next((name for name in given if name not in known), None)
    kind = f"option of the trace format {among[0].name!r}" if len(among) == 1 else "trace option"
    if wrong is None:
        raise ConfigError(
            "no trace format has all these options: " + ", ".join(given), where=str(path)
        )
    what, expected, hint = unknown_name(kind, wrong, known)
    owners = [entry.name for entry in FORMATS.values() if wrong in entry.options]
    raise ConfigError(
        what,
        where=str(path),
        expected=expected,
        hint=f"{wrong} is an option of {' and '.join(owners)}" if owners else hint,
    )


def _unrecognised(path: Path) -> TraceError:
    head = read_head(path)
    if is_binary(head):
        return binary_error(path)
    nodes = node_list_kind(head)
    if nodes is not None:
        return TraceError(
            f"this is a list of nodes ({nodes}), not of jobs",
            where=str(path),
            expected="a trace of jobs: one of " + ", ".join(FORMATS),
            hint="give it as `cluster`, or to berthline.read_cluster",
        )
    return TraceError(
        f"the trace format was not recognised; the first line is {_first_line(head)!r}",
        where=str(path),
        expected="one of " + ", ".join(FORMATS),
        hint=f"if you know the format, name it, such as `format={next(iter(FORMATS))}`; if it is "
        f"your own table, map its columns: `mapping={FORM}`",
    )


def _first_line(head: bytes) -> str:
    line = next(iter(head_lines(head)), "")
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "..."
