"""Files of made-up jobs in the formats of batch systems and simulators, and in custom tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from berthline.cli.bench.sample_jobs import FIRST_SECOND, STATES, Sample, SampleJobs, dates


def write_csv(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a custom table of numbers."""
    columns = {
        "job_id": jobs.number,
        "submit_time": jobs.submit,
        "duration": jobs.run + 0.5,
        "num_gpus": jobs.gpus,
        "user": jobs.code,
        "vc": jobs.pick("a", "b", "c"),
        "priority": jobs.code % 5,
        "requested_time": jobs.limit * 60,
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_dated_csv(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a custom table with dates."""
    columns = {
        "id": jobs.number,
        "submitted_at": dates(jobs.submit),
        "started_at": dates(jobs.start),
        "ended_at": dates(jobs.end),
        "num_gpus": jobs.gpus,
        "user": jobs.said("user{}", jobs.code),
        "queue": jobs.pick("a", "b", "c"),
        "gpu_type": jobs.pick("A100|V100", "A100", "T4"),
        "priority": jobs.code % 5,
        "memory_gb": jobs.gpus * 64,
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_sacct(jobs: SampleJobs, directory: Path) -> Sample:
    """Write the output of sacct."""
    form = "%Y-%m-%dT%H:%M:%S"
    asked = jobs.said("cpu={},gres/gpu={},mem={}G,node=1", jobs.gpus * 4, jobs.gpus, jobs.gpus * 32)
    hours = jobs.said("{}:{}:00", jobs.limit // 60 + 10, jobs.limit % 60 // 15 * 15 + 10)
    columns = {
        "JobID": jobs.number,
        "JobIDRaw": jobs.number,
        "JobName": jobs.said("train-{}", jobs.code),
        "Partition": jobs.pick("gpu", "short", "long"),
        "Account": "research",
        "User": jobs.said("user{}", jobs.code),
        "Submit": dates(jobs.submit, form),
        "Start": dates(jobs.start, form),
        "End": dates(jobs.end, form),
        "ElapsedRaw": jobs.run,
        "Timelimit": hours,
        "State": jobs.pick(*STATES),
        "NCPUS": jobs.gpus * 4,
        "ReqMem": "64G",
        "ReqTRES": asked,
        "AllocTRES": asked,
    }
    return jobs.save(directory / "sacct.txt", columns, separator="|", quote_style="never")


def write_slurm_database(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a dump of Slurm's job table."""
    columns = {
        "id_job": jobs.said("{}.0", jobs.number),
        "id_user": jobs.said("{}.0", jobs.code),
        "cpus_req": jobs.gpus * 4,
        "mem_req": 34_000,
        "partition": jobs.pick("normal", "short", "long"),
        "priority": jobs.code,
        "state": jobs.code % 4 + 3,
        "timelimit": jobs.limit,
        "time_submit": jobs.submit + FIRST_SECOND,
        "time_eligible": jobs.submit + FIRST_SECOND,
        "time_start": jobs.start + FIRST_SECOND,
        "time_end": jobs.end + FIRST_SECOND,
        "tres_alloc": jobs.said("1={},2=34000,4=1,5=4,1002={}", jobs.gpus * 4, jobs.gpus),
        "tres_req": jobs.said("1={},2=34000,4=1,5=4,1002={}", jobs.gpus * 4, jobs.gpus),
        "job_type": "OTHER",
    }
    return jobs.save(directory / "slurm.csv", columns)


def write_lsf_csv(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a table of LSF jobs."""
    form = "%Y-%m-%dT%H:%M:%S"
    columns = {
        "job_id": jobs.number,
        "num_cores": jobs.gpus * 4,
        "max_mem_gb": jobs.gpus * 0.5,
        "num_hosts": 1,
        "submit_time": dates(jobs.submit, form),
        "start_time": dates(jobs.start, form),
        "finish_time": dates(jobs.end, form),
        "resource_request": jobs.said("rusage[mem=8192,ngpus_physical={}.00]", jobs.gpus),
        "wait_time": jobs.said("0:{}:{}", jobs.wait % 50 + 10, jobs.wait % 50 + 10),
        "run_time": jobs.said("{}:{}:{}", jobs.run % 9, jobs.run % 50 + 10, jobs.run % 50 + 10),
        "exit_status": jobs.code % 2,
    }
    return jobs.save(directory / "lsf.csv", columns)


def write_rltune(jobs: SampleJobs, directory: Path) -> Sample:
    """Write an RLTune job list."""
    columns: dict[str, Any] = {str(at): -1 for at in range(19)}
    columns |= {
        "0": jobs.number,
        "1": jobs.submit,
        "2": jobs.wait,
        "3": jobs.run,
        "4": jobs.gpus,
        "8": jobs.limit * 60,
        "9": jobs.gpus * 29.25,
        "10": 1,
        "11": jobs.code,
        "17": jobs.code % 9,
        "18": jobs.code % 5,
    }
    return jobs.save(directory / "jobs.csv", columns, include_header=False)


def write_tiresias(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a Tiresias job list."""
    columns = {
        "job_id": jobs.number,
        "num_gpu": jobs.gpus,
        "submit_time": jobs.submit,
        "iterations": jobs.run * 7,
        "model_name": jobs.pick("vgg19", "resnet50", "alexnet"),
        "duration": jobs.run,
        "interval": jobs.wait,
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_muri(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a Muri job list."""
    columns = {
        "job_id": jobs.number,
        "num_gpu": jobs.gpus,
        "submit_time": jobs.submit * 1000,
        "iterations": jobs.run * 7,
        "model_name": jobs.pick("vgg19", "resnet50", "alexnet"),
        "batch_size": 16,
        "duration": jobs.run * 1000,
        "interval": jobs.wait * 1000,
        "iteration_time": 109,
        "resource_time_0": 114,
        "resource_time_1": 80,
        "resource_time_2": 0,
        "priority": jobs.code % 2,
    }
    return jobs.save(directory / "jobs.csv", columns)


def write_pollux(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a Pollux workload and its run times."""
    applications = ("cifar10", "bert", "imagenet")
    table = directory / "run_times.csv"
    rows = (f"{name},{gpus},{gpus * 600}\n" for name in applications for gpus in (1, 2, 4, 8))
    table.write_text("application,num_replicas,run_time\n" + "".join(rows), encoding="utf-8")
    columns = {
        "name": jobs.said("{}-{}", jobs.pick(*applications), jobs.number),
        "time": jobs.submit,
        "application": jobs.pick(*applications),
        "num_replicas": jobs.gpus,
        "batch_size": jobs.gpus * 128,
    }
    sample = jobs.save(directory / "workload.csv", columns)
    return sample._replace(options={"run_times": str(table)})


def write_gavel(jobs: SampleJobs, directory: Path) -> Sample:
    """Write a Gavel trace and its throughputs."""
    kinds = ("ResNet-18 (batch size 32)", "LM (batch size 10)", "A3C (batch size 4)")
    speeds = {
        f"('{kind}', {gpus})": {"null": 9.5 * gpus} for kind in kinds for gpus in (1, 2, 4, 8)
    }
    table = directory / "throughputs.json"
    table.write_text(json.dumps({"v100": speeds}), encoding="utf-8")
    columns = {
        "job type": jobs.pick(*kinds),
        "command": "python3 main.py --data_dir=%s/cifar10 --batch_size 32",
        "steps argument": "--num_steps",
        "needs data": 1,
        "total steps": jobs.run * 10,
        "arrival": jobs.submit + 0.0,
        "scale factor": jobs.gpus,
    }
    form = {"include_header": False, "separator": "\t", "quote_style": "never"}
    sample = jobs.save(directory / "jobs.trace", columns, **form)
    return sample._replace(options={"throughputs": str(table)})


def write_swf(jobs: SampleJobs, directory: Path) -> Sample:
    """Write an SWF log."""
    columns: dict[str, Any] = {str(at): -1 for at in range(18)}
    columns |= {
        "0": jobs.number,
        "1": jobs.submit,
        "2": jobs.wait,
        "3": jobs.run,
        "4": jobs.gpus,
        "7": jobs.gpus,
        "8": jobs.limit * 60,
        "10": 1,
        "11": jobs.code,
        "12": jobs.code % 9,
    }
    return jobs.save(directory / "jobs.swf", columns, include_header=False, separator=" ")
