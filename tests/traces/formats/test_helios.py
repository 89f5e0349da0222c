"""Helios' native log: columns, jobs that never started, and the publisher's examples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.formats.helios import COLUMNS
from berthline.traces.load import load_trace

SAMPLE = SHARED_TRACES / "format_samples/helios/cluster_log.csv"
DEFAULTS = {
    "job_id": "1",
    "user": "u1",
    "vc": "vc1",
    "gpu_num": 1,
    "cpu_num": 4,
    "node_num": 1,
    "state": "COMPLETED",
    "submit_time": "2020-06-09 18:00:00",
    "start_time": "2020-06-09 18:10:00",
    "end_time": "2020-06-09 18:20:00",
    "duration": 600,
    "queue": 600,
}


@pytest.fixture
def write(tmp_path):
    def write_file(*rows):
        lines = [",".join(str((DEFAULTS | row)[name]) for name in COLUMNS) for row in rows]
        path = tmp_path / "cluster_log.csv"
        path.write_text("\n".join([",".join(COLUMNS), *lines]))
        return path

    return write_file


def test_columns_come_from_the_right_fields(write):
    workload = load_trace(
        write(
            {},
            {
                "job_id": "2",
                "user": "u2",
                "vc": "vc2",
                "gpu_num": 16,
                "cpu_num": 64,
                "submit_time": "2020-06-09 17:59:00",
                "duration": 1234,
            },
        )
    )
    np.testing.assert_array_equal(workload.submit, [0, 60])
    np.testing.assert_array_equal(workload.run, [1234, 600])
    np.testing.assert_array_equal(workload.gpus, [16, 1])
    np.testing.assert_array_equal(workload.cpus, [64, 4])
    assert [workload.user_names[code] for code in workload.user] == ["u2", "u1"]
    assert [workload.pool_names[code] for code in workload.pool] == ["vc2", "vc1"]
    assert workload.reference_type == "V100-32"
    assert workload.names.tolist() == ["2", "1"]
    assert dict(workload.provenance) == {
        "format": "helios",
        "path": "cluster_log.csv",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 1591696740.0,
        "time_zone": "Asia/Shanghai",
        "cpu_jobs": 0,
        "status": {"COMPLETED": 2},
    }


def test_jobs_without_gpus_can_be_kept(write):
    workload = load_trace(
        write({}, {"gpu_num": 0, "cpu_num": 3}, {"gpu_num": 0, "cpu_num": 0}), cpu_jobs="keep"
    )
    assert sorted(workload.gpus.tolist()) == [0, 1]
    assert workload.provenance["cpu_jobs"] == 1
    assert workload.provenance["dropped"] == {"no GPUs, CPUs or memory": 1}


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    provenance = load_trace(
        write(
            {},
            {"state": "CANCELLED"},  # while it ran
            {"state": "CANCELLED", "start_time": "None", "gpu_num": 0},
            {"state": "FAILED", "start_time": ""},
            {"gpu_num": 0, "duration": 0},
            {"duration": 0},
            {"duration": ""},
        )
    ).provenance
    assert provenance["used"] == 2
    assert provenance["dropped"] == {
        "cancelled before start": 1,
        "never started": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 2,
    }
    assert provenance["status"] == {"COMPLETED": 4, "CANCELLED": 2, "FAILED": 1}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"submit_time": "None"}, "column 'submit_time' holds 'None'"),
        ({"start_time": "2020-06-09"}, "column 'start_time' holds '2020-06-09'"),
        ({"duration": "1h"}, "column 'duration' holds '1h'"),
        ({"gpu_num": 0.5}, "column 'gpu_num' holds '0.5'"),
        ({"gpu_num": ""}, "column 'gpu_num' holds nothing"),
        ({"job_id": "x" * 5_000_000}, "column 'job_id' holds 'xxx"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    path = write({}, row)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what.startswith(what)
    assert len(str(caught.value)) < 500
    assert caught.value.where.endswith("cluster_log.csv, line 3")


@pytest.mark.skipif(not SAMPLE.is_file(), reason="shared trace files are not here")
def test_the_publishers_examples():
    workload = load_trace(SAMPLE)
    np.testing.assert_array_equal(workload.submit, [0, 26, 27])
    np.testing.assert_array_equal(workload.run, [36_848, 249, 675_233])
    np.testing.assert_array_equal(workload.gpus, [1, 4, 1])
    np.testing.assert_array_equal(workload.cpus, [1, 16, 1])
    assert workload.pool_names == ("vcJkd", "vchbv", "vcpDC")
    assert workload.provenance["origin_unix_time"] == 1591699261
