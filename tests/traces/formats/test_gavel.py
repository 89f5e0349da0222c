"""Gavel traces: refused without throughputs, read with Gavel's own table or a CSV."""

from __future__ import annotations

import json

import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples/gavel"
SHORT = (
    "LM (batch size 5)\tpython main.py\t--steps\t1\t1000\t50.000000\t1\n"
    "LM (batch size 5)\tpython main.py\t--steps\t1\t1000\t20.000000\t8\n"
    "A3C\tpython3 main.py\t--max-steps\t0\t300\t60.000000\t1\n"
)
LONG = (
    "A3C\tpython3 main.py\trl\t--max-steps\t0\t300\t1\t2.5\t-1.000000\t60\n"
    "LM (batch size 5)\tpython main.py\tlm\t--steps\t1\t1000\t8\t1\t-1.000000\t0\n"
)
TABLE = {
    "v100": {
        "('LM (batch size 5)', 1)": {"null": 10.0, "('A3C', 1)": [1.0, 2.0]},
        "('LM (batch size 5)', 8)": {"null": 40.0},
        "('A3C', 1)": {"null": 3.0},
    },
    "k80": {
        "('LM (batch size 5)', 1)": {"null": 0.0},
        "('LM (batch size 5)', 8)": {"null": 4.0},
        "A3C": {"null": 1.0},
    },
}


@pytest.fixture
def files(tmp_path):
    def write(trace=SHORT, table=TABLE):
        (tmp_path / "x.trace").write_text(trace)
        text = table if isinstance(table, str) else json.dumps(table)
        (tmp_path / "table").write_text(text)
        return tmp_path / "x.trace", tmp_path / "table"

    return write


def test_without_throughputs_the_file_is_refused(files):
    path, _ = files()
    with pytest.raises(TraceError) as caught:
        load_trace(path)
    assert caught.value.what == "the file has steps but no run times"
    assert "option throughputs" in caught.value.expected


def test_run_time_is_steps_by_throughput(files):
    path, table = files()
    workload = load_trace(path, throughputs=table)
    assert workload.submit.tolist() == [0, 30, 40]
    assert workload.gpus.tolist() == [8, 1, 1]
    assert workload.run.tolist() == [25, 100, 100]
    assert workload.provenance["format"] == "gavel"
    assert workload.provenance["gpu"] == "v100"
    assert workload.reference_type == "V100-32"
    assert workload.provenance["job_types"] == {"LM (batch size 5)": 2, "A3C": 1}


def test_the_later_layout_has_weights(files):
    path, table = files(LONG)
    workload = load_trace(path, throughputs=table)
    assert workload.submit.tolist() == [0, 60]
    assert workload.gpus.tolist() == [8, 1]
    assert workload.run.tolist() == [25, 100]
    assert workload.priority.tolist() == [1, 2.5]


def test_another_gpu_and_jobs_that_cannot_run_on_it(files):
    path, table = files()
    workload = load_trace(path, throughputs=table, gpu="k80")
    assert workload.run.tolist() == [250, 300]
    assert workload.provenance["dropped"] == {"cannot run on that GPU: throughput 0": 1}
    with pytest.raises(TraceError, match="unknown GPU 'k8'") as caught:
        load_trace(path, throughputs=table, gpu="k8")
    assert caught.value.hint == "did you mean 'k80'?"


def test_throughputs_from_a_csv(files):
    path, table = files(
        table="job_type,scale_factor,steps_per_second\nLM (batch size 5),1,10\n"
        "LM (batch size 5),8,40\nA3C,1,3\n"
    )
    assert load_trace(path, throughputs=table).run.tolist() == [25, 100, 100]


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (
            {"v100": {"('A3C', 1)": {"null": 3.0}}},
            "no throughput for 'LM .batch size 5.' on 1 GPUs",
        ),
        ({"v100": {"('A3C', 1)": {"null": "fast"}}}, "is 'fast'"),
        ({"v100": {"('A3C', 1)": {}}}, "is nothing"),
        ({"v100": []}, "v100 of the throughputs is '.]'"),
        ("{", "not JSON"),
        ("{" * 100_000, "not JSON"),
        ("job_type,scale_factor\nA3C,1\n", "no column 'steps_per_second'"),
    ],
)
def test_a_table_of_throughputs_that_does_not_fit(files, table, what):
    path, table = files(table=table)
    with pytest.raises(TraceError, match=what):
        load_trace(path, throughputs=table)


@pytest.mark.parametrize("cells", [6, 8, 9])
def test_a_line_with_another_number_of_cells_is_refused(files, cells):
    path, table = files(SHORT + "\t".join("1" * cells) + "\n")
    with pytest.raises(TraceError, match=r"cells|holds nothing") as caught:
        load_trace(path, "gavel", throughputs=table)
    assert "line 4" in caught.value.where


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample(tmp_path):
    table = tmp_path / "throughputs.csv"
    table.write_text(
        "job_type,scale_factor,steps_per_second\nTransformer (batch size 128),8,10\n"
        "Transformer (batch size 256),8,10\nRecommendation (batch size 8192),8,10\n"
        "ResNet-18 (batch size 32),1,10\n"
    )
    workload = load_trace(SAMPLES / "925e2b.trace", throughputs=table)
    assert workload.submit.tolist() == [0, 9357, 11109, 12313]
    assert workload.run.tolist() == [5142.7, 103.3, 69556.6, 68431]
    assert workload.gpus.tolist() == [8, 8, 8, 1]
