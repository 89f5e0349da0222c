"""LSF's accounting file `lsb.acct`: JOB_FINISH records in the field order of LSF 10.1.

A record is a line of fields separated by blanks; text is in double quotes, with `""` for a quote
inside. Two lists of hosts, each preceded by its length, come before the status. Fields up to the
swap space used have fixed positions; the fields after them differ between releases, so they are
searched for the effective resource requirement and the `-gpu` text. A line that does not start a
record continues the previous one, because commands may have several lines. Other records, such as
those of reservations, are counted and left out.

The run time is finish - start; the finish is the time of the record. GPUs come from the effective
resource requirement, else the `-gpu` text, else the requirement of the submission. The queue is the
pool. The run limit has no fixed position in a record, so jobs have no estimate. Jobs without GPUs
are left out unless `cpu_jobs="keep"`.
"""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, head_lines
from berthline.traces.formats.lsf.lsf_gpus import MOST_GPUS, requested_gpus, requested_model
from berthline.traces.formats.recorded_types import recorded_types
from berthline.traces.formats.row_filter import (
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.files import bare_name, read_text
from berthline.traces.reading.quoted import shorten
from berthline.traces.reading.request_columns import GpuRequests, number_pools
from berthline.traces.reading.text_columns import LONGEST_LABEL, categorize, count_values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

OTHER_RECORD = "not a JOB_FINISH record"
OPTIONS = CPU_JOBS_OPTION
STATUSES = {32: "EXIT", 64: "DONE"}

_START = re.compile(r'"[A-Z][A-Z0-9_]*" "[^"]*" \d')
_SLOTS = re.compile(r"^\d+\*")

# Positions of fields before the first list of hosts, and after the status.
_EVENT_TIME, _JOB_ID, _PROCESSORS, _SUBMIT, _STARTED, _USER, _QUEUE = 2, 3, 6, 7, 10, 11, 12
_REQUIREMENT, _NUM_ASKED = 13, 22
_INDEX_AFTER_STATUS = 29  # host factor, name, command, 19 of usage, then the 7th of 9 more
_EVENT_AFTER_STATUS = 28  # a text; compatible systems omit it and have the index here
_TAIL_AFTER_STATUS = 32

_OPTION = re.compile(r"\b(?:num|gmodel)=")

_LARGEST = 10**15
_MOST_DIGITS = 16


class Job(NamedTuple):
    """The content of a record; `gpus` is 0 if it requests none, and may be a fraction."""

    line: int
    name: str
    submit: int
    start: int
    finish: int
    processors: int
    gpus: float
    gpu_terms: int
    model: str | None
    user: str
    queue: str
    status: int
    hosts: str


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is an LSF accounting file, by its first records."""
    del path  # only the content counts
    lines = head_lines(head)
    starts = [line for line in lines if _START.match(line)]
    return Match.CERTAIN if any(line.startswith('"JOB_FINISH" ') for line in starts) else Match.NO


def lists_nodes(head: bytes, path: Path) -> bool:
    """Return True: every record has the hosts that its job ran on."""
    del head, path
    return True


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of an LSF accounting file.

    Provenance, besides what `load_trace` lists: `status` (finished jobs by status),
    `several_gpu_requests` (jobs used with more than one; the first counts), `rounded` and
    `cpu_jobs` (jobs used that need no GPU).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the file cannot be read, a record is invalid, or no job is usable.
    """
    import polars as pl

    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    records = list(_records(read_text(path).decode("utf-8", errors="replace"), path))
    jobs = [_job(text, path, line) for line, text in records if text.startswith('"JOB_FINISH" ')]
    if not jobs:
        raise TraceError(
            "the file has no JOB_FINISH record", where=str(path), expected="finished jobs"
        )
    columns = np.array(
        [(job.submit, job.start, job.finish, job.gpus, job.processors) for job in jobs],
        dtype=np.float64,
    )
    submit, start, finish, asked, processors = columns.T
    requests = GpuRequests.of(asked)
    gpus = requests.gpus
    used, dropped = choose_rows(
        {
            NEVER_STARTED: start == 0,
            NO_SUBMIT_TIME: submit == 0,
            **without_gpus(cpu_jobs, gpus, processors),
            NO_RUN_TIME: finish <= start,
        },
        path=path,
        expected="a start, a later finish, and a request for GPUs",
    )
    if len(records) > len(jobs):
        dropped = {OTHER_RECORD: len(records) - len(jobs), **dropped}
    kept = [job for job, keep in zip(jobs, used.tolist(), strict=True) if keep]
    user, user_names = categorize(pl.Series([job.user or None for job in kept], dtype=pl.String))
    pool, pool_names = number_pools(pl.Series([job.queue or None for job in kept], dtype=pl.String))
    history = _history(kept, start[used])
    ran_on, ran_on_types = recorded_types(history)
    return Workload.from_columns(
        submit=submit[used],
        run=(finish - start)[used],
        gpus=gpus[used],
        gpu_milli=requests.gpu_milli[used],
        cpus=processors[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        ran_on=ran_on,
        ran_on_types=ran_on_types,
        reference_type=RECORDED,
        names=[job.name for job in kept],
        history=history,
        name=bare_name(path),
        provenance={
            **row_facts(
                "lsf-acct", path, used, dropped, origin=float(submit[used].min()), zone=None
            ),
            "rows": len(records),
            "cpu_jobs": int((used & (gpus == 0)).sum()),
            "rounded": requests.rounded(used),
            "status": count_values(pl.Series([_status_name(job.status) for job in jobs])),
            "several_gpu_requests": sum(job.gpu_terms > 1 for job in kept),
        },
    )


def _history(jobs: list[Job], start: npt.NDArray[np.float64]) -> History:
    """Return what the file has about its jobs besides what a simulation needs."""
    import polars as pl

    nodes, lists = number_pools(pl.Series([job.hosts or None for job in jobs], dtype=pl.String))
    status, names = number_pools(pl.Series([_status_name(job.status) for job in jobs]))
    # A job that asks for a model ran on it.
    kind, type_names = number_pools(pl.Series([job.model for job in jobs], dtype=pl.String))
    return History(
        start,
        nodes=nodes if lists else None,
        node_lists=lists,
        gpu_type=kind if type_names else None,
        gpu_type_names=type_names,
        status=status,
        status_names=names,
    )


def _status_name(status: int) -> str:
    return STATUSES.get(status, f"status {status}")


def _records(text: str, path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number of the line on which each record starts, and the record."""
    first = 0
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if _START.match(line):
            if lines:
                yield first, "\n".join(lines)
            first, lines = number, [line]
        elif lines:
            lines.append(line)
        elif line.strip() and not line.startswith("#"):
            raise TraceError(
                f"the line starts with {shorten(line)}",
                where=f"{path}, line {number}",
                expected='a record such as "JOB_FINISH" "10.1" 1709290000 501 ...',
            )
    if lines:
        yield first, "\n".join(lines)


def _job(text: str, path: Path, line: int) -> Job:
    fields = _Fields(text, path, line)
    status_at = _NUM_ASKED
    hosts: list[str] = []
    for _ in range(2):  # hosts asked for, hosts used
        count = fields.number(status_at, "number of hosts", highest=len(fields.values))
        hosts = fields.values[status_at + 1 : status_at + 1 + count]
        status_at += count + 1
    processors = fields.number(_PROCESSORS, "numProcessors", highest=MOST_GPUS)
    gpus, gpu_terms = 0.0, 0
    requirements = _requirements(text, fields, status_at)
    models = (requested_model(each) for each in requirements) if "gmodel=" in text else ()
    for requirement in requirements:
        request = requested_gpus(requirement)
        if request is not None:
            num_hosts = len({_SLOTS.sub("", host) for host in hosts})
            gpus = request.total(hosts=num_hosts, tasks=processors)
            gpu_terms = request.terms
            break
    if gpus > MOST_GPUS:
        fields.refuse("the request for GPUs", gpus, f"up to {MOST_GPUS} GPUs")
    has_event = not fields.text(status_at + _EVENT_AFTER_STATUS, "timeEvent").isdigit()
    index_at = status_at + (_INDEX_AFTER_STATUS if has_event else _EVENT_AFTER_STATUS)
    index = fields.number(index_at, "idx")
    name = str(fields.number(_JOB_ID, "jobId"))
    user, queue = fields.text(_USER, "userName"), fields.text(_QUEUE, "queue")
    if max(len(user), len(queue)) > LONGEST_LABEL:
        fields.refuse("userName or queue", user, f"up to {LONGEST_LABEL} characters")
    return Job(
        line=line,
        name=f"{name}[{index}]" if index else name,
        submit=fields.number(_SUBMIT, "submitTime"),
        start=fields.number(_STARTED, "startTime"),
        finish=fields.number(_EVENT_TIME, "event time"),
        processors=processors,
        gpus=gpus,
        gpu_terms=gpu_terms,
        model=next((model for model in models if model is not None), None),
        user=user,
        queue=queue,
        status=fields.number(status_at, "jStatus"),
        hosts=",".join(dict.fromkeys(_SLOTS.sub("", host) for host in hosts)),
    )


def _requirements(text: str, fields: _Fields, status_at: int) -> list[str]:
    """Return the texts of a record that may request GPUs, the most reliable first."""
    if "ngpus" not in text and "num=" not in text and "gmodel=" not in text:
        return []  # most records at most sites; this is by far the fastest check
    tail = fields.values[status_at + _TAIL_AFTER_STATUS :]
    effective = [field for field in tail if "rusage[" in field]
    options = [field for field in tail if _OPTION.search(field) and "[" not in field]
    return [*effective, *options, fields.text(_REQUIREMENT, "resReq")]


class _Fields:
    """The fields of one record, and errors about them."""

    def __init__(self, text: str, path: Path, line: int) -> None:
        self._where = f"{path}, line {line}"
        csv.field_size_limit(2**31 - 1)
        try:
            self.values: list[str] = next(csv.reader([text], delimiter=" ", strict=True))
        except csv.Error as error:
            raise TraceError(
                f"the record cannot be split into fields ({error})",
                where=self._where,
                expected='fields separated by one blank, text in quotes, with "" for one inside',
                hint="if it is the last line, the file may have been cut short",
            ) from None

    def text(self, at: int, name: str) -> str:
        if at >= len(self.values):
            raise TraceError(
                f"the record has only {len(self.values)} fields",
                where=self._where,
                expected=f"{at + 1} or more, up to {name}",
                hint="if it is the last line, the file may have been cut short",
            )
        return self.values[at]

    def number(self, at: int, name: str, *, highest: int = _LARGEST) -> int:
        text = self.text(at, name)
        if not (text.isdecimal() and len(text) <= _MOST_DIGITS) or int(text) > highest:
            self.refuse(f"field {at + 1} ({name})", text, f"a whole number from 0 to {highest}")
        return int(text)

    def refuse(self, what: str, value: object, expected: str) -> NoReturn:
        raise TraceError(f"{what} is {shorten(value)}", where=self._where, expected=expected)
