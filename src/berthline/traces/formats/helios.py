"""SenseTime's Helios trace: the native `cluster_log.csv` of one of its clusters.

One row is one Slurm job: `job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,
end_time,duration,queue`. Dates are local time in China; `duration` (end - start) and `queue`
(start - submission) are seconds. The log contains jobs without GPUs, which are left out unless
`cpu_jobs="keep"`. Jobs that were cancelled or failed while running used their GPUs and are kept.
The log has no GPU types; run times are assumed to be on the V100 of cluster Venus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.row_filter import (
    CANCELLED,
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.reading.csv.csv_table import CsvTable
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import number_pools
from berthline.traces.reading.text_columns import among, count_codes

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = (
    "job_id",
    "user",
    "vc",
    "gpu_num",
    "cpu_num",
    "node_num",
    "state",
    "submit_time",
    "start_time",
    "end_time",
    "duration",
    "queue",
)
TIME_ZONE = "Asia/Shanghai"
OPTIONS = CPU_JOBS_OPTION
REFERENCE_TYPE = "V100-32"

_NUMBERS = ("gpu_num", "cpu_num", "duration")
_DATE = "%Y-%m-%d %H:%M:%S"
_MISSING = ("None", "NaT", "nan")
_MOST = 2**31 - 1  # the limit of the workload's columns of GPUs and CPUs


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a Helios log."""
    del path  # only the content counts
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a Helios log; the virtual cluster is the pool.

    Provenance, besides what `load_trace` lists: `status` (rows by state) and `cpu_jobs` (jobs used
    that need no GPU).

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
        times={"submit_time": _DATE, "start_time": _DATE},
        words=("user", "vc", "state"),
        texts=("job_id",),
    )
    submit = table.times("submit_time", zone=TIME_ZONE)
    start = table.times("start_time", zone=TIME_ZONE, empty=_MISSING, optional=True)
    run = table.numbers("duration", missing=0.0, empty=_MISSING)
    gpus = table.numbers("gpu_num", lowest=0, highest=_MOST, whole=True)
    cpus = table.numbers("cpu_num", lowest=0, highest=_MOST, whole=True, missing=0)
    state, states = table.categories("state")
    not_started = np.isnan(start)
    used, dropped = choose_rows(
        {
            CANCELLED: not_started & among(state, states, ("CANCELLED",)),
            NEVER_STARTED: not_started,
            **without_gpus(cpu_jobs, gpus, cpus),
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="a start_time, and a duration and gpu_num of more than 0",
    )
    user, user_names = table.categories("user", rows=used)
    pool, pool_names = number_pools(table.text("vc", rows=used))
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        cpus=cpus[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        reference_type=REFERENCE_TYPE,
        names=table.labels("job_id", rows=used),
        history=History(start[used]),
        name=bare_name(path, ".csv"),
        provenance={
            **row_facts(
                "helios", path, used, dropped, origin=float(submit[used].min()), zone=TIME_ZONE
            ),
            "cpu_jobs": int((used & (gpus == 0)).sum()),
            "status": count_codes(state, states),
        },
    )
