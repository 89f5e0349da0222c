"""Files of made-up jobs in the formats of published cluster traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from berthline.cli.bench.sample_jobs import STATES, Sample, SampleJobs, dates

if TYPE_CHECKING:
    import numpy.typing as npt
    import polars as pl

_MODELS = ("A10", "A100-SXM4-80GB", "H800", "GPU-series-1")


def write_reduced(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a table of four columns."""
    columns = {
        "job_id": jobs.said("{}#{}", jobs.number, np.arange(jobs.rows)),
        "arrival_s": jobs.submit,
        "service_sec": jobs.run,
        "gpu_count": jobs.gpus,
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_philly_reduced(jobs: SampleJobs, directory: Path) -> Sample:
    """Write the reduced Philly table."""
    columns = {
        "timestamp": dates(jobs.submit),
        "duration": jobs.run + 0.0,
        "num_gpus": jobs.gpus,
        "gpu_time": jobs.run * jobs.gpus + 0.0,
        "cluster": jobs.pick("11cb48", "0e4a51", "6214e9"),
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_helios(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a Helios log."""
    columns = {
        "job_id": jobs.number,
        "user": jobs.said("u{}", jobs.code),
        "vc": jobs.pick("vc6YE", "vcHcQ", "vcJsw"),
        "gpu_num": jobs.gpus,
        "cpu_num": jobs.gpus * 8,
        "node_num": 1,
        "state": jobs.pick(*STATES),
        "submit_time": dates(jobs.submit),
        "start_time": dates(jobs.start),
        "end_time": dates(jobs.end),
        "duration": jobs.run,
        "queue": jobs.wait,
    }
    return jobs.save(directory / "cluster_log.csv", columns)


def write_acme(jobs: SampleJobs, directory: Path) -> Sample:
    """Write an Acme trace."""
    zoned = "%Y-%m-%d %H:%M:%S+08:00"
    columns = {
        "job_id": jobs.hashed(jobs.number, 16),
        "user": jobs.said("u{}", jobs.code),
        "node_num": 1,
        "gpu_num": jobs.gpus,
        "cpu_num": jobs.gpus * 16,
        "type": jobs.pick("Other", "Pretrain", "Evaluation"),
        "state": jobs.pick(*STATES),
        "submit_time": dates(jobs.submit, zoned),
        "start_time": dates(jobs.start, zoned),
        "end_time": dates(jobs.end, zoned),
        "duration": jobs.run,
        "queue": jobs.wait,
        "gpu_time": jobs.run * jobs.gpus + 0.0,
    }
    return jobs.save(directory / "trace_seren.csv", columns)


def write_pai_tasks(jobs: SampleJobs, directory: Path) -> Sample:
    """Write PAI's table of tasks."""
    columns = {
        "job_name": jobs.hashed(jobs.number * 4 // 5),
        "task_name": jobs.pick("worker", "ps", "tensorflow", "evaluator"),
        "inst_num": jobs.gpus + 0.0,
        "status": jobs.pick("Terminated", "Failed"),
        "start_time": jobs.start + 0.0,
        "end_time": jobs.end + 0.0,
        "plan_cpu": jobs.gpus * 600.0,
        "plan_mem": jobs.gpus * 29.296875,
        "plan_gpu": jobs.gpus * 25.0,
        "gpu_type": jobs.pick("T4", "P100", "V100", "MISC"),
    }
    return jobs.save(directory / "pai_task_table.csv", columns, include_header=False)


def write_pai_joined(jobs: SampleJobs, directory: Path) -> Sample:
    """Write PAI's tables of tasks and jobs."""
    jobs = SampleJobs(jobs.rows * 5 // 9)
    tasks = write_pai_tasks(jobs, directory)
    few = SampleJobs(jobs.rows * 4 // 5)
    columns = {
        "job_name": few.hashed(np.arange(few.rows) + 80_000),
        "inst_id": few.hashed(few.number, 40),
        "user": few.hashed(few.code, 12),
        "status": few.pick("Terminated", "Failed"),
        "start_time": few.submit + 0.0,
        "end_time": few.end + 0.0,
    }
    known = few.save(directory / "pai_job_table.csv", columns, include_header=False)
    return Sample(directory, tasks.rows + known.rows, {})


def write_openb(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a list of openb pods."""
    columns = {
        "name": jobs.said("openb-pod-{}", jobs.number),
        "cpu_milli": jobs.gpus * 4000,
        "memory_mib": jobs.gpus * 16_384,
        "num_gpu": jobs.gpus,
        "gpu_milli": 1000,
        "gpu_spec": jobs.pick("", "", "", "T4", "V100M16|V100M32"),
        "qos": jobs.pick("LS", "BE", "Burstable"),
        "pod_phase": jobs.pick("Running", "Failed", "Succeeded"),
        "creation_time": jobs.submit,
        "deletion_time": jobs.end,
        "scheduled_time": jobs.start,
    }
    return jobs.save(directory / "openb_pod_list.csv", columns)


def write_dlrm(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a list of DLRM instances."""
    columns = {
        "instance_sn": jobs.said("instance_{}", jobs.number),
        "role": "HN",
        "app_name": jobs.said("app_{}", jobs.code),
        "cpu_request": 12,
        "cpu_limit": 12,
        "gpu_request": 1,
        "gpu_limit": 1,
        "rdma_request": 25,
        "rdma_limit": 25,
        "memory_request": jobs.gpus * 30.5,
        "memory_limit": jobs.gpus * 30.5,
        "disk_request": 90,
        "disk_limit": 90,
        "max_instance_per_node": -1,
        "creation_time": jobs.submit + 0.25,
        "scheduled_time": jobs.start + 0.25,
        "deletion_time": jobs.end + 0.25,
    }
    return jobs.save(directory / "dlrm.csv", columns)


def write_spot(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a list of spot jobs."""
    columns = {
        "job_name": jobs.number,
        "organization": jobs.code,
        "gpu_model": jobs.pick(*_MODELS),
        "cpu_request": jobs.gpus * 12,
        "gpu_request": jobs.gpus,
        "worker_num": jobs.code % 4 + 1,
        "submit_time": jobs.submit,
        "duration": jobs.run,
        "job_type": jobs.pick("HP", "Spot"),
    }
    return jobs.save(directory / "job_info_df.csv", columns)


def write_spot_reduced(jobs: SampleJobs, directory: Path) -> Sample:
    """Write the reduced list of spot jobs."""
    columns = {
        "arrival_time": jobs.submit,
        "runtime": jobs.run,
        "gpus": jobs.gpus,
        "priority": jobs.gpus * 0.5,
    }
    return jobs.save(directory / "jobs.csv", columns)


def _events(
    jobs: SampleJobs,
) -> tuple[SampleJobs, npt.NDArray[np.int64], npt.NDArray[np.int64], pl.Series]:
    """Return submit, schedule and finish events by time: columns, job, type and user hash."""
    few = SampleJobs(jobs.rows // 3)
    times = np.concatenate([few.submit, few.start, few.end])
    order = np.argsort(times, kind="stable")
    types = np.repeat(np.array([0, 1, 4]), few.rows)[order]
    few.rows = len(order)
    number = np.tile(few.number, 3)[order]
    few.code = number % 500
    few.submit = times[order] * 1_000_000
    return few, number + 6_251_000_000, types, few.hashed(few.code, 44)


def write_google_jobs(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a part of Google's job_events."""
    few, number, types, user = _events(jobs)
    columns = {
        "time": few.submit,
        "missing": "",
        "job": number,
        "event": types,
        "user": user,
        "class": few.code % 4,
        "name": few.hashed(number, 44),
        "logical": few.hashed(few.code, 44),
    }
    path = directory / "part-00000-of-00500.csv"
    return few.save(path, columns, include_header=False, quote_style="never")


def write_google_tasks(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a part of Google's task_events."""
    few, number, types, user = _events(jobs)
    columns = {
        "time": few.submit,
        "missing": "",
        "job": number // 4,
        "task": number % 4,
        "machine": few.code + 4_155_527,
        "event": types,
        "user": user,
        "class": few.code % 4,
        "priority": few.code % 12,
        "cpu": (few.code % 7 + 1) / 100,
        "memory": (few.code % 9 + 1) / 100,
        "disk": 0.0001 * (few.code % 5),
        "different": "0",
    }
    path = directory / "part-00000-of-00500.csv"
    return few.save(path, columns, include_header=False, quote_style="never")
