"""Alibaba `openb` pod lists (cluster-trace-gpu-v2023): pods of a cluster whose GPUs are shared.

A row is one pod with a header line before the first: `num_gpu` GPUs, of which a pod with one may
take only a part (`gpu_milli`, 1000 = the whole); `gpu_spec` = the models it may run on, separated
by `|`, empty = any; times are seconds from the start of the trace. Pods still pending have no
`scheduled_time`, yet every pod has a `deletion_time`. The publisher also has pod lists without
times: a list to pack, not a trace to replay, and refused here.

How columns become jobs: submission is the creation; the run time is deletion - scheduling, or
deletion - creation for a pod never scheduled; shared GPUs are rounded up to whole ones; CPUs are
rounded up to whole cores; `qos` becomes the priority (`PRIORITIES`). There is no user column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.csv_table import CsvTable, count_values
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name
from berthline.traces.gpu_type_sets import gpu_type_sets
from berthline.traces.usable import (
    FRACTIONS_ROUNDED_UP,
    NO_GPUS,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    choose_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_RESOURCES = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_ATTRIBUTES = ("gpu_spec", "qos", "pod_phase")
_WHOLE_GPU = 1000  # gpu_milli

PRIORITIES: Mapping[str, int] = {"BE": 0, "Burstable": 1, "LS": 2, "Guaranteed": 3}
"""Priority of each quality of service: best effort, burstable, latency sensitive, guaranteed."""


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a pod list, with times or without, by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(_RESOURCES) <= set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the GPU pods of a pod list.

    Provenance, besides what `load_trace` lists: `rounded`, `gpus_asked` (before rounding),
    `pod_phase` and `qos` (used rows by value), `never_scheduled` (used rows whose run time counts
    from their creation), `priority` (how it was made) and `origin_trace_seconds` (time 0 on the
    clock of the trace, whose date is not published).

    Raises:
        TraceError: the list has no times, a line makes no sense, or no pod is usable.
    """
    import polars as pl

    table = CsvTable(path, required=_RESOURCES)
    _require_times(table)
    table.require(_ATTRIBUTES)
    gpus = table.numbers("num_gpu", lowest=0, highest=2**31 - 1, whole=True)
    gpu_milli = table.numbers("gpu_milli", lowest=0, highest=_WHOLE_GPU, missing=_WHOLE_GPU)
    cpu_milli = table.numbers("cpu_milli", lowest=0, highest=1e12, missing=0)
    memory = table.numbers("memory_mib", lowest=0, missing=0)
    created = table.numbers("creation_time", missing=np.nan)
    deleted = table.numbers("deletion_time", missing=np.nan)
    scheduled = table.numbers("scheduled_time", missing=np.nan)
    run = deleted - np.where(np.isnan(scheduled), created, scheduled)
    used, dropped = choose_rows(
        {
            NO_GPUS: (gpus == 0) | (gpu_milli == 0),
            NO_SUBMIT_TIME: np.isnan(created),
            NOT_FINISHED: np.isnan(deleted),
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="GPUs, a creation_time and a later deletion_time",
    )
    shared = used & (gpu_milli < _WHOLE_GPU)
    qos = table.text("qos", rows=used)
    types, type_sets = gpu_type_sets(table.text("gpu_spec", rows=used))
    provenance: dict[str, Any] = {
        "format": "alibaba-openb",
        "path": path.name,
        "rows": len(table),
        "used": int(used.sum()),
        "dropped": dropped,
        "origin_unix_time": None,
        "time_zone": None,
        "origin_trace_seconds": float(created[used].min()),
        "rounded": {FRACTIONS_ROUNDED_UP: int(shared.sum())},
        "gpus_asked": float((gpus * gpu_milli)[used].sum() / _WHOLE_GPU),
        "pod_phase": count_values(table.text("pod_phase", rows=used)),
        "qos": count_values(qos),
        "priority": "by qos: " + ", ".join(f"{name} {value}" for name, value in PRIORITIES.items()),
        "never_scheduled": int((used & np.isnan(scheduled)).sum()),
    }
    return Workload.from_columns(
        submit=created[used],
        run=run[used],
        gpus=gpus[used],
        cpus=np.ceil(cpu_milli[used] / 1000),
        memory_mib=np.ceil(memory[used]),
        # A quality of service nobody has heard of promises nothing.
        priority=qos.replace_strict(PRIORITIES, default=0, return_dtype=pl.Float64).to_numpy(),
        gpu_types=types,
        gpu_type_sets=type_sets,
        user_names=("unknown",),
        names=table.labels("name", rows=used),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )


def _require_times(table: CsvTable) -> None:
    """Refuse a pod list that only says what the pods ask for.

    Raises:
        TraceError: there is no column of times, or nothing in it.
    """
    for name in _TIMES:
        absent = "" if name in table.columns else "not there"
        # Pods may all be pending, so scheduled_time may be empty.
        if not absent and name in _TIMES[:2] and table.text(name).null_count() == len(table):
            absent = "empty"
        if absent:
            raise TraceError(
                f"the pod list has no times: column {name!r} is {absent}",
                where=str(table.path),
                expected="a pod list with " + ", ".join(_TIMES),
                hint="without times it can be packed but not replayed; "
                "openb_pod_list_default.csv has them",
            )
