"""Standard Workload Format (SWF) of the Parallel Workloads Archive. Processors are GPUs here.

A row is one job with 18 fields separated by blanks; `;` starts a comment, and comments at the top
contain `Key: value` pairs about the machine; -1 means unknown. Real files deviate from this and are
still read: no header, more than 18 fields or text after them, absolute (Unix) submit times, blank
lines, any line ending, text after a number in the header. A row with fewer fields is an error.

How fields become columns: GPUs are the allocated processors, else the requested ones; the estimate
is the requested time; times are rebased to the first job used; all jobs have priority 0. The pool
is the partition if there are several, else the queue if there are several (`pools` sets it), as in
other formats; a cluster without pools takes no notice of it. All other fields are kept in the
history of the jobs, and the header in the provenance, so that a copy has them again.

Files that Berthline wrote have pools in the field of queues, sets of GPU types in that of
partitions, their names in the header, and the GPU type of run times as `ReferenceType` there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, TraceError
from berthline.model.gpu_types import GPU_TYPES, RECORDED, canonical_name
from berthline.model.history import NOT_RECORDED, History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, head_lines
from berthline.traces.formats.row_filter import (
    CANCELLED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    choose_rows,
    row_facts,
)
from berthline.traces.reading.blank_separated import BlankSeparated
from berthline.traces.reading.files import bare_name, is_binary, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

FIELDS = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "average CPU time",
    "used memory",
    "requested processors",
    "requested time",
    "requested memory",
    "status",
    "user",
    "group",
    "application",
    "queue",
    "partition",
    "preceding job",
    "think time",
)

_WANTED = (
    "job number",
    "submit time",
    "wait time",
    "run time",
    "allocated processors",
    "requested processors",
    "requested time",
    "status",
    "user",
)
OTHER = (
    "average CPU time",
    "used memory",
    "requested memory",
    "group",
    "application",
    "queue",
    "partition",
    "preceding job",
    "think time",
)
"""Fields that no simulation needs; the history of the jobs has them."""

CONVERSION = "Berthline"
"""With this word begins the `Conversion` in the header of files that Berthline wrote."""

OPTIONS = {
    "pools": "the field whose values are pools: partition, queue or none; if not given, the "
    "partition if there are several, else the queue"
}
_POOLS = ("partition", "queue", "none")

STATUSES: Mapping[int, str] = {
    -1: "unknown",
    0: "failed",
    1: "completed",
    2: "partial, continued",
    3: "partial, last, completed",
    4: "partial, last, failed",
    5: "cancelled",
}
_CANCELLED = 5
_PARTIAL = (2, 3, 4)

_MOST_PROCESSORS = 2**31 - 1  # the limit of the workload's column
_EARLIEST_ABSOLUTE = 3e8
"""Seconds. A first submit time at or after this (mid 1979) is a Unix time: counted from the start
of a log, it would mean nine years without a job."""

_COMMENT = re.compile(rb";[^\n]*")
_HEADER_LINE = re.compile(r"^;\s*(\w+)\s*:\s*(.*?)\s*$")
_HEADER_KEYS = frozenset({"MaxProcs", "MaxNodes", "MaxJobs", "MaxRecords", "UnixStartTime"})
_DETECT_ROWS = 20
_LAST_ASCII = 127
_SUFFIX = ".swf"
_MOST_PAIRS = 500
_LONGEST_NAME = 60
_SEVERAL = 2


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is SWF, by its first rows, else by its name or header."""
    if is_binary(head):
        return Match.NO
    lines = head_lines(head)
    rows = [line for line in lines if not line.startswith(";")][:_DETECT_ROWS]
    if rows and all(_is_row(row.split()) for row in rows):
        return Match.CERTAIN
    named = path.name.lower().removesuffix(".gz").endswith(_SUFFIX)
    if named or _HEADER_KEYS & _first_values(_pairs(lines)).keys():
        return Match.NAMED
    return Match.NO


def read(path: Path, *, pools: str | None = None) -> Workload:
    """Return the jobs of an SWF file.

    Provenance, besides what `load_trace` lists: `status` (rows by status), `extra_fields` (rows
    with more than 18 fields), `origin_unix_time` (of time 0; None = not known), `time_zone`,
    `max_procs` (from the header; the node count if it has no processor count), and `source`
    (computer, installation and acknowledgement, from the header), and `header` (all its pairs of
    key and value).

    Args:
        path: the file.
        pools: the field whose values are pools: `"partition"`, `"queue"` or `"none"`; None = the
            partition if there are several, else the queue; for a file that Berthline wrote always
            the queue.

    Raises:
        ConfigError: `pools` has another value.
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    if pools is not None and pools not in _POOLS:
        raise ConfigError(
            f"`pools` is {pools!r}", where=str(path), expected="one of " + ", ".join(_POOLS)
        )
    comments, text = _part_comments(read_text(path))
    pairs = _pairs(comments)
    header = _first_values(pairs)
    is_own = header.get("Conversion", "").startswith(CONVERSION)
    rows = BlankSeparated(
        text,
        path,
        FIELDS,
        wanted=(*_WANTED, *OTHER),
        hint="correct the line, or write -1 there if the value is not known",
    )
    if len(rows) == 0:
        raise TraceError(
            "the file has comments but no jobs",
            where=str(path),
            expected=f"lines of {len(FIELDS)} fields separated by blanks",
        )
    rows.require_fields()

    job_number = rows.words("job number")
    submit = rows.numbers("submit time")
    wait = rows.numbers("wait time")
    run = rows.numbers("run time")
    allocated = rows.numbers("allocated processors", whole=True, highest=_MOST_PROCESSORS)
    requested = rows.numbers("requested processors", whole=True, highest=_MOST_PROCESSORS)
    estimate = rows.numbers("requested time")
    status = rows.numbers("status", whole=True)
    user = rows.numbers("user", whole=True)

    processors = np.where(allocated > 0, allocated, requested)
    status_counts = _status_counts(status)
    used, dropped = choose_rows(
        _reasons(job_number, submit, run, processors, status),
        path=path,
        expected="a submit time of 0 or more, a run time and processors of more than 0",
    )
    users, user_code = np.unique(user[used], return_inverse=True)
    recorded = {name: _kept(rows, name)[used] for name in OTHER}
    recorded["allocated processors"] = allocated[used]
    recorded["requested processors"] = requested[used]
    pool, pool_names = _named(recorded, pools or ("queue" if is_own else "partition"), pairs)
    if pools is None and len(pool_names) < _SEVERAL and not is_own:
        pool, pool_names = _named(recorded, "queue", pairs)
        if len(pool_names) < _SEVERAL:  # one name for all jobs says nothing
            pool, pool_names = _named(recorded, "none", pairs)
    types, type_sets = _named(recorded, "partition" if is_own else "none", pairs)
    provenance: dict[str, Any] = {
        **row_facts(
            "swf",
            path,
            used,
            dropped,
            origin=_origin(float(submit[used].min()), header),
            zone=header.get("TimeZoneString") or None,
        ),
        "status": status_counts,
        "extra_fields": int((rows.num_fields > len(FIELDS)).sum()),
        "max_procs": _processors(header),
        "source": {
            key.lower(): header[key]
            for key in ("Computer", "Installation", "Acknowledge")
            if header.get(key)
        },
        "header": pairs[:_MOST_PAIRS],
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=processors[used],
        estimate=np.where(estimate[used] > 0, estimate[used], np.nan),
        user=user_code,
        user_names=tuple("unknown" if code < 0 else f"{code:.0f}" for code in users.tolist()),
        pool=pool,
        pool_names=pool_names,
        gpu_types=types,
        gpu_type_sets=type_sets,
        reference_type=_reference_type(header),
        names=_as_text(job_number[used]),
        history=_history(
            (submit + np.where(wait >= 0, wait, np.nan))[used],
            status[used],
            processors[used],
            recorded,
            own=("queue", "partition") if is_own and pools is None else (),
        ),
        name=bare_name(path, _SUFFIX),
        provenance=provenance,
    )


def _kept(rows: BlankSeparated, name: str) -> npt.NDArray[np.float64]:
    """Return a field that no simulation needs; -1 = unknown, also if it is not all numbers."""
    try:
        return rows.numbers(name)
    except TraceError:
        return np.full(len(rows), -1.0)


def _named(
    recorded: Mapping[str, npt.NDArray[np.float64]], field: str, pairs: list[list[str]]
) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
    """Return the values of a field as codes, -1 = none, and their names from the header.

    There are no codes if the field is "none", or has one value only, which the header does not
    name.
    """
    nothing = np.full(len(recorded["queue"]), -1, np.int32)
    if field == "none":
        return nothing, ()
    numbers = recorded[field]
    values = np.unique(numbers[numbers >= 0])
    named: dict[int, str] = {}
    for key, value in pairs:
        match = re.match(r"(\d{1,9})[\s:,]+(\S.*)", value) if key == field.capitalize() else None
        if match:
            named.setdefault(int(match[1]), match[2][:_LONGEST_NAME])
    if len(values) < _SEVERAL and not any(int(value) in named for value in values.tolist()):
        return nothing, ()
    names = [named.get(int(value), f"{value:.0f}") for value in values.tolist()]
    if len(set(names)) < len(names):
        names = [f"{value:.0f}" for value in values.tolist()]
    codes = np.where(numbers >= 0, np.searchsorted(values, numbers), -1)
    return codes.astype(np.int32), tuple(names)


def _history(
    start: npt.NDArray[np.float64],
    status: npt.NDArray[np.float64],
    processors: npt.NDArray[np.float64],
    recorded: Mapping[str, npt.NDArray[np.float64]],
    *,
    own: tuple[str, ...],
) -> History:
    """Return what the file has about its jobs besides what a simulation needs.

    Args:
        start: when the jobs started.
        status: the field of that name.
        processors: the GPUs of the jobs.
        recorded: the other fields.
        own: fields that are in columns of the workload.
    """
    status_code, status_names = _codes(status, lambda code: STATUSES.get(code, f"code {code}"))
    group, group_names = _codes(recorded["group"], str)
    usual = {"allocated processors": processors, "requested processors": processors}
    other = {
        name: numbers
        for name, numbers in recorded.items()
        if name not in ("group", *own) and (numbers != usual.get(name, -1)).any()
    }
    return History(
        start,
        status=status_code,
        status_names=status_names,
        group=group,
        group_names=group_names,
        other=other,
    )


def _codes(
    numbers: npt.NDArray[np.float64], name: Callable[[int], str]
) -> tuple[npt.NDArray[np.int32] | None, tuple[str, ...]]:
    """Return numbers as codes of their names; None = all are -1, unknown."""
    values = np.unique(numbers[numbers >= 0])
    if not len(values):
        return None, ()
    codes = np.where(numbers >= 0, np.searchsorted(values, numbers), NOT_RECORDED)
    return codes.astype(np.int32), tuple(name(int(value)) for value in values.tolist())


def _reference_type(header: Mapping[str, str]) -> str:
    name = canonical_name(header.get("ReferenceType", RECORDED))
    return name if name in GPU_TYPES else RECORDED


def _reasons(
    job_number: npt.NDArray[np.bytes_],
    submit: npt.NDArray[np.float64],
    run: npt.NDArray[np.float64],
    processors: npt.NDArray[np.float64],
    status: npt.NDArray[np.float64],
) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the reasons for leaving rows out, with the rows they apply to."""
    is_partial = np.isin(status, _PARTIAL)
    has_whole = np.zeros_like(is_partial)
    if is_partial.any():
        has_whole = np.isin(job_number, job_number[~is_partial])
    return {
        # A checkpointed job has one row for the whole job and one for every part: counting the
        # parts too would double its work.
        "part of a job that has a row of its own": is_partial & has_whole,
        CANCELLED: (status == _CANCELLED) & (run <= 0),
        NO_RUN_TIME: run <= 0,
        "no processors": processors <= 0,
        NO_SUBMIT_TIME: submit < 0,
    }


def _as_text(words: npt.NDArray[np.bytes_]) -> npt.NDArray[np.str_]:
    width = words.dtype.itemsize
    characters = words.view(np.uint8).reshape(-1, width)
    if characters.max(initial=0) > _LAST_ASCII:
        return np.char.decode(words, "utf-8", "replace")
    return characters.astype(np.uint32).view(f"<U{width}").ravel()


def _status_counts(status: npt.NDArray[np.float64]) -> dict[str, int]:
    codes, counts = np.unique(status, return_counts=True)
    return {
        STATUSES.get(int(code), f"code {code:.0f}"): int(count)
        for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
    }


def processors(head: bytes, path: Path) -> int | None:
    """Return the processors of the cluster, by the header of a file; None = it does not say."""
    del path  # only the content counts
    return _processors(_first_values(_pairs(head_lines(head))))


def _processors(header: Mapping[str, str]) -> int | None:
    return _leading_number(header, "MaxProcs") or _leading_number(header, "MaxNodes")


def _origin(first_submit: float, header: Mapping[str, str]) -> float | None:
    """Return the Unix time of the first job used; None = not known."""
    if first_submit >= _EARLIEST_ABSOLUTE:
        return first_submit
    start = _leading_number(header, "UnixStartTime")
    return None if start is None else start + first_submit


def _part_comments(text: bytes) -> tuple[list[str], bytes]:
    """Return the comments of a file, wherever they are, and the text without them."""
    end = text.rfind(b";") + 1  # the last comment; the text after it, nearly all, is not changed
    end = text.index(b"\n", end) if end else 0
    top = text[:end]
    comments = [comment.decode("utf-8", errors="replace") for comment in _COMMENT.findall(top)]
    return comments, b"".join([_COMMENT.sub(b"", top), memoryview(text)[end:]]) if end else text


def _pairs(lines: list[str]) -> list[list[str]]:
    """Return the `; Key: value` pairs in `lines`."""
    matches = (_HEADER_LINE.match(line) for line in lines)
    return [[match[1], match[2]] for match in matches if match]


def _first_values(pairs: list[list[str]]) -> dict[str, str]:
    """Return the value of each key; for a repeated key, the first."""
    values: dict[str, str] = {}
    for key, value in pairs:
        values.setdefault(key, value)
    return values


def _leading_number(header: Mapping[str, str], key: str) -> int | None:
    """Return the whole number at the start of a header value, if it is more than 0."""
    match = re.match(r"\d{1,15}\b", header.get(key, ""))
    return int(match[0]) or None if match else None


def _is_row(words: list[str]) -> bool:
    """Return whether the fields could be a job: enough fields, and numbers in the first five."""
    return len(words) >= len(FIELDS) and all(
        re.fullmatch(r"[-+]?\d+(\.\d*)?", word) for word in words[:5]
    )
