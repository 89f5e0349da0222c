"""Standard Workload Format (SWF) of the Parallel Workloads Archive. Processors are GPUs here.

A row is one job with 18 fields separated by blanks; `;` starts a comment, and comments at the top
contain `Key: value` pairs about the machine; -1 means unknown. Real files deviate from this and are
still read: no header, more than 18 fields or text after them, absolute (Unix) submit times, blank
lines, any line ending, text after a number in the header. A row with fewer fields is an error.

How fields become columns: GPUs are the allocated processors, else the requested ones; the estimate
is the requested time; times are rebased to the first job used; all jobs have priority 0. Memory,
CPU time, groups, queues and the dependencies between jobs are not used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.history import History
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
    from collections.abc import Mapping
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


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is SWF, by its first rows, else by its name or header."""
    if is_binary(head):
        return Match.NO
    lines = head_lines(head)
    rows = [line for line in lines if not line.startswith(";")][:_DETECT_ROWS]
    if rows and all(_is_row(row.split()) for row in rows):
        return Match.CERTAIN
    named = path.name.lower().removesuffix(".gz").endswith(_SUFFIX)
    if named or _HEADER_KEYS & _header(lines).keys():
        return Match.NAMED
    return Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of an SWF file.

    Provenance, besides what `load_trace` lists: `status` (rows by status), `extra_fields` (rows
    with more than 18 fields), `origin_unix_time` (of time 0; None = not known), `time_zone`,
    `max_procs` (from the header; the node count if it has no processor count), and `source`
    (computer, installation and acknowledgement, from the header).

    Raises:
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    comments, text = _part_comments(read_text(path))
    header = _header(comments)
    rows = BlankSeparated(
        text,
        path,
        FIELDS,
        wanted=_WANTED,
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
        "max_procs": _leading_number(header, "MaxProcs") or _leading_number(header, "MaxNodes"),
        "source": {
            key.lower(): header[key]
            for key in ("Computer", "Installation", "Acknowledge")
            if header.get(key)
        },
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=processors[used],
        estimate=np.where(estimate[used] > 0, estimate[used], np.nan),
        user=user_code,
        user_names=tuple("unknown" if code < 0 else f"{code:.0f}" for code in users.tolist()),
        names=_as_text(job_number[used]),
        history=History((submit + np.where(wait >= 0, wait, np.nan))[used]),
        name=bare_name(path, _SUFFIX),
        provenance=provenance,
    )


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


def _header(lines: list[str]) -> dict[str, str]:
    """Return the `; Key: value` pairs in `lines`; for a repeated key, the first."""
    pairs: dict[str, str] = {}
    for line in lines:
        match = _HEADER_LINE.match(line)
        if match:
            pairs.setdefault(match[1], match[2])
    return pairs


def _leading_number(header: Mapping[str, str], key: str) -> int | None:
    """Return the whole number at the start of a header value, if it is more than 0."""
    match = re.match(r"\d{1,15}\b", header.get(key, ""))
    return int(match[0]) or None if match else None


def _is_row(words: list[str]) -> bool:
    """Return whether the fields could be a job: enough fields, and numbers in the first five."""
    return len(words) >= len(FIELDS) and all(
        re.fullmatch(r"[-+]?\d+(\.\d*)?", word) for word in words[:5]
    )
