"""Alibaba spot and high-priority jobs (cluster-trace-v2026-spot-gpu): the publisher's job list.

A row is one job, after a header line: `worker_num` workers of `gpu_request` GPUs and `cpu_request`
CPUs each, all on one GPU model; times are seconds from the first submission. The trace shows when
a job was submitted and how long it ran, not when it started.

How columns become jobs: the workers are one gang, a fraction of a GPU counts as a whole one for
each worker; the organization is the user; high-priority (`HP`) jobs have priority 1 and spot jobs
0. That spot jobs may be preempted is not modelled. Jobs submitted at second 0 were running when
the trace began; they are kept and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.workload import Workload
from berthline.traces.csv_table import CsvTable, count_values
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name
from berthline.traces.gpu_type_sets import gpu_type_sets
from berthline.traces.usable import FRACTIONS_ROUNDED_UP, NO_GPUS, NO_RUN_TIME, choose_rows

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_COLUMNS = (
    "job_name",
    "organization",
    "gpu_model",
    "cpu_request",
    "gpu_request",
    "worker_num",
    "submit_time",
    "duration",
    "job_type",
)
_MARKS = {"job_name", "gpu_request", "worker_num", "job_type"}
_MOST = 2**31 - 1  # what the workload's columns hold

PRIORITIES: Mapping[str, int] = {"Spot": 0, "HP": 1}
"""Priority of each type of job."""


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is the publisher's list of jobs, by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(header_cells(head)) >= _MARKS else Match.NO


def read(path: Path) -> Workload:
    """Return the GPU jobs of a file.

    Provenance, besides what `load_trace` lists: `rounded`, `gpus_asked` (before rounding),
    `job_type` (used rows by type), `priority` (how it was made), `already_running` (used rows
    submitted at second 0) and `origin_trace_seconds` (time 0 on the clock of the trace, whose date
    is not published).

    Raises:
        TraceError: the file cannot be read, a line makes no sense, or no job is usable.
    """
    table = CsvTable(path, required=_COLUMNS)
    per_worker = table.numbers("gpu_request", lowest=0, highest=_MOST)
    workers = table.numbers("worker_num", lowest=0, highest=_MOST, whole=True)
    cpus = table.numbers("cpu_request", lowest=0, highest=_MOST, missing=0)
    submit = table.numbers("submit_time")
    run = table.numbers("duration", missing=0)
    gpus = np.ceil(per_worker) * workers
    cpus = np.ceil(cpus * workers)
    too_many = (gpus > _MOST) | (cpus > _MOST)
    table.refuse(too_many, "worker_num", f"up to {_MOST} GPUs and CPUs in all workers together")
    job_type = table.text("job_type")
    known = job_type.is_in(list(PRIORITIES)).fill_null(value=False)
    table.refuse(~known, "job_type", "one of " + ", ".join(PRIORITIES))
    used, dropped = choose_rows(
        {NO_GPUS: gpus == 0, NO_RUN_TIME: run <= 0},
        path=path,
        expected="a duration, gpu_request and worker_num of more than 0",
    )
    fractional = used & (per_worker != np.floor(per_worker))
    types, type_sets = gpu_type_sets(table.text("gpu_model", rows=used))
    users, user_names = table.categories("organization", rows=used)
    used_type = table.text("job_type", rows=used)
    provenance: dict[str, Any] = {
        "format": "alibaba-spot",
        "path": path.name,
        "rows": len(table),
        "used": int(used.sum()),
        "dropped": dropped,
        "origin_unix_time": None,
        "time_zone": None,
        "origin_trace_seconds": float(submit[used].min()),
        "rounded": {FRACTIONS_ROUNDED_UP: int(fractional.sum())},
        "gpus_asked": float((per_worker * workers)[used].sum()),
        "job_type": count_values(used_type),
        "priority": "by job_type: "
        + ", ".join(f"{name} {value}" for name, value in PRIORITIES.items()),
        "already_running": int((used & (submit == 0)).sum()),
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        cpus=cpus[used],
        priority=used_type.replace_strict(PRIORITIES).to_numpy(),
        user=users,
        user_names=user_names,
        gpu_types=types,
        gpu_type_sets=type_sets,
        names=table.labels("job_name", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
