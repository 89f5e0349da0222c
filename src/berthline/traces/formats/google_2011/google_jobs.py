"""Google cluster trace of 2011 (clusterdata-2011-2): job and task events as jobs.

A table comes in parts. One part, a directory of parts, or the directory of the whole trace is one
trace here. A job is submitted, scheduled, and ends by finishing, failing, being killed, evicted or
lost; only jobs submitted and ended within the parts read are used. Without job_events, the events
of a job's tasks are used instead. The run time is the time from the first schedule event to the
last end, including restarts.

The trace has no GPUs, so the GPUs of a job are an assumption, stated in the provenance. Without
task_events, every job takes one. With task_events, it takes max(1, ceil(gpus_per_machine * sum of
CPU requests)), where requests are relative to the largest machine and `gpus_per_machine` is an
option (default 8). The scheduling class (0 to 3, the most latency-sensitive) is the priority.
Memory, disk and constraints are not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match
from berthline.traces.formats.google_2011.google_events import read_cpu, read_jobs
from berthline.traces.formats.google_2011.google_tables import (
    EVENTS,
    JOB_EVENTS,
    MACHINE_EVENTS,
    SECOND,
    TASK_EVENTS,
    own_parts,
    parts_in,
    parts_of,
    recognise,
    table_name,
    trace_directory,
)
from berthline.traces.formats.row_filter import (
    CANCELLED,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    choose_rows,
    row_facts,
)
from berthline.traces.generators.dials import Dial
from berthline.traces.reading.files import bare_name, is_directory
from berthline.traces.reading.text_columns import categorize, count_values, label_array

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

GPUS_PER_MACHINE = Dial(
    name="gpus_per_machine",
    default=8.0,
    meaning="GPUs for CPU requests that add up to the largest machine",
    lowest=0.001,
    highest=100,
)
OPTIONS = {GPUS_PER_MACHINE.name: GPUS_PER_MACHINE.meaning + "; needs task_events"}

BEFORE_THE_TRACE = "submitted before the trace begins"

_UNIX_START = 1_304_290_800.0 - 600.0
"""Unix time of the trace's second 0: its second 600 is 2011-05-01 19:00 in New York."""


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a part of job_events or task_events, by the shape of its rows."""
    del path  # only the content counts
    name, match = recognise(head)
    return match if name in (JOB_EVENTS, TASK_EVENTS) else Match.NO


def parts(directory: Path) -> list[Path]:
    """Return the event files in a directory of parts or of a whole trace."""
    return (
        own_parts(directory) or parts_in(directory, JOB_EVENTS) or parts_in(directory, TASK_EVENTS)
    )


def read(path: Path, *, gpus_per_machine: object = GPUS_PER_MACHINE.default) -> Workload:
    """Return the jobs of a part, of a directory of parts, or of the directory of a trace.

    Provenance, besides what `load_trace` lists, where rows are the jobs that have an event:
    `events` (rows by type), `parts` (how many were read, of how many), `ended` (used jobs by how
    they ended), `gpus_are` (the mapping to GPUs), `task_events` (whether they were found) and
    `machine_events` (whether they were found; `read_cluster` makes a cluster of them).

    Args:
        path: a file or a directory.
        gpus_per_machine: GPUs for CPU requests that add up to the largest machine.

    Raises:
        ConfigError: `gpus_per_machine` is not a number, or is out of range.
        TraceError: a part cannot be read, a line is invalid, or no job is usable.
    """
    import polars as pl

    factor = float(GPUS_PER_MACHINE.convert(gpus_per_machine, where=str(path)))
    files = parts(path) if is_directory(path) else [path]
    table = (table_name(files[0]) or JOB_EVENTS) if files else None
    if table not in (JOB_EVENTS, TASK_EVENTS):
        raise TraceError(
            "there are no job events",
            where=str(path),
            expected=f"parts of {JOB_EVENTS} or {TASK_EVENTS}, or a directory of them",
        )
    task_files = files if table == TASK_EVENTS else parts_in(trace_directory(path), TASK_EVENTS)
    jobs, events = read_jobs(files, table)
    used, dropped = choose_rows(
        _reasons(jobs),
        path=path,
        expected="a submit, a schedule and an end event within the parts read",
    )
    jobs = jobs.filter(pl.Series(used))
    cpu = np.zeros(len(jobs))
    if task_files:
        cpu = jobs["cpu"].to_numpy() if table == TASK_EVENTS else read_cpu(task_files, jobs["job"])
    # Due to the margin, a sum such as 0.1 + 0.2 does not take one GPU more than 0.3.
    gpus = np.maximum(np.ceil(cpu * factor - 1e-9), 1)
    users, user_names = categorize(jobs["user"])
    submit = jobs["submit"].to_numpy() / SECOND
    endings = count_values(jobs["ending"].cast(pl.String))
    provenance: dict[str, Any] = {
        **row_facts(
            "google-2011",
            path,
            used,
            dropped,
            origin=_UNIX_START + float(submit.min()),
            zone="America/New_York",
        ),
        "events": {EVENTS[code]: count for code, count in enumerate(events.tolist()) if count},
        "parts": parts_of(files),
        "ended": {EVENTS[int(code)]: count for code, count in endings.items()},
        "gpus_are": f"CPU requests of all tasks x {factor:g}, rounded up, at least 1"
        if task_files
        else "1 for every job, for lack of task_events",
        "without_cpu_request": int((cpu == 0).sum()),
        "task_events": bool(task_files),
        "machine_events": bool(parts_in(trace_directory(path), MACHINE_EVENTS)),
    }
    name = trace_directory(path).absolute() if is_directory(path) else path
    return Workload.from_columns(
        submit=submit,
        run=(jobs["end"] - jobs["schedule"]).to_numpy() / SECOND,
        gpus=gpus,
        priority=jobs["class"].to_numpy(),
        user=users,
        user_names=user_names,
        reference_type=RECORDED,
        names=label_array(jobs["job"]),
        history=History(jobs["schedule"].to_numpy() / SECOND),
        name=bare_name(name, ".csv"),
        provenance=provenance,
    )


def _reasons(jobs: pl.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the reasons for leaving jobs out, with the rows they apply to."""
    ended = jobs["ended"].to_numpy()
    submit, schedule, end = (jobs[name].to_numpy() for name in ("submit", "schedule", "end"))
    unscheduled = np.isnan(schedule)
    return {
        BEFORE_THE_TRACE: submit == 0,
        NO_SUBMIT_TIME: np.isnan(submit),
        CANCELLED: unscheduled & ended,
        NEVER_STARTED: unscheduled,
        NOT_FINISHED: ~ended,
        NO_RUN_TIME: end <= schedule,
    }
