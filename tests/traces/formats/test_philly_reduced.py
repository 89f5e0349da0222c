"""The reduced Philly table: columns, repeated rows, and the real file."""

from __future__ import annotations

import datetime as dt
from collections import Counter

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES
from tests.traces.demand import concurrent_demand

from berthline.errors import TraceError
from berthline.traces.load import load_trace

REAL = SHARED_TRACES / "philly/philly_2017-09-04_2017-11-14.csv.gz"
HEADER = "timestamp,duration,num_gpus,gpu_time,cluster\n"


@pytest.fixture
def write(tmp_path):
    def write_file(*rows):
        path = tmp_path / "philly.csv"
        path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
        return path

    return write_file


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert path.name in caught.value.where
    return caught.value


def test_columns_come_from_the_right_fields(write):
    workload = load_trace(
        write(
            "2017-10-09 07:01:55,66.0,1,66.0,11cb48",
            "2017-10-09 07:00:00,10.5,4,42.0,6214e9",
            "2017-10-09 07:01:55,66.0,1,66.0,11cb48",
            "2017-10-09 07:02:00,0,1,0,x",
            "2017-10-09 07:02:00,5,0,0,x",
        )
    )
    assert workload.name == "philly"
    np.testing.assert_array_equal(workload.submit, [0, 115, 115])
    np.testing.assert_array_equal(workload.run, [10.5, 66, 66])
    np.testing.assert_array_equal(workload.gpus, [4, 1, 1])
    assert [workload.pool_names[code] for code in workload.pool] == ["6214e9", "11cb48", "11cb48"]
    assert workload.user_names == ("unknown",)
    assert workload.reference_type == "P100"
    assert workload.names is None
    assert dict(workload.provenance) == {
        "format": "philly-reduced",
        "path": "philly.csv",
        "rows": 5,
        "used": 3,
        "dropped": {"run time 0 or unknown": 1, "no GPUs": 1},
        "origin_unix_time": 1507557600.0,
        "time_zone": "America/Los_Angeles",
        "repeated_rows": 1,
    }


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("9 Oct 2017,66,1,66,a", "column 'timestamp' holds '9 Oct 2017'"),
        ("2017-10-09 07:01:55,soon,1,66,a", "column 'duration' holds 'soon'"),
        ("2017-10-09 07:01:55,66,1.5,66,a", "column 'num_gpus' holds '1.5'"),
        ("2017-10-09 07:01:55,66,-1,66,a", "column 'num_gpus' holds '-1'"),
        ("2017-10-09 07:01:55,66", "the line has 2 cells"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    error = refused(write("2017-10-09 07:01:55,66.0,1,66.0,11cb48", row))
    assert error.what == what
    assert error.where.endswith("line 3")


@pytest.mark.skipif(not REAL.is_file(), reason="shared trace files are not here")
def test_statistics_are_those_of_the_readme():
    workload = load_trace(REAL)
    assert workload.provenance["format"] == "philly-reduced"
    assert len(workload) == workload.provenance["rows"] == 64_483
    assert workload.provenance["repeated_rows"] == 44
    run = workload.run
    assert (run.min(), run.max()) == (1, 4_628_226)
    quantiles = np.median(run), run.mean(), np.percentile(run, 90), np.percentile(run, 99)
    assert [round(value) for value in quantiles] == [1_278, 13_298, 10_715, 266_626]
    assert Counter(workload.gpus.tolist()).most_common(6) == [
        (1, 60_522),
        (4, 1_461),
        (2, 1_217),
        (8, 1_136),
        (16, 106),
        (32, 30),
    ]
    assert round(workload.work / 3600) == 774_589
    assert round(workload.submit[-1] / 86_400, 1) == 71.6
    october = dt.datetime(2017, 10, 1, 7, tzinfo=dt.UTC).timestamp()
    busy = concurrent_demand(workload, october - workload.provenance["origin_unix_time"])
    assert (round(busy[0]), busy[1], busy[2]) == (580, 786, 1_243)
