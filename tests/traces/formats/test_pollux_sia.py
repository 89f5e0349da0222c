"""Workloads of Pollux and Sia: refused without run times, read with a table of them."""

from __future__ import annotations

import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples/pollux_sia"
HEADER = "name,time,application,num_replicas,batch_size\n"


@pytest.fixture
def workload_file(tmp_path):
    path = tmp_path / "workload.csv"
    path.write_text(HEADER + "a-0,107,a,6,2048\nb-1,110.5,b,12,384\na-2,120,a,8,2048\n")
    return path


@pytest.fixture
def run_times(tmp_path):
    def write(text):
        path = tmp_path / "run_times.csv"
        path.write_text(text)
        return path

    return write


def test_without_run_times_the_file_is_refused(workload_file):
    with pytest.raises(TraceError) as caught:
        load_trace(workload_file)
    assert caught.value.what == "the file has no run times"
    assert "option run_times" in caught.value.expected
    assert caught.value.hint.endswith("a, b")


def test_one_run_time_for_each_application(workload_file, run_times):
    table = run_times("application,run_time\na,100\nb,50.5\n")
    workload = load_trace(workload_file, run_times=table)
    assert workload.run.tolist() == [100, 50.5, 100]
    assert workload.gpus.tolist() == [6, 12, 8]
    assert workload.submit.tolist() == [0, 3.5, 13]
    assert workload.provenance["run_times"] == "run_times.csv"
    assert workload.provenance["applications"] == {"a": 2, "b": 1}


def test_a_run_time_can_depend_on_replicas_and_batch(workload_file, run_times):
    table = run_times(
        "application,num_replicas,batch_size,run_time\na,6,2048,1\na,8,2048.0,2\nb,12,384,3\n"
    )
    workload = load_trace(workload_file, "pollux-sia", run_times=str(table))
    assert workload.run.tolist() == [1, 3, 2]


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        ("application,run_time\na,100\n", "has no run time for application 'b'", "line 3"),
        (
            "application,run_time\na,100\na,200\nb,1\n",
            "two run times for application 'a'",
            "line 3",
        ),
        ("application,run_time\na,-5\n", "'run_time' holds '-5'", "line 2"),
        ("app,run_time\na,5\n", "no column 'application'", "line 1"),
    ],
)
def test_a_table_of_run_times_that_does_not_fit(workload_file, run_times, text, what, line):
    with pytest.raises(TraceError, match=what) as caught:
        load_trace(workload_file, run_times=run_times(text))
    assert line in caught.value.where


def test_a_run_time_of_zero_leaves_its_jobs_out(workload_file, run_times):
    workload = load_trace(workload_file, run_times=run_times("application,run_time\na,0\nb,1\n"))
    assert workload.provenance["dropped"] == {"run time 0 or unknown": 2}


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample(run_times):
    applications = ("cifar10", "deepspeech2", "bert", "imagenet", "yolov3")
    table = run_times("application,run_time\n" + "".join(f"{name},600\n" for name in applications))
    workload = load_trace(SAMPLES / "workload-1.csv", run_times=table)
    assert len(workload) == 160
    assert workload.provenance["applications"]["cifar10"] == 134
    assert workload.names[0] == "cifar10-0"
