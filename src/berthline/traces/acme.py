"""Acme traces of the Shanghai AI Laboratory: `trace_seren.csv` and `trace_kalos.csv`.

Rows are those of Helios with `type` (the kind of work) and `gpu_time`, without virtual clusters.
Dates carry their zone (Seren +08:00, Kalos +00:00). Kalos has memory per pod and the times of
failure and stop besides.

The run time is `end_time - start_time`. The column `duration` is meant to be that, but in the rows
of Kalos that its publisher shows it includes the time in the queue: waiting would count as work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.workload import Workload
from berthline.traces.csv_table import CsvTable, count_values
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import bare_name
from berthline.traces.usable import (
    CANCELLED,
    NEVER_STARTED,
    NO_GPUS,
    NO_RUN_TIME,
    NOT_FINISHED,
    choose_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = (
    "job_id",
    "user",
    "node_num",
    "gpu_num",
    "cpu_num",
    "type",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "queue",
    "gpu_time",
)
KALOS_COLUMNS = ("mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time")

_DATE = "%Y-%m-%d %H:%M:%S%z"
_MISSING = ("None", "NaT", "nan")
_MOST = 2**31 - 1  # what the workload's columns of GPUs and CPUs hold
_MOST_GIB = 2**20  # a pod with more than a PiB of memory is a slip
_MIB_PER_GIB = 1024
_A_SECOND = 1.0  # dates are whole seconds, so a duration may be off by one


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is such a trace: by its header line."""
    del path  # only the content counts
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of an Acme trace.

    Memory is `mem_per_pod_GB` of every node, a pod being taken for a node's share.

    Provenance, besides what `load_trace` lists: `cluster` (`seren` or `kalos`), `status` (rows by
    state), `kinds` (rows by type of work) and `duration_is_not_the_run_time` (jobs used whose
    `duration` is something else than end - start).

    Raises:
        TraceError: the file cannot be read, a line makes no sense, or no job is usable.
    """
    table = CsvTable(path, required=COLUMNS)
    is_kalos = set(KALOS_COLUMNS) <= set(table.columns)
    submit = table.times("submit_time", _DATE)
    start = table.times("start_time", _DATE, empty=_MISSING, optional=True)
    end = table.times("end_time", _DATE, empty=_MISSING, optional=True)
    duration = table.numbers("duration", missing=np.nan, empty=_MISSING)
    gpus = table.numbers("gpu_num", lowest=0, highest=_MOST, whole=True)
    cpus = table.numbers("cpu_num", lowest=0, highest=_MOST, whole=True, missing=0)
    state = table.text("state")
    run = end - start
    not_started = np.isnan(start)
    used, dropped = choose_rows(
        {
            CANCELLED: not_started & (state == "CANCELLED").fill_null(False).to_numpy(),
            NEVER_STARTED: not_started,
            NOT_FINISHED: np.isnan(end),
            NO_GPUS: gpus == 0,
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="a start_time, a later end_time, and a gpu_num of more than 0",
    )
    user, user_names = table.categories("user", rows=used)
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        cpus=cpus[used],
        memory_mib=_memory(table)[used] if is_kalos else 0,
        user=user,
        user_names=user_names,
        names=table.labels("job_id", rows=used),
        name=bare_name(path, ".csv"),
        provenance={
            "format": "acme",
            "path": path.name,
            "rows": len(table),
            "used": int(used.sum()),
            "dropped": dropped,
            "origin_unix_time": float(submit[used].min()),
            "time_zone": _zone(table),
            "cluster": "kalos" if is_kalos else "seren",
            "status": count_values(state),
            "kinds": count_values(table.text("type")),
            "duration_is_not_the_run_time": int((np.abs(duration - run)[used] > _A_SECOND).sum()),
        },
    )


def _memory(table: CsvTable) -> npt.NDArray[np.float64]:
    """Return the MiB of each job; 0 = not known."""
    per_pod = table.numbers("mem_per_pod_GB", lowest=0, highest=_MOST_GIB, missing=0)
    nodes = table.numbers("node_num", lowest=0, highest=_MOST, whole=True, missing=0)
    return np.ceil(per_pod * _MIB_PER_GIB * nodes)


def _zone(table: CsvTable) -> str:
    """Return the zone of the first submission, such as `UTC+08:00`."""
    return "UTC" + (table.text("submit_time").str.extract(r"([+-]\d\d:?\d\d)$")[0] or "")
