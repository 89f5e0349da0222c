"""Acme's two traces: zones, what a duration is, memory, and the publisher's examples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.formats.acme import COLUMNS, KALOS_COLUMNS
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples/acme"
DEFAULTS = {
    "job_id": "dlc1",
    "user": "u1",
    "node_num": 2,
    "gpu_num": 16,
    "cpu_num": 240,
    "mem_per_pod_GB": 1000,
    "shared_mem_per_pod": 100.0,
    "type": "Pretrain",
    "state": "COMPLETED",
    "submit_time": "2023-05-17 11:00:00+00:00",
    "start_time": "2023-05-17 11:00:10+00:00",
    "end_time": "2023-05-17 11:01:10+00:00",
    "fail_time": "",
    "stop_time": "",
    "duration": 60,
    "queue": 10,
    "gpu_time": 960.0,
}


@pytest.fixture
def write(tmp_path):
    def write_file(*rows, columns=COLUMNS):
        lines = [",".join(str((DEFAULTS | row)[name]) for name in columns) for row in rows]
        path = tmp_path / "trace.csv"
        path.write_text("\n".join([",".join(columns), *lines]))
        return path

    return write_file


def test_columns_come_from_the_right_fields(write):
    rows = (
        {},
        {
            "job_id": "dlc2",
            "user": "u2",
            "gpu_num": 1,
            "type": "Eval",
            # The same instants as 11:00:05, 11:00:20 and 11:00:50 in UTC.
            "submit_time": "2023-05-17 19:00:05+08:00",
            "start_time": "2023-05-17 19:00:20+08:00",
            "end_time": "2023-05-17 19:00:50+08:00",
        },
    )
    workload = load_trace(write(*rows))
    np.testing.assert_array_equal(workload.submit, [0, 5])
    np.testing.assert_array_equal(workload.run, [60, 30])
    np.testing.assert_array_equal(workload.gpus, [16, 1])
    np.testing.assert_array_equal(workload.cpus, [240, 240])
    np.testing.assert_array_equal(workload.memory_mib, [0, 0])
    assert workload.user_names == ("u1", "u2")
    assert workload.pool_names == ()
    assert workload.reference_type == "A100-80"
    assert workload.names.tolist() == ["dlc1", "dlc2"]
    assert dict(workload.provenance) == {
        "format": "acme",
        "path": "trace.csv",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 1684321200.0,
        "time_zone": "UTC+00:00",
        "cluster": "seren",
        "cpu_jobs": 0,
        "status": {"COMPLETED": 2},
        "kinds": {"Pretrain": 1, "Eval": 1},
        "duration_is_not_the_run_time": 1,
    }


def test_kalos_has_memory(write):
    rows = ({}, {"mem_per_pod_GB": "", "duration": 70})
    workload = load_trace(write(*rows, columns=(*COLUMNS, *KALOS_COLUMNS)))
    np.testing.assert_array_equal(workload.memory_mib, [2 * 1000 * 1024, 0])
    assert workload.provenance["cluster"] == "kalos"
    assert workload.provenance["duration_is_not_the_run_time"] == 1
    np.testing.assert_array_equal(workload.run, [60, 60])


def test_jobs_without_gpus_can_be_kept(write):
    rows = ({}, {"gpu_num": 0, "cpu_num": 0}, {"gpu_num": 0, "cpu_num": 0, "mem_per_pod_GB": 0})
    columns = (*COLUMNS, *KALOS_COLUMNS)
    workload = load_trace(write(*rows, columns=columns), cpu_jobs="keep")
    assert workload.gpus.tolist() == [16, 0]
    assert workload.memory_mib[1] > 0
    assert workload.provenance["cpu_jobs"] == 1
    assert workload.provenance["dropped"] == {"no GPUs, CPUs or memory": 1}


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    provenance = load_trace(
        write(
            {},
            {"state": "CANCELLED", "start_time": "", "end_time": ""},
            {"state": "FAILED", "start_time": ""},
            {"state": "RUNNING", "end_time": ""},
            {"gpu_num": 0},
            {"end_time": "2023-05-17 11:00:10+00:00"},
        )
    ).provenance
    assert provenance["dropped"] == {
        "cancelled before start": 1,
        "never started": 1,
        "not finished when the trace ends": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 1,
    }


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"submit_time": "2023-05-17 11:00:00"}, "column 'submit_time' holds '2023-05-17 11:00"),
        ({"submit_time": ""}, "column 'submit_time' holds nothing"),
        ({"gpu_num": "many"}, "column 'gpu_num' holds 'many'"),
        ({"duration": "x"}, "column 'duration' holds 'x'"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    path = write({}, row)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what.startswith(what)
    assert caught.value.where.endswith("trace.csv, line 3")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_publishers_examples():
    seren = load_trace(SAMPLES / "trace_seren.csv")
    np.testing.assert_array_equal(seren.submit, [0, 336])
    np.testing.assert_array_equal(seren.run, [117, 2_693])
    assert seren.provenance["time_zone"] == "UTC+08:00"
    assert seren.provenance["origin_unix_time"] == 1677601102
    assert seren.provenance["duration_is_not_the_run_time"] == 0
    kalos = load_trace(SAMPLES / "trace_kalos.csv")
    np.testing.assert_array_equal(kalos.run, [8, 70])
    np.testing.assert_array_equal(kalos.gpus, [64, 64])
    np.testing.assert_array_equal(kalos.memory_mib, [8_192_000, 8_192_000])
    assert kalos.provenance["duration_is_not_the_run_time"] == 2
