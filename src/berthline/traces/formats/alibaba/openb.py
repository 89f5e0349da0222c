"""Alibaba `openb` pod lists (cluster-trace-gpu-v2023): pods of a cluster whose GPUs are shared.

The file has a header line and one row per pod: `num_gpu` GPUs; a pod with one GPU may take only a
part of it (`gpu_milli`, 1000 = the whole); `gpu_spec` = the models it may run on, separated by
`|`, empty = any; times are seconds from the start of the trace. Pending pods have no
`scheduled_time`, but every pod has a `deletion_time`. The publisher also has pod lists without
times. They can be packed but not replayed, and are refused here.

How columns become jobs: submission is the creation; the run time is deletion - scheduling, or
deletion - creation for a pod never scheduled; a part of a GPU stays a part; CPUs are rounded up to
whole cores; `qos` becomes the priority (`PRIORITIES`). Pods without GPUs are left out unless
`cpu_jobs="keep"`. There is no user column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    CPU_JOBS_OPTION,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests, gpu_type_sets
from berthline.traces.reading.text_columns import count_codes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_RESOURCES = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_ATTRIBUTES = ("gpu_spec", "qos", "pod_phase")

OPTIONS = CPU_JOBS_OPTION

PRIORITIES: Mapping[str, int] = {"BE": 0, "Burstable": 1, "LS": 2, "Guaranteed": 3}
"""Priority of each quality of service: best effort, burstable, latency sensitive, guaranteed."""


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a pod list, with times or without, by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(_RESOURCES) <= set(header_cells(head)) else Match.NO


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the pods of a pod list.

    Provenance, besides what `load_trace` lists: `cpu_jobs` (pods used that need no GPU), `rounded`,
    `gpus_asked` (before rounding), `pod_phase` and `qos` (used rows by value), `never_scheduled`
    (used rows whose run time counts from their creation), `priority` (how it was derived) and
    `origin_trace_seconds` (time 0 on the clock of the trace, whose date is not published).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out pods without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the list has no times, a line is invalid, or no pod is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    table = CsvTable(
        path,
        required=_RESOURCES,
        numbers=(*_RESOURCES[1:], *_TIMES),
        words=_ATTRIBUTES,
        texts=(_RESOURCES[0],),
    )
    _require_times(table)
    table.require(_ATTRIBUTES)
    num_gpu = table.numbers("num_gpu", lowest=0, highest=2**31 - 1, whole=True)
    gpu_milli = table.numbers("gpu_milli", lowest=0, highest=WHOLE_GPU, missing=WHOLE_GPU)
    cpu_milli = table.numbers("cpu_milli", lowest=0, highest=1e12, missing=0)
    memory = table.numbers("memory_mib", lowest=0, missing=0)
    created = table.numbers("creation_time", missing=np.nan)
    deleted = table.numbers("deletion_time", missing=np.nan)
    scheduled = table.numbers("scheduled_time", missing=np.nan)
    run = deleted - np.where(np.isnan(scheduled), created, scheduled)
    requests = GpuRequests.of(gpu_milli / WHOLE_GPU, num_gpu)
    gpus = requests.gpus
    used, dropped = choose_rows(
        {
            **without_gpus(cpu_jobs, gpus, cpu_milli, memory),
            NO_SUBMIT_TIME: np.isnan(created),
            NOT_FINISHED: np.isnan(deleted),
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="GPUs, a creation_time and a later deletion_time",
    )
    qos, qualities = table.categories("qos", rows=used)
    types, type_sets = gpu_type_sets(table.text("gpu_spec", rows=used), gpus=gpus[used])
    provenance: dict[str, Any] = {
        **row_facts("alibaba-openb", path, used, dropped, origin=None, zone=None),
        "origin_trace_seconds": float(created[used].min()),
        "cpu_jobs": int((used & (gpus == 0)).sum()),
        "rounded": requests.rounded(used),
        "gpus_asked": float((num_gpu * gpu_milli)[used].sum() / WHOLE_GPU),
        "pod_phase": count_codes(*table.categories("pod_phase", rows=used)),
        "qos": count_codes(qos, qualities),
        "priority": "by qos: " + ", ".join(f"{name} {value}" for name, value in PRIORITIES.items()),
        "never_scheduled": int((used & np.isnan(scheduled)).sum()),
    }
    columns: dict[str, Any] = {
        "submit": created[used],
        "run": run[used],
        "gpus": gpus[used],
        "gpu_milli": requests.gpu_milli[used],
        "cpus": np.ceil(cpu_milli[used] / 1000),
        "memory_mib": np.ceil(memory[used]),
        # An unknown quality of service has the lowest priority.
        "priority": np.array([PRIORITIES.get(name, 0) for name in qualities])[qos],
        "gpu_types": types,
        "history": History(scheduled[used]),
    }
    names = table.labels("name", rows=used)
    # The table takes more memory than the workload.
    del table, requests, gpus, num_gpu, gpu_milli, cpu_milli, memory
    del created, deleted, scheduled, run, qos, types
    return Workload.from_columns(
        **columns,
        gpu_type_sets=type_sets,
        user_names=("unknown",),
        reference_type=RECORDED,
        names=names,
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )


def _require_times(table: CsvTable) -> None:
    """Refuse a pod list that has requests but no times.

    Raises:
        TraceError: a column of times is missing or empty.
    """
    for name in _TIMES:
        absent = "" if name in table.columns else "not there"
        # Pods may all be pending, so scheduled_time may be empty.
        if not absent and name in _TIMES[:2] and table.is_empty(name):
            absent = "empty"
        if absent:
            raise TraceError(
                f"the pod list has no times: column {name!r} is {absent}",
                where=str(table.path),
                expected="a pod list with " + ", ".join(_TIMES),
                hint="without times it can be packed but not replayed; "
                "openb_pod_list_default.csv has them",
            )
