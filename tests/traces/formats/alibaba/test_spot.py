"""Alibaba spot jobs, native: columns, gangs, types and the publisher's sample rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples"

HEADER = (
    "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,"
    "submit_time,duration,job_type"
)


@pytest.fixture
def write(tmp_path):
    def write_rows(*rows):
        path = tmp_path / "job_info_df.csv"
        path.write_text("\n".join([HEADER, *rows]) + "\n")
        return path

    return write_rows


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(path) in caught.value.where
    return caught.value


def test_columns_come_from_the_right_cells(write):
    workload = load_trace(
        write(
            "7,13,A100-SXM4-80GB,15,8,4,200,3600,Spot",
            "5,57,H800,10,1,1,0,60,HP",
            "6,13,,2.5,0.5,3,100,10,HP",
            "8,13,A10,1,0,4,100,10,HP",
            "9,13,A10,1,1,1,100,0,Spot",
        )
    )
    assert workload.names is not None
    assert workload.names.tolist() == ["5", "6", "7"]
    np.testing.assert_array_equal(workload.submit, [0, 100, 200])
    np.testing.assert_array_equal(workload.run, [60, 10, 3600])
    np.testing.assert_array_equal(workload.gpus, [1, 3, 32])
    np.testing.assert_array_equal(workload.cpus, [10, 8, 60])
    np.testing.assert_array_equal(workload.priority, [1, 1, 0])
    assert [workload.user_names[code] for code in workload.user] == ["57", "13", "13"]
    types = [workload.gpu_type_sets[code] if code >= 0 else None for code in workload.gpu_types]
    assert types == ["H800", None, "A100-80"]
    assert dict(workload.provenance) == {
        "format": "alibaba-spot",
        "path": "job_info_df.csv",
        "rows": 5,
        "used": 3,
        "dropped": {"no GPUs": 1, "run time 0 or unknown": 1},
        "origin_unix_time": None,
        "time_zone": None,
        "origin_trace_seconds": 0.0,
        "cpu_jobs": 0,
        "rounded": {"fractional GPUs rounded up to whole ones": 1},
        "gpus_asked": 34.5,
        "job_type": {"HP": 2, "Spot": 1},
        "priority": "by job_type: Spot 0, HP 1",
        "already_running": 1,
    }


def test_a_part_of_a_gpu_stays_what_it_is_for_a_single_worker(write):
    workload = load_trace(write("1,1,A10,1,0.29,1,0,60,HP", "2,1,A10,1,1.5,1,1,60,HP"))
    np.testing.assert_array_equal(workload.gpus, [1, 2])
    np.testing.assert_array_equal(workload.gpu_milli, [290, 1000])
    assert workload.provenance["rounded"] == {"fractional GPUs rounded up to whole ones": 1}
    assert workload.provenance["gpus_asked"] == 1.79


def test_jobs_without_gpus_can_be_kept(write):
    workload = load_trace(
        write("1,1,A10,1.5,0,4,0,60,HP", "2,1,H800,1,0,0,1,60,HP"), cpu_jobs="keep"
    )
    np.testing.assert_array_equal(workload.gpus, [0])
    np.testing.assert_array_equal(workload.cpus, [6])
    assert workload.gpu_type_sets == ()
    assert workload.provenance["cpu_jobs"] == 1
    assert workload.provenance["dropped"] == {"no GPUs, CPUs or memory": 1}


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("1,1,A10,1,1,1,0,60,Batch", "job_type"),
        ("1,1,A10,1,1,1,0,60,", "job_type"),
        ("1,1,A10,1,1,1.5,0,60,HP", "worker_num"),
        ("1,1,A10,1,2000000,2000,0,60,HP", "worker_num"),
        ("1,1,A10,1,-1,1,0,60,HP", "gpu_request"),
        ("1,1,A10,1,1,1,,60,HP", "submit_time"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(write, row, column):
    error = refused(write("1,1,A10,1,1,1,0,60,HP", row))
    assert f"column {column!r}" in error.what
    assert "line 3" in error.where


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample_rows_of_the_publisher():
    workload = load_trace(SAMPLES / "alibaba_spot_v2026" / "job_info_df.csv")
    np.testing.assert_array_equal(workload.gpus, [1, 1, 16, 94])
    np.testing.assert_array_equal(workload.run, [2_764_799, 15_897_599, 41_060, 71_718])
    np.testing.assert_array_equal(workload.priority, [1, 1, 0, 0])
    assert workload.gpu_type_sets == ("A10", "A100-80")
    assert workload.provenance["already_running"] == 2
