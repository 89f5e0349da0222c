"""Environments on a trace run its jobs at the speed that they were recorded at."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.env.episodes_source import WholeTrace
from berthline.env.job_kinds import JobKinds
from berthline.model.cluster import NodeGroup
from berthline.model.speeds import speeds
from berthline.policies.scheduler import Scheduler


@pytest.mark.parametrize("reference", ["recorded", "V100"])
def test_kinds_of_jobs_have_the_reference_speeds_of_a_run(reference):
    workload = bl.Workload.from_columns(
        submit=np.arange(6.0),
        run=np.full(6, 10.0),
        gpus=np.ones(6, int),
        estimate=np.full(6, 10.0),
        gpu_types=[-1, 0, 1, -1, 0, -1],
        gpu_type_sets=("T4", "T4|A100"),
        ran_on=[0, -1, 1, -1, 1, 2],
        ran_on_types=("a100", "p100", "unheard-of"),
        reference_type=reference,
    )
    cluster = bl.Cluster.from_groups(
        [NodeGroup(count=1, gpus=2, gpu_type=kind) for kind in ("A100", "T4")], name="mixed"
    )
    source = WholeTrace(workload)
    kinds = JobKinds(source, cluster)
    inputs = kinds.inputs(Scheduler.parse("fcfs"), "estimate")
    found = kinds.columns(inputs, source.draw(np.array([[0, 0]])))
    np.testing.assert_array_equal(found["reference_speed"][0], speeds(workload, cluster)[1])
