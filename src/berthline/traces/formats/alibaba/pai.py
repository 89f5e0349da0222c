"""Alibaba PAI (cluster-trace-gpu-v2020): headerless tables of jobs, tasks, instances and machines.

The path is one of the tables or their directory; the other tables are found next to it and joined.
A PAI job has tasks (worker, ps, evaluator, ...), and a task has equal instances. One task is one
job here: requests, GPU type and times belong to tasks, and the tasks of one job begin and end at
different times, so one gang of all tasks would hold GPUs that were free.

How columns become jobs: the instances of a task are one gang; `plan_gpu`, `plan_cpu` (percent of
one) and `plan_mem` (GiB) are per instance; a part of a GPU stays a part if there is one instance,
and counts as a whole GPU for each of several instances; the assigned GPU type is taken as required,
and run times are on that type; tasks without GPUs are left out unless `cpu_jobs="keep"`, and may
then run anywhere; submission is the start_time of the job, which is when it was submitted, else
that of the task; the user is in the job table. If a table is missing, its information is lost, as
`provenance["missing_tables"]` and `["assumed"]` state: without tasks and instances a PAI job is one
job of one GPU, without tasks an instance takes one GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.workload import Workload
from berthline.traces.formats.alibaba.pai_join import SOURCES, GangTable
from berthline.traces.formats.alibaba.pai_tables import (
    INSTANCE,
    JOB,
    MACHINE,
    TASK,
    TYPE_NAMES,
    find_tables,
    recognise,
    tables_in,
)
from berthline.traces.formats.detection import Match
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
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.request_columns import GpuRequests, gpu_type_sets
from berthline.traces.reading.text_columns import (
    categorize,
    count_values,
    joined_labels,
    label_array,
)

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt
    import polars as pl

OPTIONS = CPU_JOBS_OPTION

_WHOLE = 100  # percent of one GPU or one CPU
_MIB = 1024  # in a GiB; the publisher writes GB, but its values are MiB / 1024
_ONE_JOB_IS = {
    TASK: "one task, its inst_num instances as one gang",
    INSTANCE: "one task, its instances in the instance table as one gang",
    JOB: "one PAI job",
}


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is the job, task or instance table, by the shape of its rows."""
    del path  # only the content counts
    name, match = recognise(head)
    return match if name in SOURCES else Match.NO


def parts(directory: Path) -> list[Path]:
    """Return the tables of tasks, instances and jobs in a directory."""
    tables = tables_in(directory)
    return [tables[name] for name in SOURCES if name in tables]


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the tasks of a trace; `path` is one of its tables or its directory.

    Provenance, besides what `load_trace` lists: `one_job_is`, `tables` (the files read),
    `missing_tables`, `assumed` (assumptions where a table or cell is missing, with counts),
    `cpu_jobs` (tasks used that need no GPU), `rounded`, `gpus_asked` (before rounding), `status`
    (used rows by status) and `dates` (in `origin_unix_time` the time of day and the day of the week
    are correct, but not the date).

    Args:
        path: the table or the directory.
        cpu_jobs: "drop" leaves out tasks without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: a table cannot be read, a line is invalid, or no task is usable.
    """
    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    tables = find_tables(path)
    source = next((name for name in SOURCES if name in tables), None)
    if source is None:
        raise TraceError(
            "there is no PAI table of tasks, instances or jobs",
            where=str(path),
            expected=" or ".join(f"{name}.csv" for name in SOURCES),
        )
    gangs = GangTable(tables, source)
    used, dropped = choose_rows(
        _reasons(gangs.rows, cpu_jobs),
        path=gangs.path,
        expected="a plan_gpu of more than 0, a start_time and a later end_time",
    )
    gangs.keep(used)
    gangs.add_jobs()
    gangs.add_machines()
    jobs = gangs.rows
    instances = jobs["instances"].to_numpy()
    requests = GpuRequests.of(jobs["gpu"].to_numpy() / _WHOLE, instances)
    users, user_names = categorize(jobs["user"])
    types, type_sets = gpu_type_sets(jobs["type"], names=TYPE_NAMES, gpus=requests.gpus)
    submit = jobs["submit"].to_numpy()
    provenance: dict[str, Any] = {
        **row_facts(
            "alibaba-pai", path, used, dropped, origin=float(submit.min()), zone="Asia/Shanghai"
        ),
        "dates": "shifted by the publisher; time of day and day of the week are true",
        "one_job_is": _ONE_JOB_IS[source],
        "tables": gangs.read,
        "missing_tables": [name for name in (*SOURCES, MACHINE) if name not in tables],
        "assumed": gangs.assumed,
        "cpu_jobs": int((requests.gpus == 0).sum()),
        "rounded": requests.rounded(np.ones(len(jobs), np.bool_)),
        "gpus_asked": float(requests.asked.sum()),
        "status": count_values(jobs["status"]),
    }
    # Sorted here, because job names take much memory, and sorting them later would copy them.
    order = np.argsort(submit, kind="stable")
    columns = {
        "submit": submit[order],
        "run": (jobs["end"].to_numpy() - jobs["start"].to_numpy())[order],
        "gpus": requests.gpus[order],
        "gpu_milli": requests.gpu_milli[order],
        "cpus": np.ceil(instances * jobs["cpu"].to_numpy() / _WHOLE)[order],
        "memory_mib": np.ceil(instances * jobs["memory"].to_numpy() * _MIB)[order],
        "user": users[order],
        "gpu_types": types[order],
    }
    names = jobs["job"].gather(order)
    tasks = jobs["task"].gather(order)
    del jobs, gangs, instances, requests, submit, users, types
    return Workload.from_columns(
        **columns,
        user_names=user_names,
        gpu_type_sets=type_sets,
        reference_type=RECORDED,
        names=label_array(names) if source == JOB else joined_labels(names, tasks, "/"),
        name=bare_name(path.absolute(), ".csv"),
        provenance=provenance,
    )


def _reasons(rows: pl.DataFrame, cpu_jobs: str) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the reasons for leaving gangs out, with the rows they apply to."""
    start, end = rows["start"].to_numpy(), rows["end"].to_numpy()  # NaN for null
    some = rows["instances"].to_numpy() > 0
    asked = [some & (rows[name].to_numpy() > 0) for name in ("gpu", "cpu", "memory")]
    return {
        **without_gpus(cpu_jobs, *asked),
        NEVER_STARTED: np.isnan(start),
        NOT_FINISHED: np.isnan(end),
        NO_RUN_TIME: end <= start,
    }
