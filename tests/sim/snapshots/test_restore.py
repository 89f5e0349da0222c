"""What the core refuses to restore."""

from __future__ import annotations

import pytest

import berthline as bl
from berthline import _native
from berthline.model.schedule import PREEMPT
from berthline.sim.native import run_arguments, snapshot_arguments
from berthline.sim.snapshots.resume import resumed_inputs


def test_jobs_that_stopped__need_a_run_made_for_them() -> None:
    """Without room for what is known of them, their rows would be written beyond its tables."""
    jobs = bl.Workload.from_columns(submit=[0, 10], run=[100, 5], gpus=[1, 1])
    cluster = bl.Cluster.uniform(nodes=1, gpus_per_node=1)
    result = bl.simulate(jobs, cluster, "srpt+skip!srpt", knowledge="exact")
    snapshot = result.snapshot(12.0)
    assert PREEMPT in snapshot.log.kind
    inputs = resumed_inputs(
        snapshot, snapshot.workload, "fcfs", knowledge="exact", seed=0, horizon=None
    )
    assert inputs.start is not None
    arguments, start = run_arguments(inputs), snapshot_arguments(inputs.start)
    assert arguments["was_interrupted"]
    _native.decide(dict(arguments), start)
    arguments["was_interrupted"] = False
    with pytest.raises(RuntimeError, match="not made for jobs that stopped"):
        _native.decide(dict(arguments), start)
