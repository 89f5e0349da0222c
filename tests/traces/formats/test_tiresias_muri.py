"""Job lists of Tiresias (seconds) and Muri (milliseconds), and the shared samples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.shared_traces import SHARED_TRACES

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = SHARED_TRACES / "format_samples"
HEADER = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"
MURI_HEADER = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)


def test_columns_and_rows_left_out(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        HEADER + "7,2,30,5,vgg,60,0\n8,1,10,5,bert,90,0\n9,0,0,5,vgg,5,0\n1,1,0,5,a,0,0\n"
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "tiresias"
    assert workload.names.tolist() == ["8", "7"]
    assert workload.submit.tolist() == [0, 20]
    assert workload.run.tolist() == [90, 60]
    assert workload.provenance["dropped"] == {"run time 0 or unknown": 1, "no GPUs": 1}
    assert workload.provenance["models"] == {"vgg": 2, "bert": 1, "a": 1}


def test_a_cluster_specification_is_no_job_list(tmp_path):
    path = tmp_path / "cluster.csv"
    path.write_text("num_switch,num_node_p_switch,num_gpu_p_node\n1,32,4\n")
    with pytest.raises(TraceError, match="no column 'job_id'"):
        load_trace(path, "tiresias")


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample_of_tiresias():
    workload = load_trace(SAMPLES / "tiresias/60_job.csv")
    assert len(workload) == 60
    assert sorted(set(workload.gpus.tolist())) == [1, 2, 4, 8]
    assert round(workload.run.mean(), 2) == 178.42
    assert workload.submit[-1] == 1779


def test_times_of_muri_are_milliseconds(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        MURI_HEADER
        + "0,1,500,9,vgg,16,16755000,0,109,114,80,0,1\n1,4,6000,9,a,1,1500,0,1,1,1,0,0\n"
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "muri"
    assert workload.submit.tolist() == [0, 5.5]
    assert workload.run.tolist() == [16755, 1.5]
    assert workload.priority.tolist() == [0, 0]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample_of_muri():
    workload = load_trace(SAMPLES / "muri/trace4.csv.gz")
    assert len(workload) == 2638
    sizes = dict(zip(*np.unique(workload.gpus, return_counts=True), strict=True))
    assert sizes == {1: 1680, 4: 611, 2: 265, 8: 82}
    assert np.median(workload.run) == 3318
    assert workload.run.min() == 2
    assert workload.run.max() == 4_014_063
    assert workload.submit[-1] == 7_363_956
