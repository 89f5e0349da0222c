"""Alibaba PAI (cluster-trace-gpu-v2020): headerless tables of jobs, tasks, instances and machines.

Given one of the tables, or the directory of them, the others are found beside it and joined. A
PAI job has tasks (worker, ps, evaluator, ...), a task has equal instances. One task is one job
here: what is asked for, the GPU type and the times are those of tasks, and tasks of one job begin
and end apart, so a gang of all of them would hold GPUs that nobody held.

How columns become jobs: the instances of a task are one gang; `plan_gpu`, `plan_cpu` (percent of
one) and `plan_mem` (GiB) are of each instance, and a part of a GPU counts as a whole one; the GPU
type is the one assigned, taken as required; submission is the start_time of the job, which is when
it was submitted, else that of the task; the user is in the job table. Tables that are not there
cost what only they know, and `provenance["missing_tables"]` and `["assumed"]` say so: without tasks
and instances a PAI job is one job of one GPU, without tasks an instance takes one GPU.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.alibaba_pai_join import SOURCES, GangTable
from berthline.traces.alibaba_pai_tables import (
    INSTANCE,
    JOB,
    MACHINE,
    TASK,
    TYPE_NAMES,
    find_tables,
    recognise,
    tables_in,
)
from berthline.traces.csv_table import categorize, count_values, label_array
from berthline.traces.detection import Match
from berthline.traces.files import bare_name
from berthline.traces.gpu_type_sets import gpu_type_sets
from berthline.traces.usable import (
    FRACTIONS_ROUNDED_UP,
    NEVER_STARTED,
    NO_GPUS,
    NO_RUN_TIME,
    NOT_FINISHED,
    choose_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

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


def read(path: Path) -> Workload:
    """Return the GPU tasks of the trace of which `path` is one table or the directory.

    Provenance, besides what `load_trace` lists: `one_job_is`, `tables` (the files read),
    `missing_tables`, `assumed` (what was made up for lack of a table or cell, with counts),
    `rounded`, `gpus_asked` (before rounding), `status` (used rows by status) and `dates`
    (`origin_unix_time` has the time of day and the day of the week right, not the date).

    Raises:
        TraceError: a table cannot be read, a line makes no sense, or no task is usable.
    """
    tables = find_tables(path)
    source = next((name for name in SOURCES if name in tables), None)
    if source is None:
        raise TraceError(
            "there is no PAI table of tasks, instances or jobs",
            where=str(path),
            expected=" or ".join(f"{name}.csv" for name in SOURCES),
        )
    gangs = GangTable(tables, source)
    rows = gangs.rows
    used, dropped = choose_rows(
        {
            NO_GPUS: (rows["gpu"] * rows["instances"] == 0).to_numpy(),
            NEVER_STARTED: rows["start"].is_null().to_numpy(),
            NOT_FINISHED: rows["end"].is_null().to_numpy(),
            NO_RUN_TIME: (rows["end"] <= rows["start"]).fill_null(value=False).to_numpy(),
        },
        path=gangs.path,
        expected="a plan_gpu of more than 0, a start_time and a later end_time",
    )
    gangs.keep(used)
    gangs.add_jobs()
    gangs.add_machines()
    jobs = gangs.rows
    instances, percent = jobs["instances"].to_numpy(), jobs["gpu"].to_numpy()
    users, user_names = categorize(jobs["user"])
    types, type_sets = gpu_type_sets(jobs["type"], names=TYPE_NAMES)
    submit = jobs["submit"].to_numpy()
    provenance: dict[str, Any] = {
        "format": "alibaba-pai",
        "path": path.absolute().name,
        "rows": len(rows),
        "used": len(jobs),
        "dropped": dropped,
        "origin_unix_time": float(submit.min()),
        "time_zone": "Asia/Shanghai",
        "dates": "shifted by the publisher; time of day and day of the week are true",
        "one_job_is": _ONE_JOB_IS[source],
        "tables": gangs.read,
        "missing_tables": [name for name in (*SOURCES, MACHINE) if name not in tables],
        "assumed": gangs.assumed,
        "rounded": {FRACTIONS_ROUNDED_UP: int((percent % _WHOLE != 0).sum())},
        "gpus_asked": float((instances * percent).sum() / _WHOLE),
        "status": count_values(jobs["status"]),
    }
    return Workload.from_columns(
        submit=submit,
        run=jobs["end"].to_numpy() - jobs["start"].to_numpy(),
        gpus=instances * np.ceil(percent / _WHOLE),
        cpus=np.ceil(instances * jobs["cpu"].to_numpy() / _WHOLE),
        memory_mib=np.ceil(instances * jobs["memory"].to_numpy() * _MIB),
        user=users,
        user_names=user_names,
        gpu_types=types,
        gpu_type_sets=type_sets,
        names=label_array(jobs["name"]),
        name=bare_name(path.absolute(), ".csv"),
        provenance=provenance,
    )
