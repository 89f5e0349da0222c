"""Slurm's job table: numbers for states and resources, nulls, and MIT Supercloud's sample."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

REAL = SHARED_TRACES / "mit_supercloud_slurm/slurm_log_sample_2021-01-01_2021-02-14.csv.gz"
DEFAULTS = {
    "id_job": "16051200000000.0",
    "id_user": "42770100000000.0",
    "nodelist": "['r1-n1', 'r1-n2']",
    "mem_req": "9.22337e+18",
    "partition": "normal",
    "state": 3,
    "timelimit": 1440,
    "time_submit": 1609535912,
    "time_start": 1609535922,
    "time_end": 1609536222,
    "tres_alloc": "1=4,2=34000,4=1,5=4,1002=1",
    "tres_req": "1=4,2=34000,4=1,5=4,1002=1",
}


@pytest.fixture
def write(tmp_path):
    def write_file(*rows, separator=","):
        cells = [[str((DEFAULTS | row)[name]) for name in DEFAULTS] for row in rows]
        quoted = [[f'"{cell}"' if "," in cell else cell for cell in line] for line in cells]
        path = tmp_path / "slurm-log.csv"
        path.write_text("\n".join(separator.join(line) for line in [list(DEFAULTS), *quoted]))
        return path

    return write_file


@pytest.mark.parametrize("separator", [",", "\t"])
def test_columns_come_from_the_right_fields(write, separator):
    other = {
        "id_job": "77",
        "id_user": r"\N",
        "partition": r"\N",
        "timelimit": 4294967295,
        "time_submit": 1609535900,
        "tres_alloc": r"\N",
        "tres_req": "1=8,1001=2,1002=2",
    }
    workload = load_trace(write({}, other, separator=separator))
    np.testing.assert_array_equal(workload.submit, [0, 12])
    np.testing.assert_array_equal(workload.run, [300, 300])
    np.testing.assert_array_equal(workload.gpus, [2, 1])
    np.testing.assert_array_equal(workload.estimate, [np.nan, 86_400])
    np.testing.assert_array_equal(workload.cpus, [8, 4])
    np.testing.assert_array_equal(workload.memory_mib, [0, 34_000])
    assert [workload.user_names[code] for code in workload.user] == ["unknown", "42770100000000"]
    np.testing.assert_array_equal(workload.pool, [-1, 0])
    assert workload.pool_names == ("normal",)
    assert workload.names.tolist() == ["77", "16051200000000"]
    assert dict(workload.provenance) == {
        "format": "slurm-database",
        "path": "slurm-log.csv",
        "rows": 2,
        "used": 2,
        "dropped": {},
        "origin_unix_time": 1609535900.0,
        "time_zone": None,
        "cpu_jobs": 0,
        "status": {"COMPLETED": 2},
        "gpu_resources": {"1001": 1, "1002": 2},
        "repeated_ids": 0,
    }


def test_every_row_left_out_is_counted_once_under_its_first_reason(write):
    provenance = load_trace(
        write(
            {},
            {"state": 4},
            {"state": 4, "time_start": 0},
            {"state": 0, "time_start": 0, "time_end": 0},
            {"state": 1, "time_end": 0},
            {"time_submit": r"\N"},
            {"tres_alloc": "1=4,10011=3,21002=1", "state": 11},
            {"time_end": 1609535922, "state": 99},
        )
    ).provenance
    assert provenance["used"] == 2
    assert provenance["repeated_ids"] == 1
    assert provenance["dropped"] == {
        "cancelled before start": 1,
        "never started": 1,
        "not finished when the trace ends": 1,
        "submit time unknown": 1,
        "no GPUs": 1,
        "run time 0 or unknown": 1,
    }
    assert provenance["status"] == {
        "COMPLETED": 2,
        "CANCELLED": 2,
        "PENDING": 1,
        "RUNNING": 1,
        "OUT_OF_MEMORY": 1,
        "state 99": 1,
    }


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"time_submit": "2021-01-01"}, "column 'time_submit' holds '2021-01-01'"),
        ({"time_end": 10**18}, "column 'time_end' holds '1000000000000000000'"),
        ({"state": "COMPLETED"}, "column 'state' holds 'COMPLETED'"),
        ({"timelimit": "1 day"}, "column 'timelimit' holds '1 day'"),
        ({"tres_alloc": "1002=99999999999"}, "column 'tres_alloc' holds '1002=99999999999'"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    path = write({}, row)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what == what
    assert caught.value.where.endswith("slurm-log.csv, line 3")


@pytest.mark.skipif(not REAL.is_file(), reason="shared trace files are not here")
def test_the_real_sample_is_as_the_readme_says():
    workload = load_trace(REAL)
    provenance = workload.provenance
    assert provenance["format"] == "slurm-database"
    assert provenance["rows"] == 4_113
    assert provenance["dropped"] == {"no GPUs": 3_943}
    assert len(workload) == provenance["used"] == 170
    assert provenance["status"] == {
        "COMPLETED": 2_308,
        "CANCELLED": 945,
        "TIMEOUT": 432,
        "FAILED": 408,
        "NODE_FAIL": 12,
        "OUT_OF_MEMORY": 8,
    }
    assert provenance["gpu_resources"] == {"1002": 170}
    everything = load_trace(REAL, cpu_jobs="keep")
    assert (everything.gpus == 0).sum() == everything.provenance["cpu_jobs"] == 3_943
    assert everything.provenance["dropped"] == {}
    assert len(everything) == 4_113
    assert Counter(workload.gpus.tolist()) == {1: 145, 2: 24, 8: 1}
    assert workload.run.min() >= 300
    assert 0 < np.isnan(workload.estimate).sum() < 170
    assert np.nanmin(workload.estimate) >= 60


def test_lists_of_nodes_are_read_in_both_notations(write):
    rows = [{}, {"nodelist": "gpu[01-02]"}, {"nodelist": r"\N"}, {"nodelist": "None assigned"}]
    history = load_trace(write(*rows)).history
    assert history.node_lists == ("r1-n1,r1-n2", "gpu[01-02]")
    assert history.nodes.tolist() == [0, 1, -1, -1]
