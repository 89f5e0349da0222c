"""Job lists of Tiresias: seconds, and the shared sample."""

from __future__ import annotations

from pathlib import Path

import pytest

from berthline.errors import TraceError
from berthline.traces.load import load_trace

SAMPLES = Path(__file__).parents[2].parent / "shared/traces/format_samples/tiresias"
HEADER = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n"


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
def test_the_sample():
    workload = load_trace(SAMPLES / "60_job.csv")
    assert len(workload) == 60
    assert sorted(set(workload.gpus.tolist())) == [1, 2, 4, 8]
    assert round(workload.run.mean(), 2) == 178.42
    assert workload.submit[-1] == 1779
