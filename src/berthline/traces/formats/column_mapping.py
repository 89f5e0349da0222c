"""The meaning of the columns of a user's table: from a mapping by the user, else from their names.

A mapping is text such as `submit=created@%d.%m.%Y %H:%M,run=minutes*60,gpus=n`: the column of the
workload, the column of the file, a factor or divisor to get seconds (or MiB), and the date format
in strftime notation. `user=` means that no column is the user. Columns of a file without a header
line are numbers: `submit=#1,run=#3,gpus=#2`. Columns that a mapping omits are recognised by
unambiguous names, such as `arrival_time` or `duration_ms`.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from berthline.errors import ConfigError, TraceError, unknown_name
from berthline.traces.reading.quoted import presentable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class ColumnSource:
    """Where a column of a workload comes from.

    Attributes:
        column: the column of the file.
        factor: its numbers are multiplied by this.
        pattern: its date format; None = numbers, or dates in a recognised format.
    """

    column: str
    factor: float = 1.0
    pattern: str | None = None

    def __str__(self) -> str:
        factor = "" if self.factor == 1 else f"*{self.factor:g}"
        return self.column + factor + (f"@{self.pattern}" if self.pattern else "")


_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("ms", "msec", "millis", "milliseconds"), 1e-3),
    **dict.fromkeys(("us", "usec", "micros", "microseconds"), 1e-6),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
}
_MEBIBYTES = {"mib": 1.0, "mb": 1.0, "gib": 1024.0, "gb": 1024.0}

# For each column of a workload, its names in tables, the best name first, in the form that `_words`
# returns. `memory` is missing on purpose: without a unit it is ambiguous.
_NAMES: Mapping[str, tuple[str, ...]] = {
    "submit": (
        *("submit", "submit time", "submit at", "submitted", "submitted time", "submitted at"),
        *("submission", "submission time", "time submit", "arrival", "arrival time", "arrived"),
        *("arrived at", "arrive time", "created", "created at", "create time", "creation time"),
        "timestamp",
    ),
    "start": ("start", "start time", "started", "started at", "begin", "begin time", "time start"),
    "end": (
        *("end", "end time", "ended", "ended at", "finish", "finish time", "finished"),
        *("finished at", "completed at", "completion time", "time end", "stop time"),
    ),
    "run": (
        *("run", "run time", "runtime", "duration", "job duration", "elapsed", "elapsed time"),
        *("service", "service time", "execution time", "exec time"),
    ),
    "gpus": (
        *("gpus", "gpu", "num gpus", "num gpu", "n gpus", "ngpus", "gpu num", "gpu count"),
        *("gpu number", "number of gpus", "gpu request", "gpus requested", "requested gpus"),
        "req gpus",
    ),
    "gpu_milli": ("gpu milli", "gpu millis"),
    "estimate": (
        *("estimate", "estimated time", "estimated run time", "estimated runtime", "est runtime"),
        *("requested time", "req time", "requested run time", "requested runtime"),
        *("requested walltime", "time limit", "timelimit"),
    ),
    "cpus": (
        *("cpus", "cpu", "num cpus", "num cpu", "n cpus", "ncpus", "cpu num", "cpu count"),
        *("cores", "num cores", "n cores", "cpu cores", "requested cpus", "req cpus"),
    ),
    "memory_mib": (),
    "priority": ("priority", "prio"),
    "deadline": ("deadline",),
    "user": ("user", "user id", "user name", "username", "uid", "owner"),
    "pool": ("pool", "vc", "vc id", "virtual cluster", "partition", "queue"),
    "gpu_types": ("gpu types", "gpu type", "gpu model", "gpu spec"),
    "name": ("job id", "jobid", "job", "id", "job name", "jobname", "name"),
}
_NAMES_WITH_UNIT: Mapping[str, tuple[tuple[str, ...], Mapping[str, float]]] = {
    **{
        key: (_NAMES[key], _SECONDS)
        for key in ("submit", "start", "end", "run", "estimate", "deadline")
    },
    "memory_mib": (("memory", "mem", "memory request", "req mem", "requested memory"), _MEBIBYTES),
}

KEYS = tuple(_NAMES)
"""The columns of a workload that a mapping can name; `start` and `end` can replace `run`."""

FORM = "submit=COLUMN,run=COLUMN,gpus=COLUMN"
"""The smallest mapping, for messages."""

_NEXT_ITEM = re.compile(r",(?=\s*\w+\s*=)")
_SOURCE = re.compile(
    r"(?P<column>.*?)"
    r"(?:\s*(?P<operator>[*/])\s*(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))?"
    r"(?:@(?P<pattern>.*))?",
    re.DOTALL,
)
_NUMBERED = re.compile(r"#([1-9]\d{0,3})")


def parse_mapping(mapping: str | Mapping[str, str], *, where: str) -> dict[str, str]:
    """Return the items of a mapping, `{"submit": "created@%d.%m.%Y", ...}`, stripped of blanks.

    Raises:
        ConfigError: it is not a mapping, or names a column that workloads do not have.
    """
    if isinstance(mapping, str):
        pairs = [item.partition("=") for item in _NEXT_ITEM.split(mapping)]
    else:
        pairs = [(str(key), "=", str(text)) for key, text in mapping.items()]
    items: dict[str, str] = {}
    for key, equals, text in pairs:
        key = key.strip()
        if not equals:
            raise ConfigError(
                f"not a mapping of columns: {mapping!r}", where=where, expected=f"such as {FORM}"
            )
        if key not in KEYS:
            what, expected, hint = unknown_name("column of a workload", key, KEYS)
            raise ConfigError(f"{what} in the mapping", where=where, expected=expected, hint=hint)
        if key in items:
            raise ConfigError(f"the mapping has {key!r} twice", where=where, expected=FORM)
        items[key] = text.strip()
    return items


def numbered_columns(items: Mapping[str, str]) -> list[str] | None:
    """Return `#1`, `#2`, ... up to the last in a mapping; None = the mapping uses column names."""
    matches = [_SOURCE.fullmatch(text) for text in items.values() if text]
    columns = [match["column"].strip() for match in matches if match]
    if not columns or not all(_NUMBERED.fullmatch(column) for column in columns):
        return None
    last = max(int(column.removeprefix("#")) for column in columns)
    return [f"#{number}" for number in range(1, last + 1)]


def find_sources(
    items: Mapping[str, str], columns: Sequence[str], *, where: str
) -> dict[str, ColumnSource]:
    """Return the source of each column of a workload; columns without a source are missing.

    Args:
        items: a parsed mapping; empty = use names only.
        columns: the columns of the file.
        where: the file, for errors.

    Raises:
        ConfigError: a factor or a date format is invalid.
        TraceError: the mapping names a column that the file does not have.
    """
    sources = {
        key: _parse_source(text, columns, where=where) for key, text in items.items() if text
    }
    taken = {source.column for source in sources.values()}
    sources |= {
        key: source
        for key, source in _recognise(columns).items()
        if key not in items and source.column not in taken
    }
    # Keep one source of the run time: the one in the mapping, else the run time itself.
    unused = ("run",) if items.get("start") and items.get("end") else ("start", "end")
    if "run" in sources:
        sources = {
            key: source for key, source in sources.items() if key not in unused or items.get(key)
        }
    return sources


def is_complete(sources: Mapping[str, ColumnSource]) -> bool:
    """Return whether all that a job needs has a source: submission, GPUs, and a run time."""
    return {"submit", "gpus"} <= sources.keys() and (
        "run" in sources or {"start", "end"} <= sources.keys()
    )


def _parse_source(text: str, columns: Sequence[str], *, where: str) -> ColumnSource:
    if text in columns:  # even if the name looks like a name with a factor or a format
        return ColumnSource(text)
    match = _SOURCE.fullmatch(text)
    assert match is not None
    column = match["column"].strip()
    if column not in columns:
        _, expected, hint = unknown_name("column", column, presentable(columns))
        raise TraceError(
            f"the mapping names a column {column!r} that the file does not have",
            where=where,
            expected=expected,
            hint=hint,
        )
    factor = float(match["number"] or 1)
    if not 1e-12 <= factor <= 1e12:
        raise ConfigError(
            f"the factor of {text!r} is {factor:g}", where=where, expected="1e-12 to 1e12"
        )
    if match["pattern"] is not None and "%" not in match["pattern"]:
        raise ConfigError(
            f"{match['pattern']!r} in {text!r} is not a date format",
            where=where,
            expected="strftime notation, such as %Y-%m-%d %H:%M:%S",
        )
    return ColumnSource(
        column, 1 / factor if match["operator"] == "/" else factor, match["pattern"]
    )


def _recognise(columns: Sequence[str]) -> dict[str, ColumnSource]:
    """Return the sources of a workload's columns, recognised by the names of a file's columns."""
    words = {_words(column): column for column in reversed(columns)}  # the first of equal names
    sources: dict[str, ColumnSource] = {}
    for key, names in _NAMES.items():
        found = next((words[name] for name in names if name in words), None)
        if found is not None:
            sources[key] = ColumnSource(found)
            continue
        stems, units = _NAMES_WITH_UNIT.get(key, ((), {}))
        by_stem = {
            name.rpartition(" ")[0]: (column, units[name.rpartition(" ")[2]])
            for name, column in words.items()
            if name.rpartition(" ")[2] in units
        }
        stem = next((stem for stem in stems if stem in by_stem), None)
        if stem is not None:
            sources[key] = ColumnSource(*by_stem[stem])
    return sources


def _words(column: str) -> str:
    """Return a column's name as lower-case words: `numGpus` and `num_gpus` are both `num gpus`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", column)
    return " ".join(re.findall(r"[a-z0-9]+", parted.lower()))
