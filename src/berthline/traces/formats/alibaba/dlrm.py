"""Alibaba DLRM inference instances (cluster-trace-gpu-v2025).

The file has a header line and one row per instance. Role `HN` runs on a GPU node. Role `CN` runs
on a CPU node without a GPU and is left out unless `cpu_jobs="keep"`. Memory is in GiB, times are
seconds from the start of the trace. An instance created before the trace has no creation and
scheduling time; an instance that outlives the trace has no deletion time.

How columns become jobs: submission is the creation, the run time is deletion - scheduling, the
application (`app_name`) is the user. Instances that begin before or end after the trace are left
out, or with `censored="clip"` cut off at its ends. All instances are equally important to the
publisher, so all have priority 0. Not used: the limit on instances of an application per node,
network and disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import ConfigError, unknown_name
from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    CPU_JOBS_OPTION,
    NO_RUN_TIME,
    NOT_FINISHED,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests

if TYPE_CHECKING:
    from pathlib import Path

_COLUMNS = (
    "instance_sn",
    "role",
    "app_name",
    "cpu_request",
    "gpu_request",
    "memory_request",
    "max_instance_per_node",
    "creation_time",
    "scheduled_time",
    "deletion_time",
)
_NUMBERS = (
    *("cpu_request", "gpu_request", "memory_request"),
    *("creation_time", "scheduled_time", "deletion_time"),
)
_MARKS = {"instance_sn", "role", "app_name", "max_instance_per_node"}
_MIB = 1024  # in a GiB
_FIRST = 0.0  # seconds; the trace begins at 0 on its clock
_PRECISION = 3  # decimals of a second; the file's times have noise in their tenth decimal

CENSORED = ("drop", "clip")
ALREADY_THERE = "created before the trace begins"

OPTIONS = {
    "censored": "instances cut off by an end of the trace: drop (default), or clip to its ends",
    **CPU_JOBS_OPTION,
}


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a list of DLRM instances, by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(header_cells(head)) >= _MARKS else Match.NO


def read(path: Path, *, censored: str = "drop", cpu_jobs: str = "drop") -> Workload:
    """Return the instances of a file.

    Provenance, besides what `load_trace` lists: `censored` (the option), `clipped` (used rows with
    an unknown begin, and with an unknown end), `cpu_jobs` (instances used that need no GPU),
    `rounded`, `not_modelled`, and `origin_trace_seconds` (time 0 on the clock of the trace, whose
    date is not published).

    Args:
        path: the file.
        censored: how to treat instances whose creation or deletion is not in the trace: "drop"
            leaves them out, "clip" lets them start at the first and end at the last time in it.
        cpu_jobs: "drop" leaves out instances without GPUs, "keep" keeps them.

    Raises:
        ConfigError: the setting of an option is unknown.
        TraceError: the file cannot be read, a line is invalid, or no instance is usable.
    """
    if censored not in CENSORED:
        what, expected, hint = unknown_name("setting of censored", censored, CENSORED)
        raise ConfigError(what, where=str(path), expected=expected, hint=hint)
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    table = CsvTable(
        path, required=_COLUMNS, numbers=_NUMBERS, words=("app_name",), texts=("instance_sn",)
    )
    requests = GpuRequests.of(table.numbers("gpu_request", lowest=0, highest=2**31 - 1))
    gpus = requests.gpus
    cpus = table.numbers("cpu_request", lowest=0, highest=2**31 - 1, missing=0)
    memory = table.numbers("memory_request", lowest=0, highest=1e12, missing=0)
    created = table.numbers("creation_time", missing=np.nan).round(_PRECISION)
    scheduled = table.numbers("scheduled_time", missing=np.nan).round(_PRECISION)
    deleted = table.numbers("deletion_time", missing=np.nan).round(_PRECISION)
    no_begin, no_end = np.isnan(created), np.isnan(deleted)
    begin = np.where(np.isnan(scheduled), created, scheduled)
    if censored == "clip":
        seen = np.concatenate([created, scheduled, deleted])
        last = np.nanmax(seen) if np.isfinite(seen).any() else _FIRST
        created = np.where(no_begin, _FIRST, created)
        begin = np.where(np.isnan(begin), _FIRST, begin)
        deleted = np.where(no_end, last, deleted)
    run = deleted - begin
    used, dropped = choose_rows(
        {
            **without_gpus(cpu_jobs, gpus, cpus, memory),
            ALREADY_THERE: np.isnan(created),
            NOT_FINISHED: np.isnan(deleted),
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="GPUs, a creation_time and a later deletion_time",
    )
    users, user_names = table.categories("app_name", rows=used)
    provenance: dict[str, Any] = {
        **row_facts("alibaba-dlrm", path, used, dropped, origin=None, zone=None),
        "origin_trace_seconds": float(created[used].min()),
        "cpu_jobs": int((used & (gpus == 0)).sum()),
        "rounded": requests.rounded(used),
        "censored": censored,
        "clipped": {
            ALREADY_THERE: int((used & no_begin).sum()),
            NOT_FINISHED: int((used & no_end).sum()),
        },
        "not_modelled": "max_instance_per_node (anti-affinity of an application), rdma, disk",
    }
    return Workload.from_columns(
        submit=created[used],
        run=run[used],
        gpus=gpus[used],
        gpu_milli=requests.gpu_milli[used],
        cpus=np.ceil(cpus[used]),
        memory_mib=np.ceil(memory[used] * _MIB),
        user=users,
        user_names=user_names,
        reference_type=RECORDED,
        names=table.labels("instance_sn", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )
