"""LSF jobs as CSV: durations as Python writes them, GPUs from the request, the real sample."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLE = SHARED_TRACES / "format_samples/lsf/jobs.csv"
DEFAULTS = {
    "job_id": "386",
    "num_cores": 8,
    "num_hosts": 1,
    "submit_time": "2022-02-14T08:00:00",
    "start_time": "2022-02-14T08:10:00",
    "finish_time": "2022-02-14T08:20:00",
    "resource_request": "select[type == any] rusage[mem=4.0:ngpus_physical=2.00]",
    "run_time": "0:10:00",
    "exit_status": 0,
    "user": "ada",
    "queue": "gpu",
}


@pytest.fixture
def write(tmp_path):
    def write_file(*rows, columns=tuple(DEFAULTS)):
        lines = [",".join(f'"{(DEFAULTS | row)[name]}"' for name in columns) for row in rows]
        path = tmp_path / "jobs.csv"
        path.write_text("\n".join([",".join(columns), *lines]))
        return path

    return write_file


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert path.name in caught.value.where
    return caught.value


def test_columns_come_from_the_right_fields(write):
    other = {
        "job_id": "387",
        "num_cores": 16,
        "num_hosts": 4,
        "submit_time": "2022-02-14T07:59:00",
        "run_time": "2 days, 3:04:05.5",
        "exit_status": 32512,
        "user": "",
        "queue": "",
    }
    workload = load_trace(write({}, other))
    np.testing.assert_array_equal(workload.submit, [0, 60])
    np.testing.assert_array_equal(workload.run, [183_845.5, 600])
    np.testing.assert_array_equal(workload.gpus, [8, 2])
    np.testing.assert_array_equal(workload.cpus, [16, 8])
    assert [workload.user_names[code] for code in workload.user] == ["unknown", "ada"]
    np.testing.assert_array_equal(workload.pool, [-1, 0])
    assert workload.names.tolist() == ["387", "386"]
    assert dict(workload.provenance) == {
        "format": "lsf-csv",
        "path": "jobs.csv",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": None,
        "time_zone": None,
        "cpu_jobs": 0,
        "rounded": {},
        "exit_status": {"0": 1, "32512": 1},
    }
    assert load_trace(write({}), time_zone="UTC").provenance["origin_unix_time"] == 1644825600


def test_parts_of_gpus_and_jobs_without_any(write):
    rows = (
        {"resource_request": "rusage[ngpus_physical=0.25/job]"},
        {"resource_request": "rusage[ngpus_physical=1.50/job]"},
        {"resource_request": ""},
    )
    workload = load_trace(write(*rows), cpu_jobs="keep")
    assert workload.gpus.tolist() == [1, 2, 0]
    assert workload.gpu_milli.tolist() == [250, 1000, 1000]
    assert workload.cpus.tolist() == [8, 8, 8]
    assert workload.provenance["cpu_jobs"] == 1
    assert workload.provenance["rounded"] == {"fractional GPUs rounded up to whole ones": 1}


def test_only_what_is_needed_must_be_there(write):
    columns = ("job_id", "submit_time", "start_time", "finish_time", "resource_request")
    workload = load_trace(write({}, columns=columns))
    np.testing.assert_array_equal(workload.run, [600])
    np.testing.assert_array_equal(workload.gpus, [2])
    assert workload.pool_names == ()


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    provenance = load_trace(
        write(
            {},
            {"start_time": "", "finish_time": ""},
            {"finish_time": "None"},
            {"resource_request": "select[type == any] order[r15s:pg] "},
            {"resource_request": ""},
            {"run_time": "0:00:00"},
        )
    ).provenance
    assert provenance["dropped"] == {
        "never started": 1,
        "not finished when the trace ends": 1,
        "no GPUs": 2,
        "run time 0 or unknown": 1,
    }


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"submit_time": ""}, "column 'submit_time' holds"),
        ({"finish_time": "14 Feb"}, "column 'finish_time' holds '14 Feb'"),
        ({"run_time": "600"}, "column 'run_time' holds '600'"),
        ({"num_hosts": -1}, "column 'num_hosts' holds '-1'"),
        ({"resource_request": "rusage[ngpus=9999999999]"}, "column 'resource_request' holds"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    error = refused(write({}, row))
    assert error.what.startswith(what)
    assert error.where.endswith("jobs.csv, line 3")


@pytest.mark.skipif(not SAMPLE.is_file(), reason="shared trace files are not here")
def test_the_real_sample_has_no_gpus():
    error = refused(SAMPLE)
    assert error.what == "none of the 87 rows is a usable job"
    assert error.hint == "left out: 87 no GPUs"
