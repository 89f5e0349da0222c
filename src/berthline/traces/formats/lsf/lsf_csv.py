"""LSF jobs as a table: the CSV that public tools make from `lsb.acct` or `bacct`.

Required columns are `job_id`, `submit_time`, `start_time`, `finish_time` and `resource_request`;
`run_time`, `num_hosts`, `num_cores`, `user` and `queue` (the pool) are used if present. Durations
have the format of Python (`0:08:21`, `2 days, 3:04:05`). GPUs come from the resource request,
counted for every host; jobs without GPUs are left out unless `cpu_jobs="keep"`. Dates are the
cluster's local time; the table does not contain the zone, so an option sets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.model.workload_columns import ANY_POOL
from berthline.traces.formats.detection import Match, header_cells
from berthline.traces.formats.lsf.lsf_gpus import MOST_GPUS, requested_gpus
from berthline.traces.formats.row_filter import (
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
from berthline.traces.reading.dates import ZONE_OPTION, check_zone
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests, number_pools
from berthline.traces.reading.text_columns import count_values

if TYPE_CHECKING:
    from pathlib import Path


COLUMNS = ("job_id", "submit_time", "start_time", "finish_time", "resource_request")
OPTIONS = {**ZONE_OPTION, **CPU_JOBS_OPTION}

_DATE = "%Y-%m-%dT%H:%M:%S"
_NO_TIME = ("None", "-")
_DURATION = r"^(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)$"
_SECONDS_PER = (86_400.0, 3_600.0, 60.0, 1.0)


def detect(head: bytes, path: Path) -> Match:
    """Return whether the header line is that of a table of LSF jobs."""
    del path  # only the content counts
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path, *, time_zone: str | None = None, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a table of LSF jobs.

    Provenance, besides what `load_trace` lists: `exit_status` (rows by exit status, if the column
    exists), `rounded` and `cpu_jobs` (jobs used that need no GPU).

    Args:
        path: the file.
        time_zone: the zone of the cluster's clock, such as `"Europe/Berlin"`; None = not known.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: the zone or the setting of `cpu_jobs` is unknown.
        TraceError: the file cannot be read, a line is invalid, or no job is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    zone = check_zone(time_zone)
    table = CsvTable(
        path,
        required=COLUMNS,
        numbers=("num_hosts", "num_cores"),
        times=dict.fromkeys(("submit_time", "start_time", "finish_time"), _DATE),
        words=("resource_request", "run_time", "user", "queue", "exit_status"),
        texts=("job_id",),
    )
    submit = table.times("submit_time", zone=zone)
    start = table.times("start_time", empty=_NO_TIME, optional=True, zone=zone)
    finish = table.times("finish_time", empty=_NO_TIME, optional=True, zone=zone)
    run = finish - start
    if "run_time" in table.columns:
        given = _durations(table, "run_time")
        run = np.where(np.isnan(given), run, given)
    cores = _whole(table, "num_cores", 0)
    requests = GpuRequests.of(_gpus(table, cores))
    gpus = requests.gpus
    used, dropped = choose_rows(
        {
            NEVER_STARTED: np.isnan(start),
            NOT_FINISHED: np.isnan(finish),
            **without_gpus(cpu_jobs, gpus, cores),
            NO_RUN_TIME: ~(run > 0),
        },
        path=path,
        expected="a start_time, a later finish_time, and ngpus_physical in resource_request",
    )
    user: npt.ArrayLike = 0
    user_names: tuple[str, ...] = ("unknown",)
    if "user" in table.columns:
        user, user_names = table.categories("user", rows=used)
    pool: npt.ArrayLike = ANY_POOL
    pool_names: tuple[str, ...] = ()
    if "queue" in table.columns:
        pool, pool_names = number_pools(table.text("queue", rows=used))
    provenance = {
        **row_facts(
            "lsf-csv",
            path,
            used,
            dropped,
            origin=float(submit[used].min()) if zone else None,
            zone=zone,
        ),
        "cpu_jobs": int((used & (gpus == 0)).sum()),
        "rounded": requests.rounded(used),
    }
    if "exit_status" in table.columns:
        provenance["exit_status"] = count_values(table.text("exit_status"))
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        gpu_milli=requests.gpu_milli[used],
        cpus=cores[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        reference_type=RECORDED,
        names=table.labels("job_id", rows=used),
        history=History(start[used]),
        name=bare_name(path, ".csv"),
        provenance=provenance,
    )


def _whole(table: CsvTable, name: str, missing: int) -> npt.NDArray[np.float64]:
    """Return a column of whole numbers; all are `missing` if the table lacks the column."""
    if name not in table.columns:
        return np.full(len(table), float(missing))
    return table.numbers(name, lowest=0, highest=MOST_GPUS, whole=True, missing=missing)


def _gpus(table: CsvTable, cores: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the GPUs of each job, which may be fractions."""
    import polars as pl

    hosts = _whole(table, "num_hosts", 1)
    codes, texts = table.categories("resource_request", missing="")
    requests = [requested_gpus(text) for text in texts]
    times = {"host": hosts, "task": cores, "job": np.ones(len(table))}
    gpus = np.zeros(len(table))
    for per, count in times.items():
        number = [each.number if each and each.per == per else 0.0 for each in requests]
        if any(number):
            gpus += np.array(number)[codes] * np.maximum(count, 1)
    table.refuse(pl.Series(gpus > MOST_GPUS), "resource_request", f"up to {MOST_GPUS} GPUs")
    return gpus


def _durations(table: CsvTable, name: str) -> npt.NDArray[np.float64]:
    """Return a column of durations in seconds; NaN = missing."""
    import polars as pl

    codes, texts = table.categories(name, missing="")
    text = pl.Series(texts, dtype=pl.String)
    parts = text.str.extract_groups(_DURATION).struct.unnest()
    seconds = pl.Series(np.zeros(len(text)))
    for part, unit in zip(parts, _SECONDS_PER, strict=True):
        seconds += part.cast(pl.Float64, strict=False).fill_null(0.0) * unit
    fits = text.str.contains(_DURATION).fill_null(False) & (seconds < 1e15)
    bad = ((text != "") & ~fits).to_numpy()
    if bad.any():
        table.refuse(bad[codes], name, "a duration such as 0:08:21 or 2 days, 3:04:05")
    of_each: npt.NDArray[np.float64] = seconds.set(~fits, None).fill_null(np.nan).to_numpy()[codes]
    return of_each
