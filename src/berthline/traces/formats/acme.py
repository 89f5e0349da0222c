"""Acme traces of the Shanghai AI Laboratory: `trace_seren.csv` and `trace_kalos.csv`.

Rows have the columns of Helios plus `type` (the kind of work) and `gpu_time`, but no virtual
cluster. Dates include their zone (Seren +08:00, Kalos +00:00). Kalos also has memory per pod and
the times of failure and stop.

The run time is `end_time - start_time`. The column `duration` should be equal to it, but in the
rows of Kalos that its publisher shows, it includes the time in the queue: waiting would count as
work. Jobs without GPUs are left out unless `cpu_jobs="keep"`. All GPUs are A100s with 80 GB.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    CANCELLED,
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    NOT_FINISHED,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.text_columns import among, count_codes, count_values

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
OPTIONS = CPU_JOBS_OPTION
REFERENCE_TYPE = "A100-80"
KALOS_COLUMNS = ("mem_per_pod_GB", "shared_mem_per_pod", "fail_time", "stop_time")

_NUMBERS = ("node_num", "gpu_num", "cpu_num", "duration", "mem_per_pod_GB")
_TIMES = ("submit_time", "start_time", "end_time")
_DATE = "%Y-%m-%d %H:%M:%S%z"
_MISSING = ("None", "NaT", "nan")
_MOST = 2**31 - 1  # the limit of the workload's columns of GPUs and CPUs
_MOST_GIB = 2**20  # more than a PiB of memory in a pod is an error
_MIB_PER_GIB = 1024
_A_SECOND = 1.0  # dates are whole seconds, so a duration may be off by one


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of an Acme trace."""
    del path  # only the content counts
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of an Acme trace.

    Memory is `mem_per_pod_GB * node_num`, assuming one pod per node.

    Provenance, besides what `load_trace` lists: `cluster` (`seren` or `kalos`), `status` (rows by
    state), `kinds` (rows by type of work), `cpu_jobs` (jobs used that need no GPU) and
    `duration_is_not_the_run_time` (jobs used whose `duration` differs from end - start).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    table = CsvTable(
        path,
        required=COLUMNS,
        numbers=_NUMBERS,
        times=dict.fromkeys(_TIMES, _DATE),
        words=("user", "type", "state"),
        texts=("job_id",),
    )
    zone = _zone(table)
    is_kalos = set(KALOS_COLUMNS) <= set(table.columns)
    submit = table.times("submit_time")
    start = table.times("start_time", empty=_MISSING, optional=True)
    end = table.times("end_time", empty=_MISSING, optional=True)
    duration = table.numbers("duration", missing=np.nan, empty=_MISSING)
    gpus = table.numbers("gpu_num", lowest=0, highest=_MOST, whole=True)
    cpus = table.numbers("cpu_num", lowest=0, highest=_MOST, whole=True, missing=0)
    memory = _memory(table) if is_kalos else np.zeros(len(table))
    state, states = table.categories("state")
    run = end - start
    not_started = np.isnan(start)
    used, dropped = choose_rows(
        {
            CANCELLED: not_started & among(state, states, ("CANCELLED",)),
            NEVER_STARTED: not_started,
            NOT_FINISHED: np.isnan(end),
            **without_gpus(cpu_jobs, gpus, cpus, memory),
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
        memory_mib=memory[used],
        user=user,
        user_names=user_names,
        reference_type=REFERENCE_TYPE,
        names=table.labels("job_id", rows=used),
        history=History(start[used]),
        name=bare_name(path, ".csv"),
        provenance={
            **row_facts("acme", path, used, dropped, origin=float(submit[used].min()), zone=zone),
            "cluster": "kalos" if is_kalos else "seren",
            "cpu_jobs": int((used & (gpus == 0)).sum()),
            "status": count_codes(state, states),
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
    match = re.search(r"[+-]\d\d:?\d\d$", table.first_text("submit_time"))
    return "UTC" + (match[0] if match else "")
