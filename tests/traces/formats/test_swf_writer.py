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
        "; ReferenceType: V100-32",
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
    }
    text = (tmp_path / "x.swf").read_text()
    assert "; MaxJobs: 2\n" in text
    assert "; Note: lost in conversion: parts of GPUs (now whole ones) of 1 jobs\n" in text
    again = load_trace(tmp_path / "x.swf")
    np.testing.assert_array_equal(again.gpus, [1, 2])
    np.testing.assert_array_equal(again.run, [5, 7])
    assert again.provenance["dropped"] == {}
    assert again.reference_type == "P100"


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


FOREIGN = """\
; Version: 2.2
; Computer: Model T
; Conversion: Dror
; MaxNodes: 50
; MaxProcs: 100
; Note: a note
; Queue: 3 long
; Queue: 7 short
7 0 20 100 4 55 1024 8 200 2048 1 7 2 9 3 -1 -1 -1
8 10 -1 50 2 -1 -1 2 -1 -1 5 7 3 9 7 -1 7 60
9 30 5 70 1 0.5 -1 1 90 -1 0 8 2 -1 3 -1 -1 -1
"""


def test_every_field_of_an_swf_file_and_its_header_stay(tmp_path):
    (tmp_path / "a.swf").write_text(FOREIGN)
    workload = load_trace(tmp_path / "a.swf")
    text, lost = swf_text(workload, max_procs=100)
    assert lost == {}
    lines = text.decode().splitlines()
    given = FOREIGN.splitlines()
    rows = [[float(word) for word in line.split()] for line in lines if line[0] != ";"]
    assert rows == [[float(word) for word in line.split()] for line in given if line[0] != ";"]
    for line in given[1:8]:
        assert line in lines
    assert workload.pool_names == ("long", "short")
    (tmp_path / "b.swf").write_bytes(text)
    again = load_trace(tmp_path / "b.swf")
    assert again.pool_names == ("long", "short")
    assert swf_text(again, max_procs=100)[0].splitlines()[-3:] == text.splitlines()[-3:]


def test_an_slurm_log_keeps_what_swf_has(tmp_path):
    (tmp_path / "a.sacct").write_text(
        "JobID|User|Account|Partition|State|Submit|Start|End|ElapsedRaw|AllocTRES|NodeList\n"
        "1|u|lab|gpu|COMPLETED|2024-01-01T00:00:00|2024-01-01T00:00:30|2024-01-01T00:10:30|600|"
        "gres/gpu:a100=1,gres/gpu=1|n1\n"
        "2|u|lab|cpu|TIMEOUT|2024-01-01T00:01:00|2024-01-01T00:01:09|2024-01-01T00:11:09|600|"
        "gres/gpu=1|n1\n"
    )
    workload = load_trace(tmp_path / "a.sacct")
    text, lost = swf_text(workload)
    first, second = (line.split() for line in text.decode().splitlines()[-2:])
    assert (first[2], first[10], first[12], first[14]) == ("30", "1", "1", "1")
    assert (second[2], second[10], second[12], second[14]) == ("9", "0", "1", "2")
    assert lost == {
        "names of users": 2,
        "GPU types that run times are on": 2,
        "lists of nodes": 2,
        "GPU types that jobs got": 1,
        "names of groups": 2,
        "details of statuses": 2,
    }
    (tmp_path / "b.swf").write_bytes(text)
    again = load_trace(tmp_path / "b.swf")
    assert again.pool_names == ("gpu", "cpu")
    np.testing.assert_array_equal(again.history.start, workload.history.start)
