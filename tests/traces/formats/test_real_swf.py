"""Real SWF files, where they are at hand: counts and statistics their README gives."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.model.cluster import Cluster
from berthline.traces.load import load_trace
from berthline.traces.offered_load import offered_load

SWF = SHARED_TRACES / "swf"

pytestmark = pytest.mark.skipif(not SWF.is_dir(), reason="shared trace files are not here")

DAY = 86_400

# name: rows, dropped, estimates, over estimate, days, processors, median, mean, p99, load
EXPECTED = {
    "HPC2N-2002-2.2-cln": (202_871, 0, 202_871, 14_817, 1264, 240, 2873, 17_024, 252_333, 0.60),
    "CTC-SP2-1996-3.1-cln": (77_222, 17, 77_216, 7_174, 339, 338, 1115, 11_280, 64_841, 0.84),
    "NASA-iPSC-1993-3.1-cln": (18_239, 173, 0, 0, 92, 128, 88, 772, 10_933, 0.47),
    "lublin_256": (10_000, 0, 0, 0, 89, 256, 137, 4_863, 36_138, 1.06),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_statistics_are_those_of_the_readme(name):
    rows, dropped, estimates, over, days, processors, median, mean, p99, load = EXPECTED[name]
    workload = load_trace(SWF / f"{name}.swf.gz")
    provenance = workload.provenance
    assert workload.name == name
    assert provenance["rows"] == rows
    assert provenance["dropped"] == ({"run time 0 or unknown": dropped} if dropped else {})
    assert len(workload) == provenance["used"] == rows - dropped
    assert provenance["max_procs"] == processors
    assert provenance["extra_fields"] == 0
    # The README counts estimates over all rows, and the rows dropped have one each.
    assert int(np.isfinite(workload.estimate).sum()) == max(estimates - dropped, 0)
    assert int((workload.run > workload.estimate).sum()) == over
    assert int(workload.submit[-1] // DAY) == days
    assert round(np.median(workload.run)) == median
    assert round(workload.run.mean()) == mean
    assert round(np.percentile(workload.run, 99)) == p99
    cluster = Cluster.uniform(nodes=1, gpus_per_node=processors)
    assert round(offered_load(workload, cluster), 2) == load


def test_estimates_exceed_run_times_as_the_readme_says():
    for name, ratio in (("HPC2N-2002-2.2-cln", 2.1), ("CTC-SP2-1996-3.1-cln", 3.7)):
        workload = load_trace(SWF / f"{name}.swf.gz")
        assert round(float(np.nanmedian(workload.estimate / workload.run)), 1) == ratio


def test_origin_status_and_users_of_hpc2n():
    workload = load_trace(SWF / "HPC2N-2002-2.2-cln.swf.gz")
    assert workload.provenance["origin_unix_time"] == 1_027_839_845 + 342_072
    assert workload.provenance["time_zone"] == "Europe/Stockholm"
    assert workload.provenance["status"] == {"unknown": 878, "completed": 201_993}
    assert len(workload.user_names) == 257
    assert workload.names is not None
    assert workload.names[:3].tolist() == ["11", "12", "13"]


@pytest.mark.parametrize("name", ["NASA-iPSC-1993-3.1-cln", "lublin_256"])
def test_columns_equal_a_plain_reading_line_by_line(name):
    path = SWF / f"{name}.swf.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    rows = [line.split() for line in lines if not line.startswith(";")]
    rows = [row for row in rows if int(row[3]) > 0]
    workload = load_trace(path)
    assert workload.names is not None
    assert workload.names.tolist() == [row[0] for row in rows]
    first = int(rows[0][1])
    np.testing.assert_array_equal(workload.submit, [int(row[1]) - first for row in rows])
    np.testing.assert_array_equal(workload.run, [int(row[3]) for row in rows])
    np.testing.assert_array_equal(workload.gpus, [int(row[4]) for row in rows])


@pytest.mark.bench
def test_two_hundred_thousand_rows_load_in_well_under_two_seconds():
    start = time.process_time()
    load_trace(SWF / "HPC2N-2002-2.2-cln.swf.gz")
    assert time.process_time() - start < 1.5
