"""RLTune's job lists: both layouts, comments, codes, and the shared samples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples/rltune"


def row(
    name="j", submit=0, run=60, gpus=1, estimate=-1, user=-1, vc=-1, gpu_type=-1, status=1, more=()
):
    cells = [name, submit, -1, run, gpus, -1, -1, -1, estimate, 29.3, status, user, -1, -1, 0, -1]
    return ",".join(map(str, [*cells, -1, *more, vc, gpu_type]))


@pytest.fixture
def write(tmp_path):
    def write_file(*lines):
        path = tmp_path / "list.csv"
        path.write_text("\n".join(lines) + "\n")
        return path

    return write_file


def test_nineteen_columns(write):
    path = write(
        "; a comment",
        row("a", submit=9, run=60, gpus=8, estimate=90, user=7, vc=3, gpu_type=3),
        ";another",
        row("b", submit=5, gpu_type=0),
        row("c", submit=6, gpu_type=3, vc=1, user=7),
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "rltune"
    assert workload.names.tolist() == ["b", "c", "a"]
    assert workload.submit.tolist() == [0, 1, 4]
    assert workload.gpus.tolist() == [1, 1, 8]
    np.testing.assert_array_equal(workload.estimate, [np.nan, np.nan, 90])
    assert [workload.user_names[code] for code in workload.user] == ["unknown", "7", "7"]
    assert workload.pool.tolist() == [-1, 1, 0]
    assert workload.pool_names == ("3", "1")
    assert workload.gpu_type_sets == ("V100-16", "T4")
    assert workload.gpu_types.tolist() == [1, 0, 0]
    assert "19 columns: virtual cluster in column 18" in workload.provenance["layout"]


def test_twenty_columns_have_one_more_before_the_last_two(write):
    workload = load_trace(write(row(vc=2, gpu_type=4, more=(5,))))
    assert workload.pool_names == ("2",)
    assert workload.gpu_type_sets == ("V100-32",)
    assert "20 columns: virtual cluster in column 19" in workload.provenance["layout"]


def test_no_job_may_have_a_type_or_pool(write):
    workload = load_trace(write(row(), row("k", submit=3)))
    assert workload.gpu_types.tolist() == [-1, -1]
    assert workload.pool.tolist() == [-1, -1]


def test_rows_left_out_are_counted(write):
    workload = load_trace(
        write(row(), row(run=-1), row(run=0), row(gpus=0), row(gpus=-1), row(submit=-1))
    )
    assert workload.provenance["rows"] == 6
    assert workload.provenance["dropped"] == {
        "submit time unknown": 1,
        "run time 0 or unknown": 2,
        "no GPUs": 2,
    }


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (row(gpu_type=5), "'GPU type' holds '5'"),
        (row(gpus=1.5), "'GPUs' holds '1.5'"),
        (row(more=(1,)), "20 cells"),
        (row().rpartition(",")[0], "the line has 18 cells"),
    ],
)
def test_a_line_that_makes_no_sense_has_its_number(write, line, what):
    with pytest.raises(TraceError, match=what) as caught:
        load_trace(write("; first", row(), row(), line), "rltune")
    assert "line 4" in caught.value.where


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_synthetic_sample():
    workload = load_trace(SAMPLES / "synthetic_trace.csv")
    assert len(workload) == 960
    sizes = dict(zip(*np.unique(workload.gpus, return_counts=True), strict=True))
    assert sizes == {1: 441, 2: 144, 8: 124, 6: 105, 4: 88, 16: 42, 10: 13, 3: 2, 7: 1}
    assert round(workload.run.mean()) == 4094
    assert set(workload.gpu_type_sets) == {"T4", "MISC"}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_quoted_rows():
    workload = load_trace(SAMPLES / "alibaba_rows.csv")
    assert workload.names[0] == "ba64aa2f0feff18428923e92"
    assert workload.run.tolist() == [5942, 2612, 149]
    assert workload.gpu_type_sets == ("MISC",)
