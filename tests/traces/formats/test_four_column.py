"""Tables of four columns: which trace they are of, and the two real files."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES
from tests.traces.demand import concurrent_demand

from berthline.errors import TraceError
from berthline.traces.load import load_trace

TRACES = SHARED_TRACES
VENUS = TRACES / "helios_venus/venus_gpu_jobs_2020-03-18_2020-08-31.csv.gz"
PAI = TRACES / "alibaba_pai_v2020/pai_gpu_tasks_sample_day00-41.csv.gz"
DAY = 86_400


@pytest.fixture
def write(tmp_path):
    def write_file(*rows):
        path = tmp_path / "jobs.csv"
        path.write_text("job_id,arrival_s,service_sec,gpu_count\n" + "\n".join(rows))
        return path

    return write_file


def test_columns_come_from_the_right_fields(write):
    workload = load_trace(write("b,50.0,7.5,8", "a,20.0,172800.0,1", "c,60,0,1", "d,60,1,0"))
    np.testing.assert_array_equal(workload.submit, [0, 30])
    np.testing.assert_array_equal(workload.run, [172_800, 7.5])
    np.testing.assert_array_equal(workload.gpus, [1, 8])
    assert workload.names.tolist() == ["a", "b"]
    assert dict(workload.provenance) == {
        "format": "reduced-csv",
        "path": "jobs.csv",
        "rows": 4,
        "used": 2,
        "dropped": {"run time 0 or unknown": 1, "no GPUs": 1},
        "origin_unix_time": None,
        "time_zone": None,
        "source": None,
    }


@pytest.mark.parametrize(
    ("ids", "source", "origin"),
    [
        (("12#0", "15#7"), "helios", None),
        (("363167#0", "15#7"), "helios", 1584475299.0),
        (("ali-e2-worker#3", "ali-5d-ps#4"), "alibaba-pai-v2020", None),
        (("12#0", "ali-e2-worker#3"), None, None),
        (("1", "2"), None, None),
    ],
)
def test_the_ids_tell_the_trace(write, ids, source, origin):
    provenance = load_trace(write(*(f"{name},0.0,172800.0,1" for name in ids))).provenance
    assert provenance["source"] == source
    assert provenance["origin_unix_time"] == origin
    assert provenance.get("cut_off") == (2 if source else None)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("a,x,1,1", "column 'arrival_s' holds 'x'"),
        ("a,1,nan,1", "column 'service_sec' holds 'nan'"),
        ("a,1,1,10000000000", "column 'gpu_count' holds '10000000000'"),
        ("a,1,1", "the line has 3 cells"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(write, row, what):
    path = write("a,1,1,1", row)
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what == what
    assert caught.value.where.endswith("jobs.csv, line 3")


def quantiles(run):
    return np.median(run), run.mean(), np.percentile(run, 90), np.percentile(run, 99)


@pytest.mark.skipif(not VENUS.is_file(), reason="shared trace files are not here")
def test_venus_has_the_statistics_of_the_readme():
    workload = load_trace(VENUS)
    provenance = workload.provenance
    assert (provenance["format"], provenance["source"]) == ("reduced-csv", "helios")
    assert len(workload) == provenance["rows"] == 99_707
    assert provenance["cut_off"] == 1_907
    assert [round(value) for value in quantiles(workload.run)] == [205, 9_311, 20_676, 172_800]
    assert Counter(workload.gpus.tolist()).most_common(6) == [
        (1, 50_278),
        (8, 26_041),
        (4, 7_378),
        (2, 5_377),
        (16, 4_673),
        (32, 2_420),
    ]
    assert workload.gpus.max() == 200
    assert round(workload.submit[-1] / DAY, 1) == 166.8
    april = 1585670400.0 - provenance["origin_unix_time"]  # 2020-04-01 in China
    late = workload.submit >= april
    assert (~late).sum() == 89
    work = np.dot(workload.run[late], workload.gpus[late])
    assert round(work / (1_064 * np.ptp(workload.submit[late])), 2) == 0.50
    mean, p95, most = concurrent_demand(workload, 14 * DAY)
    assert (round(mean), p95, most) == (535, 765, 1_214)


@pytest.mark.skipif(not PAI.is_file(), reason="shared trace files are not here")
def test_the_pai_sample_has_the_statistics_of_the_readme():
    workload = load_trace(PAI)
    provenance = workload.provenance
    assert (provenance["format"], provenance["source"]) == ("reduced-csv", "alibaba-pai-v2020")
    assert len(workload) == provenance["rows"] == 35_716
    assert provenance["origin_unix_time"] is None
    assert np.median(workload.run) == 617.5
    assert [round(value) for value in quantiles(workload.run)[1:]] == [5_277, 13_044, 67_486]
    assert Counter(workload.gpus.tolist()).most_common(4) == [
        (1, 27_440),
        (10, 1_337),
        (2, 1_096),
        (20, 795),
    ]
    assert workload.gpus.max() == 400
    assert round(workload.submit[-1] / DAY, 1) == 41.8
    assert round(workload.work / (512 * workload.submit[-1]), 2) == 0.81
    mean, p95, _ = concurrent_demand(workload, 2 * DAY, 42 * DAY)
    assert (round(mean), p95) == (431, 763)
