"""Alibaba spot jobs, reduced to four columns: columns, reasons, and the shared batches."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SPOT = SHARED_TRACES / "alibaba_spot_v2026"


@pytest.fixture
def write(tmp_path):
    def write_rows(*rows, header="arrival_time,runtime,gpus,priority"):
        path = tmp_path / "batch.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write_rows


def test_columns_and_reasons(write):
    path = write("0.0,100.0,1,0.5", "50.0,10.0,8,5.0", "60.0,10.0,0,0.5", "70.0,0.0,2,1.0")
    workload = load_trace(path)
    np.testing.assert_array_equal(workload.submit, [0, 50])
    np.testing.assert_array_equal(workload.run, [100, 10])
    np.testing.assert_array_equal(workload.gpus, [1, 8])
    np.testing.assert_array_equal(workload.priority, [0.5, 5])
    assert workload.names is None
    assert workload.user_names == ("unknown",)
    provenance = workload.provenance
    assert provenance["format"] == "alibaba-spot-reduced"
    assert provenance["dropped"] == {"no GPUs": 1, "run time 0 or unknown": 1}
    assert provenance["already_running"] == 1
    assert "worker_num" in provenance["lost"]


def test_a_later_part_is_rebased_and_says_from_where(write):
    workload = load_trace(write("3857380.0,450.0,4,2.5", "3857390.0,1.0,1,0.5"))
    np.testing.assert_array_equal(workload.submit, [0, 10])
    assert workload.provenance["origin_trace_seconds"] == 3_857_380
    assert workload.provenance["already_running"] == 0


def test_a_wrong_value_is_told_with_its_line(write):
    with pytest.raises(TraceError) as caught:
        load_trace(write("0.0,100.0,1,0.5", "0.0,long,1,0.5"))
    assert "column 'runtime' holds 'long'" in caught.value.what
    assert "line 3" in caught.value.where


# jobs, median, mean and p99 (in millions) of all rows; rows without GPUs; rows at second 0
EXPECTED = {
    1: (116_717, 1_190, 344_985, 9.1, 2_334, 3_588),
    2: (116_717, 1_126, 172_783, 5.6, 21_787, 0),
    3: (116_717, 564, 120_921, 4.5, 15_537, 0),
}


@pytest.mark.skipif(not SPOT.is_dir(), reason="shared trace files are not here")
class TestSharedBatches:
    @staticmethod
    def rows(batch):
        packed = (SPOT / f"jobs_reduced_batch_{batch}.csv.gz").read_bytes()
        lines = gzip.decompress(packed).decode().splitlines()[1:]
        return np.array([[float(cell) for cell in line.split(",")] for line in lines])

    @pytest.mark.parametrize("batch", EXPECTED)
    def test_statistics_are_those_of_the_readme(self, batch):
        # The README counts all rows; the workload holds those of them that have a GPU.
        jobs, median, mean, p99, without_gpus, at_zero = EXPECTED[batch]
        rows = self.rows(batch)
        arrival, run, gpus, priority = rows.T
        assert len(rows) == jobs
        assert (np.median(run), round(run.mean())) == (median, mean)
        assert round(np.percentile(run, 99) / 1e6, 1) == p99
        assert int((arrival == 0).sum()) == at_zero

        workload = load_trace(SPOT / f"jobs_reduced_batch_{batch}.csv.gz")
        provenance = workload.provenance
        assert provenance["rows"] == jobs
        assert provenance["dropped"] == {"no GPUs": without_gpus}
        assert provenance["already_running"] == int(((arrival == 0) & (gpus > 0)).sum())
        used = gpus > 0
        order = np.argsort(arrival[used], kind="stable")
        np.testing.assert_array_equal(workload.submit, (arrival[used] - arrival[used].min())[order])
        np.testing.assert_array_equal(workload.run, run[used][order])
        np.testing.assert_array_equal(workload.gpus, gpus[used][order])
        np.testing.assert_array_equal(workload.priority, priority[used][order])

    def test_totals_of_all_batches_are_those_of_the_readme(self):
        rows = np.concatenate([self.rows(batch) for batch in EXPECTED])
        arrival, run, gpus, _ = rows.T
        assert len(rows) == 350_151
        assert int((gpus == 0).sum()) == sum(expected[4] for expected in EXPECTED.values())
        assert int((gpus == 0).sum()) == 39_658
        assert int(((arrival == 0) & (run == 15_897_599)).sum()) == 348
        assert round((arrival.max() - arrival.min()) / 86_400, 1) == 118.7
