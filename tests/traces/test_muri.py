"""Job lists of Muri: milliseconds, and the shared sample."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from berthline.traces.load import load_trace

SAMPLES = Path(__file__).parents[2].parent / "shared/traces/format_samples/muri"
HEADER = (
    "job_id,num_gpu,submit_time,iterations,model_name,batch_size,duration,interval,iteration_time,"
    "resource_time_0,resource_time_1,resource_time_2,priority\n"
)


def test_times_are_milliseconds(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        HEADER + "0,1,500,9,vgg,16,16755000,0,109,114,80,0,1\n1,4,6000,9,a,1,1500,0,1,1,1,0,0\n"
    )
    workload = load_trace(path)
    assert workload.provenance["format"] == "muri"
    assert workload.submit.tolist() == [0, 5.5]
    assert workload.run.tolist() == [16755, 1.5]
    assert workload.priority.tolist() == [0, 0]


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="shared trace files are not here")
def test_the_sample():
    workload = load_trace(SAMPLES / "trace4.csv.gz")
    assert len(workload) == 2638
    sizes = dict(zip(*np.unique(workload.gpus, return_counts=True), strict=True))
    assert sizes == {1: 1680, 4: 611, 2: 265, 8: 82}
    assert np.median(workload.run) == 3318
    assert workload.run.min() == 2
    assert workload.run.max() == 4_014_063
    assert workload.submit[-1] == 7_363_956
