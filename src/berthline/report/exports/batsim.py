"""Batsim: a run in Batsim's input and output files, for Batsim and for tools such as evalys.

    jobs.csv       Batsim's output about jobs: when each started and ended, and where
    workload.json  the jobs, each with a `delay` profile of its run time (Batsim 1 to 4)
    platform.xml   the cluster, for SimGrid: a host for each GPU, by node, and no network

A resource of Batsim is a GPU; GPUs are numbered consecutively, node after node. Batsim has whole
resources and one stretch for each job, and kills jobs at the walltime. What cannot be represented
is counted and reported.
"""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import msgspec
import numpy as np

from berthline.atomic_write import open_atomically
from berthline.evaluate.metrics.gpu_numbers import gpu_numbers
from berthline.evaluate.metrics.job_table import (
    COMPLETED,
    NOT_SUBMITTED,
    REJECTED,
    RUNNING,
    job_table,
)
from berthline.model.schedule import PREEMPT
from berthline.model.workload import WHOLE_GPU
from berthline.model.workload_rows import job_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from berthline.sim.simulate import Result

FILES = ("jobs.csv", "workload.json", "platform.xml")

COLUMNS = (
    "job_id",
    "workload_name",
    "profile",
    "submission_time",
    "requested_number_of_resources",
    "requested_time",
    "success",
    "final_state",
    "starting_time",
    "execution_time",
    "finish_time",
    "waiting_time",
    "turnaround_time",
    "stretch",
    "allocated_resources",
    "consumed_energy",
    "metadata",
)
WORKLOAD = "berthline"
_ENERGY_UNKNOWN = -1


def write_batsim(result: Result, directory: Path) -> dict[str, int]:
    """Write the three files into a directory that exists.

    Returns:
        What was lost, and for how many jobs.

    Raises:
        OutputError: a file cannot be written.
    """
    with open_atomically(directory / "jobs.csv") as file:
        for line in _lines_of_jobs(result):
            file.write(line)
    with open_atomically(directory / "workload.json") as file:
        file.write(msgspec.json.encode(_workload(result)))
    with open_atomically(directory / "platform.xml") as file:
        for text in _platform(result):
            file.write(text.encode())
    return _lost(result)


def interval_set(numbers: list[int]) -> str:
    """Return numbers as Batsim writes sets of resources.

    Example:
        >>> interval_set([5, 1, 2, 3])
        '1-3 5'
    """
    parts: list[list[int]] = []
    for number in sorted(set(numbers)):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return " ".join(f"{a}-{b}" if a != b else str(a) for a, b in parts)


def _lines_of_jobs(result: Result) -> Iterator[bytes]:
    log, workload = result.log, result.workload
    table = job_table(log, workload)
    numbers = gpu_numbers(log, result.cluster)
    offsets = np.concatenate([[0], np.cumsum(result.cluster.gpus)])
    resources = offsets[numbers.node] + numbers.gpu
    stretch_jobs = log.job[log.is_start]
    bounds = np.searchsorted(numbers.stretch, np.arange(len(stretch_jobs) + 1))
    last = {job: stretch for stretch, job in enumerate(stretch_jobs.tolist())}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for job in np.flatnonzero(workload.gpus > 0).tolist():
        status = int(table.status[job])
        if status == NOT_SUBMITTED:
            continue
        submit, start = float(workload.submit[job]), float(table.start[job])
        finish = float(table.finish[job])
        ended = status == COMPLETED
        where = ""
        if job in last:
            stretch = last[job]
            where = interval_set(resources[bounds[stretch] : bounds[stretch + 1]].tolist())
        walltime = _walltime(result, job)
        writer.writerow(
            (
                job_name(workload, job),
                WORKLOAD,
                _profile(float(workload.run[job])),
                _plain(submit),
                int(workload.gpus[job]),
                "" if walltime is None else _plain(walltime),
                int(ended),
                {COMPLETED: "COMPLETED_SUCCESSFULLY", REJECTED: "REJECTED", RUNNING: "RUNNING"}.get(
                    status, "SUBMITTED"
                ),
                "" if np.isnan(start) else _plain(start),
                _plain(finish - start) if ended else "",
                _plain(finish) if ended else "",
                "" if np.isnan(start) else _plain(start - submit),
                _plain(finish - submit) if ended else "",
                _plain((finish - submit) / (finish - start)) if ended else "",
                where,
                _ENERGY_UNKNOWN,
                "",
            )
        )
        if text.tell() > 1 << 16:
            yield text.getvalue().encode()
            text.seek(0)
            text.truncate()
    yield text.getvalue().encode()


def _walltime(result: Result, job: int) -> float | None:
    """Return the estimate; None = there is none, or the job runs longer and would be killed."""
    estimate = float(result.workload.estimate[job])
    return estimate if estimate >= result.workload.run[job] else None


def _workload(result: Result) -> dict[str, Any]:
    workload = result.workload
    rows = np.flatnonzero(workload.gpus > 0).tolist()
    jobs = []
    for job in rows:
        run, walltime = float(workload.run[job]), _walltime(result, job)
        entry = {
            "id": job_name(workload, job),
            "subtime": float(workload.submit[job]),
            "res": int(workload.gpus[job]),
            "profile": _profile(run),
        }
        jobs.append(entry if walltime is None else entry | {"walltime": walltime})
    runs = np.unique(workload.run[rows]).tolist()
    return {
        "nb_res": result.cluster.total_gpus,
        "jobs": jobs,
        "profiles": {_profile(run): {"type": "delay", "delay": run} for run in runs},
    }


def _platform(result: Result) -> Iterator[str]:
    cluster = result.cluster
    yield "<?xml version='1.0'?>\n"
    yield '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
    yield '<platform version="4.1">\n<zone id="cluster" routing="None">\n'
    yield '  <host id="master_host" speed="1Gf"><prop id="role" value="master"/></host>\n'
    for node, gpus in enumerate(cluster.gpus.tolist()):
        kind = quoteattr(cluster.types[cluster.gpu_type[node]].name)
        for gpu in range(gpus):
            name = quoteattr(f"node{node}_gpu{gpu}")
            yield f'  <host id={name} speed="1Gf"><prop id="gpu_type" value={kind}/></host>\n'
    yield "</zone>\n</platform>\n"


def _lost(result: Result) -> dict[str, int]:
    log, workload = result.log, result.workload
    over = workload.estimate < workload.run
    lost = {
        "rows of jobs without GPUs": int((workload.gpus == 0).sum()),
        "parts of GPUs (now whole ones, held at once)": int((workload.gpu_milli < WHOLE_GPU).sum()),
        "preemptions (first start, last place)": len(set(log.job[log.kind == PREEMPT].tolist())),
        "walltimes shorter than the run, which would kill the job": int(over.sum()),
        "requested pools and GPU types": int(
            ((workload.pool >= 0) | (workload.gpu_types >= 0)).sum()
        ),
        "CPUs and memory": int(((workload.cpus > 0) | (workload.memory_mib > 0)).sum()),
    }
    return {what: count for what, count in lost.items() if count}


def _profile(run: float) -> str:
    return f"delay_{_plain(run)}"


def _plain(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
