"""On a cluster without pools, the pools of a log change nothing, in either simulator."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import berthline as bl


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize("scheduler", ["[pool_queued_gpus + wait]+easy", "sjf+skip@fgd"])
def test_runs_are_the_same_with_and_without(simulator, scheduler):
    cluster = bl.Cluster.parse("uniform:4x4")
    jobs = bl.generate("synthetic", cluster=cluster, jobs=200, load=1.2, seed=4)
    pools = np.arange(len(jobs), dtype=np.int32) % 3
    named = dataclasses.replace(jobs, pool=pools, pool_names=("a", "b", "c"))
    logs = [
        bl.simulate(each, cluster, scheduler, simulator=simulator).log for each in (jobs, named)
    ]
    assert logs[0].sha256() == logs[1].sha256()
