"""Slurm accounting as `sacct --json` prints it, in the dialects of Slurm 21.08 and later.

The file is an object with a list `jobs`. In older releases numbers are plain and a state is one
word; in newer ones a number may be `{"set": ..., "infinite": ..., "number": ...}` and a state is a
list. Both are read. Times are Unix seconds, the time limit is minutes, memory is MiB. Steps are
part of their job and are not used. The partition is the pool. GPUs, CPUs and memory are those
allocated, else those requested; the run time is the elapsed time. Jobs without GPUs are left out
unless `cpu_jobs="keep"`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.model.gpu_types import RECORDED
from berthline.model.history import History
from berthline.model.workload import Workload
from berthline.traces.formats.detection import Match
from berthline.traces.formats.recorded_types import recorded_types
from berthline.traces.formats.row_filter import (
    CANCELLED,
    CPU_JOBS_OPTION,
    NEVER_STARTED,
    NO_RUN_TIME,
    NO_SUBMIT_TIME,
    NOT_FINISHED,
    check_drop_or_keep,
    choose_rows,
    row_facts,
    without_gpus,
)
from berthline.traces.formats.slurm import slurm_fields
from berthline.traces.reading.files import bare_name
from berthline.traces.reading.json_rows import JsonRows
from berthline.traces.reading.request_columns import number_pools
from berthline.traces.reading.text_columns import categorize, count_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

OPTIONS = CPU_JOBS_OPTION

_MARKS = (b'"jobs"', b'"submission"')
_LARGEST = 1e15
_GPU = "gpu"


class Wrapped(msgspec.Struct, gc=False):
    """A number of a newer release."""

    set: bool = True
    infinite: bool = False
    number: float = 0.0

    @property
    def value(self) -> float | None:
        """The number; None = not set, or no limit."""
        return self.number if self.set and not self.infinite else None


Number = float | Wrapped | None


class Times(msgspec.Struct, gc=False):
    """The times of a job; 0 = not known."""

    submission: Number = None
    eligible: Number = None
    start: Number = None
    end: Number = None
    elapsed: Number = None
    limit: Number = None


class Resource(msgspec.Struct, gc=False):
    """One trackable resource, such as `gres` `gpu:a100`."""

    type: str = ""
    name: str | None = None
    count: Number = None


class Resources(msgspec.Struct, gc=False):
    """The trackable resources of a job."""

    allocated: list[Resource] | None = None
    requested: list[Resource] | None = None

    @property
    def held(self) -> list[Resource]:
        """Those allocated, else those requested."""
        return self.allocated or self.requested or []


class State(msgspec.Struct, gc=False):
    """The state of a job: a word, or a list of the state and its flags."""

    current: str | list[str] | None = None


class Array(msgspec.Struct, gc=False):
    """The array that a job is a task of."""

    job_id: Number = None
    task_id: Number = None


class Association(msgspec.Struct, gc=False):
    """The account of a job."""

    user: str | None = None


class Job(msgspec.Struct, gc=False):
    """A record of the list."""

    job_id: int
    time: Times
    state: State | None = None
    tres: Resources | None = None
    user: str | None = None
    partition: str | None = None
    account: str | None = None
    nodes: str | None = None
    priority: Number = None
    array: Array | None = None
    association: Association | None = None

    @property
    def name(self) -> str:
        """The id as sacct's tables write it."""
        if self.array is not None:
            array, task = _value(self.array.job_id), _value(self.array.task_id)
            if array and task is not None:
                return f"{array:.0f}_{task:.0f}"
        return str(self.job_id)

    @property
    def status(self) -> str | None:
        """The state without its flags."""
        current = self.state.current if self.state else None
        return next(iter(current), None) if isinstance(current, list) else current

    @property
    def owner(self) -> str | None:
        """The user, by name."""
        return self.user or (self.association.user if self.association else None) or None


def detect(head: bytes, path: Path) -> Match:
    """Return whether a file is a JSON object with jobs that have a submission."""
    del path  # only the content counts
    is_object = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    return Match.CERTAIN if is_object and all(mark in head for mark in _MARKS) else Match.NO


def lists_nodes(head: bytes, path: Path) -> bool:
    """Return whether the jobs have node lists."""
    del path  # only the content counts
    return b'"nodes"' in head


def read(path: Path, *, cpu_jobs: str = "drop") -> Workload:
    """Return the jobs of a `sacct --json` file.

    Provenance, besides what `load_trace` lists: `status` (jobs by state), `gpu_types` (jobs used by
    GPU type, if named), `repeated_ids` (jobs used that have the id of another job) and `cpu_jobs`
    (jobs used that need no GPU).

    Args:
        path: the file.
        cpu_jobs: "drop" leaves out jobs without GPUs, "keep" keeps them.

    Raises:
        ConfigError: `cpu_jobs` is not "drop" or "keep".
        TraceError: the file cannot be read, a job is invalid, or no job is usable.
    """
    import polars as pl

    check_drop_or_keep(path, cpu_jobs=cpu_jobs)
    log = JsonRows(path, Job, key="jobs", hint="export with sacct -a --json")
    jobs = log.rows
    submit = _column(log, "time.submission", (job.time.submission for job in jobs))
    start = _column(log, "time.start", (job.time.start for job in jobs))
    end = _column(log, "time.end", (job.time.end for job in jobs))
    elapsed = _column(log, "time.elapsed", (job.time.elapsed for job in jobs))
    limit = 60.0 * _column(log, "time.limit", (job.time.limit for job in jobs))
    held = [job.tres.held if job.tres else [] for job in jobs]
    gpus = _column(log, "tres of type gres", map(_gpus, held), highest=slurm_fields.MOST)
    cpus = _column(log, "tres of type cpu", _sums(held, "cpu"), highest=slurm_fields.MOST)
    memory = _column(log, "tres of type mem", _sums(held, "mem"))
    memory = np.where(memory <= slurm_fields.MOST_MEMORY_MIB, memory, 0.0)
    run = np.where(elapsed > 0, elapsed, end - start)
    status = pl.Series([job.status for job in jobs], dtype=pl.String)
    used, dropped = choose_rows(
        {
            CANCELLED: _among(status, slurm_fields.CANCELLED_STATES) & ((start == 0) | (run <= 0)),
            NEVER_STARTED: _among(status, slurm_fields.WAITING_STATES) | (start == 0),
            NOT_FINISHED: _among(status, slurm_fields.RUNNING_STATES) | (end == 0),
            NO_SUBMIT_TIME: submit == 0,
            **without_gpus(cpu_jobs, gpus, cpus, memory),
            NO_RUN_TIME: run <= 0,
        },
        path=path,
        expected="time.submission, start, end, and a gres gpu of more than 0 among the tres",
    )
    kept = [job for job, keep in zip(jobs, used.tolist(), strict=True) if keep]
    user, user_names = categorize(pl.Series([job.owner for job in kept], dtype=pl.String))
    pool, pool_names = number_pools(
        pl.Series([job.partition or None for job in kept], dtype=pl.String)
    )
    names = [job.name for job in kept]
    history = _history(kept, start[used])
    ran_on, ran_on_types = recorded_types(history)
    return Workload.from_columns(
        submit=submit[used],
        run=run[used],
        gpus=gpus[used],
        estimate=np.where(limit > 0, limit, np.nan)[used],
        cpus=cpus[used],
        memory_mib=memory[used],
        user=user,
        user_names=user_names,
        pool=pool,
        pool_names=pool_names,
        ran_on=ran_on,
        ran_on_types=ran_on_types,
        reference_type=RECORDED,
        names=names,
        history=history,
        name=bare_name(path, ".json"),
        provenance={
            **row_facts(
                "slurm-json", path, used, dropped, origin=float(submit[used].min()), zone=None
            ),
            "status": count_values(status),
            "gpu_types": _types(held, used),
            "cpu_jobs": int((used & (gpus == 0)).sum()),
            "repeated_ids": len(names) - len(set(names)),
        },
    )


def _history(jobs: Sequence[Job], start: npt.NDArray[np.float64]) -> History:
    """Return what the log has about its jobs besides what a simulation needs."""
    import polars as pl

    def codes(texts: Iterable[str | None]) -> tuple[npt.NDArray[np.int32], tuple[str, ...]]:
        return number_pools(pl.Series([text or None for text in texts], dtype=pl.String))

    nodes, node_lists = codes(
        None if job.nodes in slurm_fields.NO_NODES else job.nodes for job in jobs
    )
    status, status_names = codes(job.status for job in jobs)
    group, group_names = codes(job.account for job in jobs)
    kind, type_names = codes(_type(job.tres.held if job.tres else []) for job in jobs)
    priority = np.array([_value(job.priority) or np.nan for job in jobs], np.float64)
    eligible = np.array([_value(job.time.eligible) or np.nan for job in jobs], np.float64)
    return History(
        start,
        eligible=eligible,
        priority=priority,
        nodes=nodes if node_lists else None,
        node_lists=node_lists,
        gpu_type=kind,
        gpu_type_names=type_names,
        status=status,
        status_names=status_names,
        group=group,
        group_names=group_names,
    )


def _type(resources: Iterable[Resource]) -> str | None:
    """Return the GPU type of a job; None = none is named, or several."""
    named = {
        (resource.name or "").partition(":")[2]
        for resource in resources
        if resource.type == "gres"
        and (resource.name or "").startswith(f"{_GPU}:")
        and _value(resource.count)
    }
    return named.pop() if len(named) == 1 else None


def _value(number: Number) -> float | None:
    return number.value if isinstance(number, Wrapped) else number


def _gpus(resources: Iterable[Resource]) -> float:
    """Return the GPUs: Slurm's sum over all types if it is tracked, else the sum of the types."""
    counts = {
        resource.name: _value(resource.count) or 0.0
        for resource in resources
        if resource.type == "gres" and (resource.name or "").partition(":")[0] == _GPU
    }
    return counts.get(_GPU, sum(counts.values()))


def _sums(held: Iterable[Iterable[Resource]], kind: str) -> Iterable[float]:
    for resources in held:
        yield sum(_value(each.count) or 0.0 for each in resources if each.type == kind)


def _types(held: Sequence[Sequence[Resource]], used: npt.NDArray[np.bool_]) -> dict[str, int]:
    import polars as pl

    types = [
        (resource.name or "").partition(":")[2]
        for row in np.flatnonzero(used).tolist()
        for resource in held[row]
        if resource.type == "gres" and (resource.name or "").startswith(f"{_GPU}:")
    ]
    return count_values(pl.Series(types, dtype=pl.String))


def _column(
    log: JsonRows[Any], name: str, numbers: Iterable[Number], *, highest: float = _LARGEST
) -> npt.NDArray[np.float64]:
    """Return whole numbers of all jobs as a column; 0 = missing."""
    column = np.array([_value(number) or 0.0 for number in numbers], dtype=np.float64)
    # Slurm writes negative numbers such as -2 for missing values.
    column[column < 0] = 0.0
    for row in np.flatnonzero(~(column <= highest))[:1].tolist():
        log.refuse(row, name, f"{column[row]:g}", f"up to {highest:g}")
    return np.ceil(column)


def _among(status: Any, states: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    matches: npt.NDArray[np.bool_] = status.is_in(list(states)).fill_null(False).to_numpy()
    return matches
