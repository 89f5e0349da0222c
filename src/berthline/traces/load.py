"""load_trace: a trace file in, a Workload out, whatever the format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, TraceError, unknown_name
from berthline.traces.formats.column_mapping import FORM
from berthline.traces.formats.detection import Match, head_lines
from berthline.traces.formats.format_table import FORMATS, Format, detect_format
from berthline.traces.node_lists.node_list_formats import node_list_kind
from berthline.traces.reading.files import binary_error, is_binary, is_directory, read_head

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from berthline.model.workload import Workload

_SHOWN_CHARACTERS = 60


def load_trace(
    path: str | os.PathLike[str],
    format: str | None = None,  # noqa: A002 - the public name, the same as the --format option
    **options: object,
) -> Workload:
    """Return the jobs of a trace file, sorted by submission and rebased to time 0.

    Gzip'd files are read as they are. `Workload.provenance` says what the file held and what was
    left out: `format`, `path` (the file's name), `rows`, `used`, `dropped` (a count for each
    reason) and what the format itself knows, such as `origin_unix_time`.

    Args:
        path: the file; for formats that come in parts or tables, also the directory of them.
        format: the name of its format; None = recognise it by its content. An option that only
            one format has names it too.
        **options: settings of the format, such as `mapping` of `csv`; None = not given.

    Raises:
        ConfigError: no format, or not this one, takes such an option.
        TraceError: the file cannot be read, is of no known format, has a line that makes no sense
            (the message has its number), or holds no usable job.
    """
    path = Path(path)
    given = {name: value for name, value in options.items() if value is not None}
    if format is not None:
        if format not in FORMATS:
            what, expected, hint = unknown_name("trace format", format, FORMATS)
            raise TraceError(what, where=str(path), expected=expected, hint=hint)
        found: Format | None = _takers(given, [FORMATS[format]], path)[0]
    else:
        takers = _takers(given, FORMATS.values(), path)
        # An option that only one format has names the format: a mapping makes any table a trace.
        only = bool(given) and len(takers) == 1
        found = takers[0] if only else _recognise(path, FORMATS.values())
        if found is not None:
            _takers(given, [found], path)  # it may be of a format that has no such option
    if found is None:
        raise _unrecognised(path)
    try:
        return found.read(path, **given)
    except TraceError as error:
        other = None if format is None else _better_format(path, found)
        if other is not None:
            raise TraceError(
                f"the file looks like {other.name}, and cannot be read as {found.name}",
                where=str(path),
                expected=error.expected,
                hint=f"leave --format out, or say --format {other.name}",
            ) from None
        for name in found.options:
            if error.expected.startswith(f"the option {name}:") and name not in given:
                error.hint = f"give it as --set {name}=FILE; {error.hint}".removesuffix("; ")
        # What the workload itself refused has a row but no file; other errors name theirs.
        if ", row " in error.where and str(path) not in error.where:
            error.where = f"{path}: {error.where}"
        raise


def _recognise(path: Path, among: Iterable[Format]) -> Format | None:
    """Return the format of a file, or of a directory whose files are the parts of one trace."""
    for entry in among if is_directory(path) else ():
        parts = entry.parts(path) if entry.parts else []
        if parts and entry.detect(read_head(parts[0]), parts[0]):
            return entry
    return detect_format(read_head(path), path, among)  # which says so if it is a directory


def _better_format(path: Path, named: Format) -> Format | None:
    """Return the format that a file looks like, if it does not at all look like the one named."""
    try:
        head = read_head(path)
    except TraceError:
        return None  # a directory, or nothing that can be read
    if named.detect(head, path) > Match.NO:
        return None  # it is what it is called, and damaged
    other = detect_format(head, path)
    return other if other is not None and other.detect(head, path) > Match.READABLE else None


def _takers(given: Iterable[str], among: Iterable[Format], path: Path) -> list[Format]:
    """Return the formats that take all options given.

    Raises:
        ConfigError: there is none.
    """
    among = list(among)
    takers = [entry for entry in among if entry.options.keys() >= set(given)]
    if takers:
        return takers
    known = {name for entry in among for name in entry.options}
    wrong = next((name for name in given if name not in known), None)
    kind = f"option of the trace format {among[0].name!r}" if len(among) == 1 else "trace option"
    if wrong is None:
        raise ConfigError(
            "no trace format takes these options together: " + ", ".join(given), where=str(path)
        )
    what, expected, hint = unknown_name(kind, wrong, known)
    owners = [entry.name for entry in FORMATS.values() if wrong in entry.options]
    raise ConfigError(
        what,
        where=str(path),
        expected=expected if known else "no options: this format has none",
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
            hint="give it as --cluster, or to berthline.read_cluster",
        )
    return TraceError(
        f"the trace format was not recognised; the first line is {_first_line(head)!r}",
        where=str(path),
        expected="one of " + ", ".join(FORMATS),
        hint=f"if you know the format, name it, such as --format {next(iter(FORMATS))}; if it is a "
        f"table of your own, say what its columns mean: --map {FORM}",
    )


def _first_line(head: bytes) -> str:
    line = next(iter(head_lines(head)), "")
    return line if len(line) <= _SHOWN_CHARACTERS else line[:_SHOWN_CHARACTERS] + "..."
