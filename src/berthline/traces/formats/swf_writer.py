"""Writing a Workload as SWF, the Standard Workload Format, and reporting what is lost.

SWF has whole seconds, numbers instead of names, whole processors, and no priorities, deadlines or
CPU counts. Pools become queues and GPU type sets become partitions, by number, with their names in
the header; jobs of an SWF file keep their own. Waits, statuses and groups come from the history of
the jobs, and so do fields of an SWF file that nothing else has; its header is copied. A part of a
GPU becomes a whole GPU, and jobs without GPUs are left out. The header and `write_swf` state what
was lost, with the number of jobs; the file itself is plain SWF 2.2.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.atomic_write import write_atomically
from berthline.errors import TraceError
from berthline.model.gpu_types import RECORDED
from berthline.model.history import NOT_RECORDED
from berthline.model.workload import WHOLE_GPU
from berthline.traces.formats.swf import CONVERSION, STATUSES

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from berthline.model.history import History
    from berthline.model.workload import FloatColumn, Workload

_UNKNOWN = -1
_KIB_PER_MIB = 1024
_NAMELESS = ("all", "unknown")
_STATUS_CODES = {
    "COMPLETED": 1,
    "DONE": 1,
    "FAILED": 0,
    "EXIT": 0,
    "TIMEOUT": 0,
    "NODE_FAIL": 0,
    "OUT_OF_MEMORY": 0,
    "BOOT_FAIL": 0,
    "DEADLINE": 0,
    "PREEMPTED": 0,
    "CANCELLED": 5,
}
"""What other systems' words for the end of a job are in SWF."""

_WHOLE = re.compile(r"0|[1-9]\d{0,17}")


def write_swf(
    workload: Workload,
    path: str | os.PathLike[str],
    *,
    max_procs: int | None = None,
    start: FloatColumn | None = None,
    note: str = "",
) -> dict[str, int]:
    """Write a workload as SWF, replacing the file if it exists.

    Args:
        workload: the jobs.
        path: the file.
        max_procs: the size of the cluster in GPUs, for the header; None = not known.
        start: when each job started, for the wait times; NaN = it did not; None = as recorded.
        note: a line for the header, such as the origin of the schedule.

    Returns:
        What was lost, and for how many jobs.

    Raises:
        OutputError: the file cannot be written.
        TraceError: no job has GPUs.
    """
    text, lost = swf_text(workload, max_procs=max_procs, start=start, note=note)
    write_atomically(path, text)
    return lost


def swf_text(
    workload: Workload,
    *,
    max_procs: int | None = None,
    start: FloatColumn | None = None,
    note: str = "",
) -> tuple[bytes, dict[str, int]]:
    """Return a workload as SWF, and what was lost, with the number of jobs.

    Args:
        workload: the jobs.
        max_procs: see `write_swf`.
        start: see `write_swf`.
        note: see `write_swf`.

    Raises:
        TraceError: no job has GPUs.
    """
    import polars as pl

    on_gpus = workload.gpus > 0
    if not on_gpus.any():
        raise TraceError(
            "no job has GPUs, and SWF cannot contain other jobs",
            where=workload.name,
            expected="at least one job with a GPU",
            hint="write Parquet instead: it preserves everything",
        )
    numbers = None if workload.names is None else _as_numbers(workload.names.tolist())
    users = _as_numbers(workload.user_names)
    submit = np.rint(workload.submit).astype(np.int64)
    run = np.maximum(np.rint(workload.run), 1).astype(np.int64)
    estimate = np.ceil(np.nan_to_num(workload.estimate, nan=_UNKNOWN)).astype(np.int64)
    memory = workload.memory_mib * _KIB_PER_MIB / np.maximum(workload.gpus, 1)
    memory = np.ceil(memory).astype(np.int64)
    unknown = np.full(len(workload), _UNKNOWN)
    wait = unknown
    history = workload.history
    if start is None and history is not None:
        start = history.start
    if start is not None:
        # From the rounded values, so that submit + wait is the start, to the second.
        wait = np.where(np.isnan(start), _UNKNOWN, np.rint(np.nan_to_num(start)) - submit)
    columns = {
        "job number": np.arange(1, len(workload) + 1) if numbers is None else numbers,
        "submit time": submit,
        "wait time": wait.astype(np.int64),
        "run time": run,
        "allocated processors": workload.gpus,
        "average CPU time": unknown,
        "used memory": unknown,
        "requested processors": workload.gpus,
        "requested time": estimate,
        "requested memory": np.where(memory > 0, memory, _UNKNOWN),
        "status": _status(history, len(workload)),
        "user": workload.user + 1 if users is None else users[workload.user],
        "group": _group(history, len(workload)),
        "application": unknown,
        "queue": _from_one(workload.pool),
        "partition": _from_one(workload.gpu_types),
        "preceding job": unknown,
        "think time": unknown,
    }
    for name, recorded in (history.other if history is not None else {}).items():
        if name in columns:
            columns[name] = _whole(recorded)
    lost = _lost(
        workload,
        is_rounded=(submit != workload.submit)
        | (run != workload.run)
        | (np.isfinite(workload.estimate) & (estimate != workload.estimate)),
        has_names=numbers is not None,
        # A workload without users has one user, with a name that was made up.
        has_users=users is not None or workload.user_names in (("all",), ("user0",)),
        is_early=(wait < _UNKNOWN) if start is not None else np.zeros(len(workload), np.bool_),
    )
    rows = io.BytesIO()
    jobs = pl.DataFrame(columns).filter(pl.Series(on_gpus))
    jobs.write_csv(rows, separator=" ", include_header=False)
    lines = _header(workload, len(jobs), max_procs, lost)
    if note:
        lines.insert(2, f"Note: {_one_line(note)}")
    header = "".join(f"; {line}\n" for line in lines)
    return header.encode() + rows.getvalue(), lost


def _lost(
    workload: Workload,
    *,
    is_rounded: npt.NDArray[np.bool_],
    has_names: bool,
    has_users: bool,
    is_early: npt.NDArray[np.bool_],
) -> dict[str, int]:
    """Return what SWF cannot represent, with the number of jobs that have it."""
    num_jobs = len(workload)
    lost = {
        "rows of jobs without GPUs": int((workload.gpus == 0).sum()),
        "parts of GPUs (now whole ones)": int((workload.gpu_milli < WHOLE_GPU).sum()),
        "times rounded to whole seconds": int(is_rounded.sum()),
        "names of jobs": 0 if workload.names is None or has_names else num_jobs,
        "names of users": 0 if has_users else num_jobs,
        "priorities": int((workload.priority != 0).sum()),
        "deadlines": int(np.isfinite(workload.deadline).sum()),
        "CPUs": int((workload.cpus > 0).sum()),
        "GPU types that run times are on": int((workload.ran_on >= 0).sum()),
        "starts before the submission": int(is_early.sum()),
        **_lost_history(workload),
    }
    return {what: count for what, count in lost.items() if count}


def _lost_history(workload: Workload) -> dict[str, int]:
    """Return what SWF cannot represent of the history, with the number of jobs that have it."""
    history = workload.history
    if history is None:
        return {}

    def known(column: npt.NDArray[np.int32] | None) -> int:
        return 0 if column is None else int((column != NOT_RECORDED).sum())

    names = history.status_names
    unknown = np.array([_status_code(name) == _UNKNOWN for name in names], dtype=np.bool_)
    merged = np.array([name not in STATUSES.values() for name in names], dtype=np.bool_)
    status = np.zeros(0, np.int32) if history.status is None else history.status
    status = status[status >= 0]
    numbers = _as_numbers(history.group_names)
    eligible = history.eligible
    late = 0 if eligible is None else int((eligible > workload.submit + 1).sum())
    return {
        "lists of nodes": known(history.nodes),
        "GPU types that jobs got": known(history.gpu_type),
        "priorities that were recorded": 0
        if history.priority is None
        else int(np.isfinite(history.priority).sum()),
        "times at which jobs could start": late,
        "that jobs were still running": 0
        if history.running is None
        else int(history.running.sum()),
        "names of groups": 0 if numbers is not None else known(history.group),
        "statuses": int(unknown[status].sum()) if len(names) else 0,
        "details of statuses": int((merged & ~unknown)[status].sum()) if len(names) else 0,
    }


def _status(history: History | None, num_jobs: int) -> npt.NDArray[np.int64]:
    """Return how jobs ended, as SWF numbers it."""
    codes = np.full(num_jobs, _UNKNOWN, np.int64)
    if history is not None and history.status is not None:
        of_name = np.array([_UNKNOWN, *map(_status_code, history.status_names)])
        codes = of_name[history.status + 1]
    return codes


def _status_code(name: str) -> int:
    """Return the status of SWF that a log's word for it means; -1 = none."""
    for code, meaning in STATUSES.items():
        if meaning == name:
            return code
    match = re.fullmatch(r"code (\d{1,9})", name)
    return int(match[1]) if match else _STATUS_CODES.get(name.upper(), _UNKNOWN)


def _group(history: History | None, num_jobs: int) -> npt.NDArray[np.int64]:
    """Return the groups of jobs as numbers; names become numbers counted from 1."""
    if history is None or history.group is None:
        return np.full(num_jobs, _UNKNOWN, np.int64)
    numbers = _as_numbers(history.group_names)
    if numbers is None:
        numbers = np.arange(1, len(history.group_names) + 1)
    return np.append(_UNKNOWN, numbers)[history.group + 1]


def _whole(numbers: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return numbers as SWF has them: without a fraction where they are whole."""
    return numbers if (numbers != np.floor(numbers)).any() else numbers.astype(np.int64)


def _header(
    workload: Workload, jobs: int, max_procs: int | None, lost: dict[str, int]
) -> list[str]:
    origin = workload.provenance.get("origin_unix_time")
    zone = workload.provenance.get("time_zone")
    numbered = workload.history.other if workload.history is not None else {}
    # Queues and partitions of an SWF file keep their numbers, and their meaning.
    is_own = "queue" not in numbered and "partition" not in numbered
    lines = [
        "Version: 2.2",
        f"{'Conversion' if is_own else 'Converter'}: {CONVERSION}, from {_one_line(workload.name)}",
        f"MaxJobs: {jobs}",
        f"MaxRecords: {jobs}",
    ]
    if max_procs is not None:
        lines.append(f"MaxProcs: {max_procs}")
    if isinstance(origin, int | float):
        lines.append(f"UnixStartTime: {round(origin)}")
    if zone:
        lines.append(f"TimeZoneString: {_one_line(str(zone))}")
    lines += [f"Note: lost in conversion: {what} of {count} jobs" for what, count in lost.items()]
    if workload.reference_type != RECORDED:
        lines.append(f"ReferenceType: {workload.reference_type}")
    if is_own:
        lines += _named("Queue", workload.pool_names) + _named("Partition", workload.gpu_type_sets)
    written = {line.partition(":")[0] for line in lines} - {"Note"}
    if max_procs != workload.provenance.get("max_procs"):
        written.add("MaxNodes")  # of another cluster
    for key, value in workload.provenance.get("header") or ():
        # What this file states itself is newer; earlier losses are still losses.
        if key not in written:
            lines.append(f"{key}: {_one_line(value)}")
    return lines


def _named(key: str, names: tuple[str, ...]) -> list[str]:
    counted = [f"Max{key}s: {len(names)}"] if names else []
    listed = [f"{key}: {number} {_one_line(name)}" for number, name in enumerate(names, start=1)]
    return counted + listed


def _as_numbers(names: Sequence[str]) -> npt.NDArray[np.int64] | None:
    """Return names as numbers if that loses nothing: all different, and written as whole numbers.

    The placeholders that readers use for a missing name become -1.
    """
    numbers = [_UNKNOWN if name in _NAMELESS else name for name in names]
    if not all(name == _UNKNOWN or _WHOLE.fullmatch(str(name)) for name in numbers):
        return None
    if len(set(numbers)) < len(numbers):
        return None
    return np.array(numbers, dtype=np.int64)


def _from_one(codes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return indexes counted from 1, as in SWF; -1 stays -1."""
    return np.where(codes < 0, _UNKNOWN, codes + 1)


def _one_line(text: str) -> str:
    return " ".join(text.split())
