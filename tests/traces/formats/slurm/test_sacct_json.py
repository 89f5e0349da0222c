"""sacct's JSON in the dialects of older and newer releases."""

from __future__ import annotations

import json

import numpy as np
import pytest

from berthline.errors import TraceError
from berthline.traces.load import load_trace

NEW, OLD = "new", "old"


def number(dialect, value, *, infinite=False):
    if dialect is OLD:
        return None if infinite else value
    return {"set": value is not None, "infinite": infinite, "number": value or 0}


def tres(gpus=2, kind="a100", cpus=8, memory=65_536):
    resources = [
        {"type": "cpu", "name": "", "id": 1, "count": cpus},
        {"type": "mem", "name": "", "id": 2, "count": memory},
        {"type": "node", "name": "", "id": 4, "count": 1},
        {"type": "energy", "name": "", "id": 3, "count": -2},
    ]
    if gpus:
        resources.append({"type": "gres", "name": "gpu", "id": 1001, "count": gpus})
        resources.append({"type": "gres", "name": f"gpu:{kind}", "id": 1002, "count": gpus})
    return resources


def job(dialect=NEW, *, job_id=1, state="COMPLETED", limit=60, allocated=None, task=None, **times):
    moments = {"submission": 1000, "start": 1060, "end": 1660, "elapsed": 600} | times
    unlimited = limit is None
    return {
        "account": "acct",
        "allocation_nodes": 1,
        "array": {
            "job_id": 5 if task is not None else 0,
            "task_id": number(dialect, task),
            "task": "",
        },
        "association": {"account": "acct", "cluster": "c", "partition": "", "user": "ada"},
        "job_id": job_id,
        "name": "train",
        "partition": "gpu",
        "state": {"current": state if dialect is OLD else [state], "reason": "None"},
        "steps": [{"tres": {"allocated": tres()}, "time": {"elapsed": 5}}],
        "time": {
            "eligible": moments["submission"],
            "limit": number(dialect, limit, infinite=unlimited),
            "suspended": 0,
            "total": {"seconds": 0, "microseconds": 0},
            **moments,
        },
        "tres": {"allocated": tres() if allocated is None else allocated, "requested": tres(4)},
        "user": "ada",
    }


@pytest.fixture
def write(tmp_path):
    def write_file(*jobs, text=None):
        path = tmp_path / "sacct.json"
        content = {"meta": {"slurm": {"release": "24.11"}}, "errors": [], "jobs": list(jobs)}
        path.write_text(json.dumps(content, indent=1) if text is None else text)
        return path

    return write_file


def refused(path, name=None):
    with pytest.raises(TraceError) as caught:
        load_trace(path, name)
    assert path.name in caught.value.where
    return caught.value


@pytest.mark.parametrize("dialect", [NEW, OLD])
def test_columns_come_from_the_right_fields(write, dialect):
    other = job(dialect, job_id=9, task=3, submission=970, elapsed=50, limit=None)
    other |= {"user": "", "partition": "big", "association": {"user": "bob"}}
    workload = load_trace(write(job(dialect), other))
    np.testing.assert_array_equal(workload.submit, [0, 30])
    np.testing.assert_array_equal(workload.run, [50, 600])
    np.testing.assert_array_equal(workload.gpus, [2, 2])
    np.testing.assert_array_equal(workload.estimate, [np.nan, 3_600])
    np.testing.assert_array_equal(workload.cpus, [8, 8])
    np.testing.assert_array_equal(workload.memory_mib, [65_536, 65_536])
    assert [workload.user_names[code] for code in workload.user] == ["bob", "ada"]
    assert [workload.pool_names[code] for code in workload.pool] == ["big", "gpu"]
    assert workload.names.tolist() == ["5_3", "1"]
    assert dict(workload.provenance) == {
        "format": "slurm-json",
        "path": "sacct.json",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 970.0,
        "time_zone": None,
        "cpu_jobs": 0,
        "status": {"COMPLETED": 2},
        "gpu_types": {"a100": 2},
        "repeated_ids": 0,
    }


def test_gpus_are_slurms_sum_or_that_of_the_types(write):
    typed = [each for each in tres() if each["name"] != "gpu"]
    typed.append({"type": "gres", "name": "gpu:h100", "count": 3})
    workload = load_trace(write(job(allocated=typed), job(allocated=[])))
    np.testing.assert_array_equal(workload.gpus, [5, 4])  # the second one by its request
    assert workload.provenance["gpu_types"] == {"a100": 2, "h100": 1}


def test_jobs_without_gpus_can_be_kept(write):
    none = [each for each in tres() if each["type"] != "gres"]
    workload = load_trace(write(job(), job(allocated=none, requested=none)), cpu_jobs="keep")
    assert sorted(workload.gpus.tolist()) == [0, 2]
    assert workload.cpus.tolist() == [8, 8]
    assert workload.provenance["cpu_jobs"] == 1


def test_without_an_elapsed_time_it_is_from_start_to_end(write):
    np.testing.assert_array_equal(load_trace(write(job(elapsed=0))).run, [600])


def test_nulls_and_missing_parts_do_no_harm(write):
    bare = {"job_id": 3, "time": {"submission": 1, "start": 2, "end": 9}, "tres": None}
    bare["array"] = bare["association"] = bare["state"] = bare["user"] = None
    workload = load_trace(write(job(), bare))
    assert workload.provenance["dropped"] == {"no GPUs": 1}
    kept = load_trace(write(job(), bare), cpu_jobs="keep")
    assert kept.provenance["dropped"] == {"no GPUs, CPUs or memory": 1}
    assert workload.provenance["status"] == {"COMPLETED": 1, "unknown": 1}


def test_every_job_left_out_is_counted_once_under_its_first_reason(write):
    jobs = [
        job(),
        job(state="CANCELLED", start=0, elapsed=0),
        job(state="CANCELLED", end=1060, elapsed=0),
        job(state="CANCELLED"),
        job(state="PENDING", start=0, end=0, elapsed=0),
        job(state="RUNNING", end=0),
        job(submission=0),
        job(allocated=tres(0)),
        job(state="FAILED", end=1060, elapsed=0),
    ]
    provenance = load_trace(write(*jobs)).provenance
    assert provenance["used"] == 2
    assert provenance["repeated_ids"] == 1
    assert provenance["dropped"] == {
        "cancelled before start": 2,
        "never started": 1,
        "not finished when the trace ends": 1,
        "submit time unknown": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 1,
    }


def test_wrong_values_are_named_with_their_line(write):
    error = refused(write(job(), job(submission=10**18)))
    assert error.what == "'time.submission' is '1e+18'"
    line = next(
        number
        for number, text in enumerate(write(job(), job()).read_text().splitlines(), 1)
        if text == "  }," and number > 10
    )
    assert f", line {line + 1} (job 2 of the list)" in error.where
    error = refused(write(job(), job(job_id="x")))
    assert error.where.endswith("($.jobs[1].job_id)")
    many = tres(10**12)
    assert refused(write(job(allocated=many))).what == "'tres of type gres' is '1e+12'"


def test_other_json_is_not_taken_for_it(write):
    assert "not recognised" in refused(write(text='{"jobs": [{"submit_time": 1}]}')).what
    assert "missing required field `jobs`" in refused(write(text="{}"), "slurm-json").what
    assert "is empty" in refused(write(), "slurm-json").what
    cut = write(job(), job()).read_text()
    assert "not valid JSON" in refused(write(text=cut[: len(cut) // 2])).what
