"""SWF out and in again: what stays, and what is said to be lost."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.model.workload import Workload
from berthline.traces.formats.swf_writer import swf_text, write_swf
from berthline.traces.load import load_trace

SWF = SHARED_TRACES / "swf"


def test_a_row_and_the_header():
    workload = Workload.from_columns(
        submit=[10, 10.4],
        run=[60, 0.2],
        gpus=[4, 1],
        estimate=[90.5, np.nan],
        cpus=[8, 0],
        memory_mib=[10, 0],
        priority=[1, 0],
        deadline=[500, np.inf],
        user=[1, 0],
        user_names=("bob", "ann"),
        pool=[0, -1],
        pool_names=("v\n1",),
        gpu_types=[-1, 0],
        gpu_type_sets=("A100|V100",),
        names=["x", "y"],
        name="mine",
        provenance={"origin_unix_time": 1_700_000_000.0, "time_zone": "Europe/Berlin"},
    )
    text, lost = swf_text(workload, max_procs=64)
    assert text.decode().splitlines() == [
        "; Version: 2.2",
        "; Conversion: Berthline, from mine",
        "; MaxJobs: 2",
        "; MaxRecords: 2",
        "; MaxProcs: 64",
        "; UnixStartTime: 1700000000",
        "; TimeZoneString: Europe/Berlin",
        "; Note: lost in conversion: times rounded to whole seconds of 2 jobs",
        "; Note: lost in conversion: names of jobs of 2 jobs",
        "; Note: lost in conversion: names of users of 2 jobs",
        "; Note: lost in conversion: priorities of 1 jobs",
        "; Note: lost in conversion: deadlines of 1 jobs",
        "; Note: lost in conversion: CPUs of 1 jobs",
        "; MaxQueues: 1",
        "; Queue: 1 v 1",
        "; MaxPartitions: 1",
        "; Partition: 1 A100|V100",
        "1 0 -1 60 4 -1 -1 4 91 2560 -1 2 -1 -1 1 -1 -1 -1",
        "2 0 -1 1 1 -1 -1 1 -1 -1 -1 1 -1 -1 -1 1 -1 -1",
    ]
    assert lost == {
        "times rounded to whole seconds": 2,
        "names of jobs": 2,
        "names of users": 2,
        "priorities": 1,
        "deadlines": 1,
        "CPUs": 1,
    }


def test_parts_of_gpus_and_jobs_without_gpus_are_lost(tmp_path):
    workload = Workload.from_columns(
        submit=[0, 1, 2],
        run=[5, 6, 7],
        gpus=[1, 0, 2],
        gpu_milli=[250, 1000, 1000],
        memory_mib=[4, 8, 6],
        reference_type="P100",
    )
    assert write_swf(workload, tmp_path / "x.swf") == {
        "rows of jobs without GPUs": 1,
        "parts of GPUs (now whole ones)": 1,
        "GPU type of run times": 3,
    }
    text = (tmp_path / "x.swf").read_text()
    assert "; MaxJobs: 2\n" in text
    assert "; Note: lost in conversion: parts of GPUs (now whole ones) of 1 jobs\n" in text
    again = load_trace(tmp_path / "x.swf")
    np.testing.assert_array_equal(again.gpus, [1, 2])
    np.testing.assert_array_equal(again.run, [5, 7])
    assert again.provenance["dropped"] == {}


def test_a_workload_without_gpus_is_refused(tmp_path):
    workload = Workload.from_columns(submit=[0], run=[5], gpus=[0], cpus=[4])
    with pytest.raises(TraceError, match="no job has GPUs"):
        write_swf(workload, tmp_path / "x.swf")
    assert not (tmp_path / "x.swf").exists()


def test_what_swf_has_comes_back(tmp_path):
    workload = Workload.from_columns(
        submit=[0, 7, 9],
        run=[5, 6, 7],
        gpus=[1, 2, 3],
        estimate=[9, np.nan, 8],
        user=[1, 0, 1],
        user_names=("unknown", "17"),
        names=["4", "2", "30"],
        provenance={"origin_unix_time": 1_000_000_000.0},
    )
    assert write_swf(workload, tmp_path / "x.swf") == {}
    again = load_trace(tmp_path / "x.swf")
    for name in ("submit", "run", "gpus", "estimate"):
        np.testing.assert_array_equal(getattr(again, name), getattr(workload, name))
    assert again.names.tolist() == ["4", "2", "30"]
    assert [again.user_names[code] for code in again.user] == ["17", "unknown", "17"]
    assert again.provenance["origin_unix_time"] == 1_000_000_000


@pytest.mark.parametrize("names", [["1", "1"], ["01", "2"], ["1", "-2"], ["9" * 30, "1"]])
def test_names_that_are_not_all_different_numbers_are_lost(names):
    workload = Workload.from_columns(submit=[0, 1], run=[1, 1], gpus=[1, 1], names=names)
    text, lost = swf_text(workload)
    assert lost["names of jobs"] == 2
    assert [line.split()[0] for line in text.decode().splitlines()[-2:]] == ["1", "2"]


@pytest.mark.skipif(not SWF.is_dir(), reason="shared trace files are not here")
def test_a_real_log_goes_around(tmp_path):
    workload = load_trace(SWF / "CTC-SP2-1996-3.1-cln.swf.gz")
    assert write_swf(workload, tmp_path / "x.swf", max_procs=338) == {}
    again = load_trace(tmp_path / "x.swf")
    for name in ("submit", "run", "gpus", "estimate"):
        np.testing.assert_array_equal(getattr(again, name), getattr(workload, name))
    assert again.provenance["max_procs"] == 338
    assert again.provenance["origin_unix_time"] == workload.provenance["origin_unix_time"]
    assert again.user_names == workload.user_names
