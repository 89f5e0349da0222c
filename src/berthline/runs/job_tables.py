"""The tables of a run directory: what became of every job, the logs, the inputs.

    jobs.parquet      one row for each run and job
    events.parquet    the schedule logs of the first window, one scheduler after another
    cluster.toml      the cluster of the first window
    workload.parquet  the jobs of the first window

They are written once, when all runs have finished, from the JobOutcomes kept of each.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.model.write_cluster_file import write_cluster_file
from berthline.runs.run_layout import CLUSTER, EVENTS, JOBS, WORKLOAD
from berthline.write_frame import write_frame

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.runs.run_directory import FileWriter

_LEVEL = 1
"""Level of zstd: a million rows in a third of a second; higher levels save little on such
columns."""

STATES = ("completed", "unfinished", "rejected")
"""The values that `state` points to. A job that the run never reached is unfinished."""

_SMALL = np.dtype("<f4")
_BYTES_PER_JOB = 3 * _SMALL.itemsize + 1


@dataclasses.dataclass(frozen=True, eq=False)
class JobOutcomes:
    """What became of each job, in the workload's order.

    Attributes:
        wait: first start - submit, in seconds; NaN for a rejected job.
        jct: finish - submit, in seconds, up to the end of the run if unfinished; NaN for a rejected
            job.
        bounded_slowdown: max(1, JCT / max(run, 10 s)); NaN for a rejected job.
        state: index into STATES.
    """

    wait: npt.NDArray[np.float32]  # (num_jobs,)
    jct: npt.NDArray[np.float32]  # (num_jobs,)
    bounded_slowdown: npt.NDArray[np.float32]  # (num_jobs,)
    state: npt.NDArray[np.uint8]  # (num_jobs,)

    def to_bytes(self) -> bytes:
        """Return the columns one after another, for a pipe or a file."""
        times = (self.wait, self.jct, self.bounded_slowdown)
        return b"".join(column.astype(_SMALL).tobytes() for column in times) + self.state.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> JobOutcomes:
        """Return the outcomes that `to_bytes` wrote."""
        num_jobs = len(content) // _BYTES_PER_JOB
        times = np.frombuffer(content, _SMALL, 3 * num_jobs).reshape(3, num_jobs)
        state = np.frombuffer(content, np.uint8, offset=3 * num_jobs * _SMALL.itemsize)
        return cls(times[0], times[1], times[2], state)


@dataclasses.dataclass(frozen=True, eq=False)
class WindowColumns:
    """The columns of the table of jobs that do not depend on the scheduler."""

    submit: npt.NDArray[np.float64]
    run_time: npt.NDArray[np.float64]
    gpus: npt.NDArray[np.float64]
    priority: npt.NDArray[np.float64]
    user: npt.NDArray[np.int32]
    pool: npt.NDArray[np.int32]
    user_names: tuple[str, ...]
    pool_names: tuple[str, ...]

    @classmethod
    def of(cls, workload: Workload) -> WindowColumns:
        """Return the columns of a window."""
        return cls(
            submit=workload.submit,
            run_time=workload.run,
            gpus=workload.gpu_amount,
            priority=workload.priority,
            user=workload.user,
            pool=workload.pool,
            user_names=workload.user_names,
            pool_names=workload.pool_names,
        )


@dataclasses.dataclass(frozen=True, eq=False)
class RunJobs:
    """The jobs of one run, and which run it was."""

    cell: int
    scheduler: str
    window: int
    columns: WindowColumns
    outcomes: JobOutcomes


def table_writers(
    jobs: Sequence[RunJobs],
    *,
    workload: Workload,
    cluster: Cluster,
    logs: Mapping[str, Schedule] | None = None,
) -> dict[str, FileWriter]:
    """Return the files of a run's tables and their writers, for `RunDirectory.write`.

    Args:
        jobs: what became of the jobs, for each run.
        workload: the jobs of the first window.
        cluster: the nodes they ran on.
        logs: the logs of that window by scheduler; None = of a single run, whose log
            `RunDirectory.write` takes as it is.
    """
    writers: dict[str, FileWriter] = {JOBS: lambda path: write_jobs(jobs, path)}
    if logs is not None:
        writers[EVENTS] = lambda path: write_events(logs, path)
    return writers | input_writers(workload, cluster)


def input_writers(workload: Workload, cluster: Cluster) -> dict[str, FileWriter]:
    """Return the files of a run's inputs and their writers."""
    from berthline.traces.formats.parquet import write_parquet

    return {
        CLUSTER: lambda path: write_cluster_file(cluster, path),
        WORKLOAD: lambda path: write_parquet(workload, path),
    }


def write_jobs(runs: Sequence[RunJobs], path: Path) -> None:
    """Write the table of jobs; runs in the order given, jobs in that of their workload.

    `user` is present if some workload has several users, and `pool` if one has pools; it is null
    for a job that may use every pool.
    """
    import polars as pl

    lengths = [len(run.columns.submit) for run in runs]

    def spread(values: Iterable[int], dtype: Any) -> npt.NDArray[Any]:
        return np.repeat(np.array(list(values), dtype), lengths)

    def joined(part: str, name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(getattr(run, part), name) for run in runs])

    names = list(dict.fromkeys(run.scheduler for run in runs))
    columns: dict[str, Any] = {
        "cell": spread((run.cell for run in runs), np.uint16),
        "scheduler": _category(
            names, spread((names.index(run.scheduler) for run in runs), np.uint32)
        ),
        "window": spread((run.window for run in runs), np.uint16),
        "job": np.concatenate([np.arange(length, dtype=np.uint32) for length in lengths]),
        "submit": joined("columns", "submit"),
    }
    for name in ("wait", "jct"):
        columns[name] = pl.Series(joined("outcomes", name), nan_to_null=True)
    columns["run_time"] = joined("columns", "run_time")
    columns["bounded_slowdown"] = pl.Series(
        joined("outcomes", "bounded_slowdown"), nan_to_null=True
    )
    columns["gpus"] = joined("columns", "gpus")
    columns["priority"] = joined("columns", "priority")
    for name in ("user", "pool"):
        column = _named(runs, name)
        if column is not None:
            columns[name] = column
    columns["state"] = _category(STATES, joined("outcomes", "state").astype(np.uint32))
    write_frame(pl.DataFrame(columns), path, compression="zstd", compression_level=_LEVEL)


def write_events(logs: Mapping[str, Schedule], path: Path) -> None:
    """Write the logs of some schedulers, named in a leading column `scheduler`."""
    import polars as pl

    kind = pl.Enum(list(logs))
    tables = [
        log.frame().select(pl.lit(name, dtype=kind).alias("scheduler"), pl.all())
        for name, log in logs.items()
    ]
    write_frame(pl.concat(tables), path, compression="zstd", compression_level=_LEVEL)


def _named(runs: Sequence[RunJobs], name: str) -> pl.Series | None:
    """Return the users or the pools of all jobs; None if there is nothing to distinguish."""
    of_runs = [getattr(run.columns, f"{name}_names") for run in runs]
    fewest = 1 if name == "user" else 0
    if all(len(names) <= fewest for names in of_runs):
        return None
    texts = itertools.chain.from_iterable(dict.fromkeys(of_runs))
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    codes: list[npt.NDArray[np.uint32]] = []
    translations: dict[tuple[str, ...], npt.NDArray[np.uint32]] = {}
    for run, names in zip(runs, of_runs, strict=True):
        if names not in translations:
            # The last entry is for index -1, a job that may use every pool.
            known = [numbers[text] for text in names]
            translations[names] = np.array([*known, len(numbers)], np.uint32)
        codes.append(translations[names][getattr(run.columns, name)])
    return _category([*numbers, None], np.concatenate(codes))


def _category(names: Sequence[str | None], codes: npt.NDArray[np.uint32]) -> pl.Series:
    import polars as pl

    return pl.Series(names, dtype=pl.Categorical).gather(pl.Series(codes))
