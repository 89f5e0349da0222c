"""Alibaba openb pod lists: columns, reasons, lists without times, and the publisher's own files."""

from __future__ import annotations

import csv
import gzip
import io

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

OPENB = SHARED_TRACES / "alibaba_gpu_v2023"

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)


@pytest.fixture
def write(tmp_path):
    def write_rows(*rows, header=HEADER):
        path = tmp_path / "pods.csv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return path

    return write_rows


def refused(path):
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert str(path) in caught.value.where
    return caught.value


def test_columns_come_from_the_right_cells(write):
    workload = load_trace(
        write(
            "pod-b,11908,47104,1,470,V100M32|V100M16,BE,Succeeded,150,400,160",
            "pod-a,88000,327680,8,1000,,LS,Running,100,700,100",
            "pod-c,3152,5600,1,1000,T4,Burstable,Pending,200,260,",
            "pod-d,1000,1,2,1000,V100M16|V100M32,Guaranteed,Failed,300,301,300",
            "pod-e,1000,1,1,1000,,LSX,Failed,300,302,300",
        )
    )
    assert workload.name == "pods"
    assert workload.names is not None
    assert workload.names.tolist() == ["pod-a", "pod-b", "pod-c", "pod-d", "pod-e"]
    np.testing.assert_array_equal(workload.submit, [0, 50, 100, 200, 200])
    np.testing.assert_array_equal(workload.run, [600, 240, 60, 1, 2])
    np.testing.assert_array_equal(workload.gpus, [8, 1, 1, 2, 1])
    np.testing.assert_array_equal(workload.gpu_milli, [1000, 470, 1000, 1000, 1000])
    np.testing.assert_array_equal(workload.cpus, [88, 12, 4, 1, 1])
    np.testing.assert_array_equal(workload.memory_mib, [327680, 47104, 5600, 1, 1])
    np.testing.assert_array_equal(workload.priority, [2, 0, 1, 3, 0])
    assert np.isnan(workload.estimate).all()
    assert [workload.gpu_type_sets[code] if code >= 0 else None for code in workload.gpu_types] == [
        None,
        "V100-16|V100-32",
        "T4",
        "V100-16|V100-32",
        None,
    ]
    assert dict(workload.provenance) == {
        "format": "alibaba-openb",
        "path": "pods.csv",
        "rows": 5,
        "used": 5,
        "dropped": {},
        "origin_unix_time": None,
        "time_zone": None,
        "origin_trace_seconds": 100.0,
        "cpu_jobs": 0,
        "rounded": {},
        "gpus_asked": 12.47,
        "pod_phase": {"Failed": 2, "Succeeded": 1, "Running": 1, "Pending": 1},
        "qos": {"BE": 1, "LS": 1, "Burstable": 1, "Guaranteed": 1, "LSX": 1},
        "priority": "by qos: BE 0, Burstable 1, LS 2, Guaranteed 3",
        "never_scheduled": 1,
    }


def test_rows_that_cannot_run_are_dropped_and_counted(write):
    workload = load_trace(
        write(
            "a,1000,1,1,1000,,LS,Running,0,10,0",
            "b,1000,1,0,0,,LS,Running,0,10,0",
            "c,1000,1,1,1000,,LS,Running,,10,0",
            "d,1000,1,1,1000,,LS,Running,0,,0",
            "e,1000,1,1,1000,,LS,Pending,5,5,",
            "f,1000,1,1,1000,,LS,Failed,5,7,9",
        )
    )
    assert len(workload) == 1
    assert workload.provenance["dropped"] == {
        "no GPUs": 1,
        "submit time unknown": 1,
        "not finished when the trace ends": 1,
        "run time 0 or unknown": 2,
    }


def test_pods_without_gpus_can_be_kept(write):
    path = write(
        "a,1000,1,1,500,,LS,Running,0,10,0",
        "b,4500,7,0,0,T4,LS,Running,1,10,1",
        "c,0,0,0,0,,LS,Running,2,10,2",
        "d,1000,1,1,0,,LS,Running,3,10,3",
        "e,1000,1,0,0,,LS,Running,4,,4",
    )
    workload = load_trace(path, cpu_jobs="keep")
    assert workload.names is not None
    assert workload.names.tolist() == ["a", "b", "d"]
    np.testing.assert_array_equal(workload.gpus, [1, 0, 0])
    np.testing.assert_array_equal(workload.gpu_milli, [500, 1000, 1000])
    np.testing.assert_array_equal(workload.cpus, [1, 5, 1])
    assert workload.gpu_type_sets == ()  # a pod without GPUs may run anywhere
    assert workload.provenance["cpu_jobs"] == 2
    assert workload.provenance["dropped"] == {
        "no GPUs, CPUs or memory": 1,
        "not finished when the trace ends": 1,
    }
    assert load_trace(path).provenance["dropped"] == {"no GPUs": 4}


def test_several_gpus_in_parts_are_rounded_up(write):
    workload = load_trace(write("a,1,1,2,500,,LS,Running,0,9,0", "b,1,1,1,333.3,,LS,Running,0,9,0"))
    np.testing.assert_array_equal(workload.gpus, [2, 1])
    np.testing.assert_array_equal(workload.gpu_milli, [1000, 334])
    assert workload.provenance["rounded"] == {
        "fractional GPUs rounded up to whole ones": 1,
        "parts of a GPU rounded up to thousandths": 1,
    }


def test_a_pod_list_without_times_is_refused(write):
    error = refused(write("a,1000,1,1,1000", header="name,cpu_milli,memory_mib,num_gpu,gpu_milli"))
    assert error.what == "the pod list has no times: column 'creation_time' is not there"
    assert "openb_pod_list_default.csv" in error.hint
    error = refused(write("a,1000,1,1,1000,,LS,Running,1,,", "b,1000,1,1,1000,,LS,Running,1,,"))
    assert error.what == "the pod list has no times: column 'deletion_time' is empty"


@pytest.mark.parametrize(
    ("row", "column"),
    [
        ("a,1000,1,1.5,1000,,LS,Running,0,10,0", "num_gpu"),
        ("a,1000,1,1,1001,,LS,Running,0,10,0", "gpu_milli"),
        ("a,-1,1,1,1000,,LS,Running,0,10,0", "cpu_milli"),
        ("a,1000,nan,1,1000,,LS,Running,0,10,0", "memory_mib"),
        ("a,1000,1,1,1000,,LS,Running,soon,10,0", "creation_time"),
        ("a,1000,1,1,1000,,LS,Running,0,1e18,0", "deletion_time"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(write, row, column):
    error = refused(write("a,1000,1,1,1000,,LS,Running,0,10,0", row))
    assert f"column {column!r}" in error.what
    assert "line 3" in error.where


def test_a_missing_column_is_named(write):
    header = HEADER.replace("gpu_spec,", "")
    error = refused(write("a,1000,1,1,1000,LS,Running,0,10,0", header=header))
    assert error.what == "there is no column 'gpu_spec'"


@pytest.mark.skipif(not OPENB.is_dir(), reason="shared trace files are not here")
class TestPublishedFiles:
    @staticmethod
    def rows(name):
        text = gzip.decompress((OPENB / f"{name}.csv.gz").read_bytes()).decode()
        return list(csv.DictReader(io.StringIO(text)))

    def test_statistics_are_those_of_the_readme(self):
        # The README counts all pods; the workload holds those of them that have a GPU and ran.
        rows = self.rows("openb_pod_list_default")
        run = np.array(
            [
                int(row["deletion_time"]) - int(row["scheduled_time"] or row["creation_time"])
                for row in rows
            ]
        )
        waits = [
            int(row["scheduled_time"]) - int(row["creation_time"])
            for row in rows
            if row["scheduled_time"]
        ]
        assert (round(np.median(run)), round(run.mean())) == (485, 25_785)
        assert [round(np.percentile(run, q)) for q in (90, 99)] == [6_517, 94_573]
        assert (np.median(waits), round(np.percentile(waits, 99))) == (2, 890)

        workload = load_trace(OPENB / "openb_pod_list_default.csv.gz")
        provenance = workload.provenance
        assert provenance["rows"] == len(rows) == 8_152
        assert provenance["dropped"] == {"no GPUs": 1_088, "run time 0 or unknown": 1}
        assert round(workload.submit[-1] / 86_400, 1) == 149.3
        used = [row["num_gpu"] != "0" and run[i] > 0 for i, row in enumerate(rows)]
        order = np.argsort([int(row["creation_time"]) for row in rows], kind="stable")
        order = order[np.array(used)[order]]
        np.testing.assert_array_equal(workload.run, run[order])
        np.testing.assert_array_equal(workload.gpus, [int(rows[i]["num_gpu"]) for i in order])
        assert workload.names is not None
        assert workload.names.tolist() == [rows[i]["name"] for i in order]

    def test_gpus_and_shares_are_those_of_the_readme(self):
        workload = load_trace(OPENB / "openb_pod_list_default.csv.gz")
        sizes, counts = np.unique(workload.gpus, return_counts=True)
        # One of the 6,989 pods with one GPU was deleted at once; it is one of the 3,078 that share.
        assert dict(zip(sizes.tolist(), counts.tolist(), strict=True)) == {
            1: 6_988,
            2: 16,
            4: 15,
            8: 44,
        }
        assert (workload.gpu_milli < 1000).sum() == 3_077
        assert workload.provenance["rounded"] == {}
        rows = self.rows("openb_pod_list_default")
        asked = {row["name"]: int(row["num_gpu"]) * int(row["gpu_milli"]) for row in rows}
        assert workload.names is not None
        np.testing.assert_array_equal(
            workload.gpus * workload.gpu_milli, [asked[name] for name in workload.names]
        )
        assert workload.gpu_amount.sum() == pytest.approx(workload.provenance["gpus_asked"])
        assert workload.gpu_type_sets == ()
        assert (workload.gpu_types == -1).all()

    def test_the_pods_without_gpus_are_those_of_the_readme(self):
        workload = load_trace(OPENB / "openb_pod_list_default.csv.gz", cpu_jobs="keep")
        assert (workload.gpus == 0).sum() == workload.provenance["cpu_jobs"] == 1_088
        assert workload.provenance["dropped"] == {"run time 0 or unknown": 1}
        assert len(workload) == 8_151

    def test_constraints_are_those_of_the_readme(self):
        workload = load_trace(OPENB / "openb_pod_list_gpuspec10.csv.gz")
        counts = {
            name: int((workload.gpu_types == code).sum())
            for code, name in enumerate(workload.gpu_type_sets)
        }
        rows = self.rows("openb_pod_list_gpuspec10")
        written = {
            spec: sum(row["gpu_spec"] == spec for row in rows)
            for spec in ("T4", "G2", "P100", "V100M16|V100M32")
        }
        assert written == {"T4": 355, "G2": 120, "P100": 100, "V100M16|V100M32": 55}
        assert counts["T4"] == 355
        assert counts["G2"] == 120
        assert counts["P100"] == 100
        # Six more rows name a model twice, which makes no difference.
        repeated = sum(row["gpu_spec"] == "V100M16|V100M32|V100M32" for row in rows)
        assert repeated == 6
        assert counts["V100-16|V100-32"] == 55 + repeated
