"""Alibaba spot and high-priority jobs (cluster-trace-v2026-spot-gpu): the publisher's job list.

The file has a header line and one row per job: `worker_num` workers with `gpu_request` GPUs and
`cpu_request` CPUs each, all on one GPU model; times are seconds from the first submission. The
trace shows when a job was submitted and how long it ran, not when it started.

How columns become jobs: the workers are one gang; a part of a GPU stays a part if there is one
worker, and counts as a whole GPU for each of several workers; jobs without GPUs are left out unless
`cpu_jobs="keep"`; the organization is the user; high-priority (`HP`) jobs have priority 1 and spot
jobs 0. Preemption of spot jobs is not modelled. Jobs submitted at second 0 were running when the
trace began; they are kept and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    CPU_JOBS_OPTION,
    NO_RUN_TIME,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests, gpu_type_sets
from berthline.traces.reading.text_columns import among, count_codes

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
_NUMBERS = ("cpu_request", "gpu_request", "worker_num", "submit_time", "duration")
_WORDS = ("organization", "gpu_model", "job_type")
_MARKS = {"job_name", "gpu_request", "worker_num", "job_type"}
_MOST = 2**31 - 1  # the limit of the workload's columns

OPTIONS = CPU_JOBS_OPTION

PRIORITIES: Mapping[str, int] = {"Spot": 0, "HP": 1}
"""Priority of each type of job."""


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is the publisher's list of jobs, by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(header_cells(head)) >= _MARKS else Match.NO


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a file.

    Provenance, besides what `load_trace` lists: `cpu_jobs` (jobs used that need no GPU), `rounded`,
    `gpus_asked` (before rounding), `job_type` (used rows by type), `priority` (how it was derived),
    `already_running` (used rows submitted at second 0) and `origin_trace_seconds` (time 0 on the
    clock of the trace, whose date is not published).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    table = CsvTable(path, required=_COLUMNS, numbers=_NUMBERS, words=_WORDS, texts=("job_name",))
    per_worker = table.numbers("gpu_request", lowest=0, highest=_MOST)
    workers = table.numbers("worker_num", lowest=0, highest=_MOST, whole=True)
    cpus = table.numbers("cpu_request", lowest=0, highest=_MOST, missing=0)
    submit = table.numbers("submit_time")
    run = table.numbers("duration", missing=0)
    requests = GpuRequests.of(per_worker, workers)
    gpus = requests.gpus
    cpus = np.ceil(cpus * workers)
    too_many = (gpus > _MOST) | (cpus > _MOST)
    table.refuse(too_many, "worker_num", f"up to {_MOST} GPUs and CPUs in all workers together")
    job_type, types_named = table.categories("job_type")
    if not set(types_named) <= set(PRIORITIES):
        known = among(job_type, types_named, tuple(PRIORITIES))
        table.refuse(~known, "job_type", "one of " + ", ".join(PRIORITIES))
    used, dropped = choose_rows(
        {**without_gpus(cpu_jobs, gpus, cpus), NO_RUN_TIME: run <= 0},
        path=path,
        expected="a duration, gpu_request and worker_num of more than 0",
    )
    types, type_sets = gpu_type_sets(table.text("gpu_model", rows=used), gpus=gpus[used])
    users, user_names = table.categories("organization", rows=used)
    job_type = job_type[used]
    provenance: dict[str, Any] = {
        **row_facts("alibaba-spot", path, used, dropped, origin=None, zone=None),
        "origin_trace_seconds": float(submit[used].min()),
        "cpu_jobs": int((used & (gpus == 0)).sum()),
        "rounded": requests.rounded(used),
        "gpus_asked": float(requests.asked[used].sum()),
        "job_type": count_codes(job_type, types_named),
        "priority": "by job_type: "
        + ", ".join(f"{name} {value}" for name, value in PRIORITIES.items()),
        "already_running": int((used & (submit == 0)).sum()),
    }
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        gpu_milli=requests.gpu_milli[used],
        cpus=cpus[used],
        priority=np.array([PRIORITIES[name] for name in types_named])[job_type],
        user=users,
        user_names=user_names,
        gpu_types=types,
        gpu_type_sets=type_sets,
        reference_type=RECORDED,
        names=table.labels("job_name", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
