"""Alibaba DLRM instances: columns, instances cut off by the trace, and the publisher's file."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import ConfigError, TraceError
from berthline.traces.load import load_trace

DLRM = SHARED_TRACES / "alibaba_dlrm_v2025"

HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,"
    "memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,"
    "creation_time,scheduled_time,deletion_time"
)


def row(name, created, scheduled, deleted, role="HN", gpus=1, app="app_0", memory=120.0):
    return (
        f"{name},{role},{app},12,12,{gpus},{gpus},25,25,{memory},120.0,640.0,800.0,8,"
        f"{created},{scheduled},{deleted}"
    )


ROWS = (
    row("i1", "1000.0000000001", 1010, 1510, app="app_7"),
    row("i2", 500, 500, 900, app="app_2", memory=0.5),
    row("i3", 500, 500, 900, role="CN", gpus=0),
    row("i4", "", "", 800),
    row("i5", 600, 600, ""),
    row("i6", "", "", ""),
    row("i7", 700, 700, 700),
)


@pytest.fixture
def write(tmp_path):
    def write_rows(*rows):
        path = tmp_path / "dlrm.csv"
        path.write_text("\n".join([HEADER, *rows]) + "\n")
        return path

    return write_rows


def test_columns_come_from_the_right_cells_and_cut_off_instances_are_dropped(write):
    workload = load_trace(write(*ROWS))
    assert workload.names is not None
    assert workload.names.tolist() == ["i2", "i1"]
    np.testing.assert_array_equal(workload.submit, [0, 500])
    np.testing.assert_array_equal(workload.run, [400, 500])
    np.testing.assert_array_equal(workload.gpus, [1, 1])
    np.testing.assert_array_equal(workload.cpus, [12, 12])
    np.testing.assert_array_equal(workload.memory_mib, [512, 122_880])
    assert [workload.user_names[code] for code in workload.user] == ["app_2", "app_7"]
    provenance = workload.provenance
    assert provenance["rows"] == 7
    assert provenance["dropped"] == {
        "no GPUs": 1,
        "created before the trace begins": 2,
        "not finished when the trace ends": 1,
        "run time 0 or unknown": 1,
    }
    assert provenance["origin_trace_seconds"] == 500
    assert provenance["censored"] == "drop"
    assert "max_instance_per_node" in provenance["not_modelled"]


def test_cut_off_instances_can_be_clipped_to_the_trace(write):
    workload = load_trace(write(*ROWS), censored="clip")
    assert workload.names is not None
    assert workload.names.tolist() == ["i4", "i6", "i2", "i5", "i1"]
    np.testing.assert_array_equal(workload.submit, [0, 0, 500, 600, 1000])
    np.testing.assert_array_equal(workload.run, [800, 1510, 400, 910, 500])
    assert workload.provenance["dropped"] == {"no GPUs": 1, "run time 0 or unknown": 1}
    assert workload.provenance["clipped"] == {
        "created before the trace begins": 2,
        "not finished when the trace ends": 2,
    }


def test_instances_without_gpus_can_be_kept(write):
    dropped, kept = load_trace(write(*ROWS)), load_trace(write(*ROWS), cpu_jobs="keep")
    assert len(kept) == len(dropped) + 1
    assert kept.provenance["cpu_jobs"] == (kept.gpus == 0).sum() == 1
    assert dropped.provenance["cpu_jobs"] == 0
    assert "no GPUs" not in kept.provenance["dropped"]


def test_a_wrong_option_is_refused(write):
    with pytest.raises(ConfigError) as caught:
        load_trace(write(*ROWS), "alibaba-dlrm", censored="keep")
    assert "'keep'" in caught.value.what
    assert caught.value.expected == "one of clip, drop"


def test_a_file_in_which_no_instance_is_whole_is_refused(write):
    with pytest.raises(TraceError) as caught:
        load_trace(write(row("a", "", "", ""), row("b", 5, 5, "")))
    assert "none of the 2 rows" in caught.value.what
    assert "1 created before the trace begins" in caught.value.hint


def test_a_wrong_value_is_told_with_its_line(write):
    with pytest.raises(TraceError) as caught:
        load_trace(write(*ROWS, row("i8", 1, "later", 5)))
    assert "column 'scheduled_time' holds 'later'" in caught.value.what
    assert "line 9" in caught.value.where


@pytest.mark.skipif(not DLRM.is_dir(), reason="shared trace files are not here")
def test_counts_of_the_published_file_are_those_of_the_readme():
    path = DLRM / "disaggregated_DLRM_trace.csv.gz"
    dropped = load_trace(path)
    clipped = load_trace(path, censored="clip")
    assert dropped.provenance["rows"] == clipped.provenance["rows"] == 23_871
    assert dropped.provenance["dropped"]["no GPUs"] == 16_485
    whole = sum(dropped.provenance["dropped"].values()) - 16_485 + dropped.provenance["used"]
    assert whole == 7_386
    assert len(clipped) == 7_386 - clipped.provenance["dropped"]["run time 0 or unknown"]
    assert (dropped.gpus == 1).all()
    last = float((clipped.submit + clipped.run).max())
    assert round(last / 86_400, 1) == 31.0
    # Of 7,280 instances there before the trace and 8,878 there after it, these have a GPU.
    assert clipped.provenance["clipped"] == {
        "created before the trace begins": 846 + 2_277,
        "not finished when the trace ends": 1_045 + 2_277,
    }
    everything = load_trace(path, censored="clip", cpu_jobs="keep")
    assert everything.provenance["cpu_jobs"] + sum(everything.provenance["dropped"].values()) == (
        23_871 - len(clipped)
    )
    assert (everything.gpus == 0).sum() == everything.provenance["cpu_jobs"] > 16_000
    np.testing.assert_array_equal(dropped.run, np.round(dropped.run))
