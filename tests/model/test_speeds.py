"""Which run times are scaled, by how much, and how it is said."""

from __future__ import annotations

import numpy as np
import pytest

import berthline as bl
from berthline.model.cluster import NodeGroup
from berthline.model.gpu_types import gpu_type
from berthline.model.speeds import (
    AS_RECORDED,
    common_type,
    recorded_types,
    relative_speed,
    run_time_scaling,
    speeds,
)
from berthline.model.workload_rows import with_reference_type, without_missing_types
from berthline.sim.simulate import SIMULATORS

A100 = "uniform:1x4:A100"
RATIO = gpu_type("V100").speed / gpu_type("A100").speed


def jobs(**columns) -> bl.Workload:
    size = len(np.atleast_1d(columns.get("ran_on", [0])))
    given = {"submit": np.zeros(size), "run": np.full(size, 100.0), "gpus": np.ones(size, int)}
    return bl.Workload.from_columns(**given | columns)


def mixed() -> bl.Cluster:
    return bl.Cluster.from_groups(
        [NodeGroup(count=1, gpus=1, gpu_type=kind) for kind in ("A100", "T4")], name="mixed"
    )


@pytest.mark.parametrize("simulator", SIMULATORS)
@pytest.mark.parametrize(
    ("reference", "finish"), [("recorded", 100.0), ("V100", 100 * RATIO), ("A100", 100.0)]
)
def test_only_a_known_type_is_scaled(simulator, reference, finish):
    result = bl.simulate(jobs(reference_type=reference), A100, "fcfs", simulator=simulator)
    assert result.log.time[-1] == pytest.approx(finish)
    assert (result.run_times is None) == (finish == 100)
    assert (result.summary()["run_times"] is None) == (finish == 100)


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_a_job_of_unknown_type_runs_at_rate_1_on_every_node_of_a_mixed_cluster(simulator):
    workload = jobs(ran_on=[-1, 0, 0], ran_on_types=("a30x",), reference_type="recorded")
    log = bl.simulate(workload, mixed(), "fcfs", simulator=simulator).log
    assert log.time[-3:].tolist() == [100, 100, 200]
    assert run_time_scaling(workload, mixed()) is None


@pytest.mark.parametrize("simulator", SIMULATORS)
def test_the_type_of_a_job_comes_before_that_of_the_workload(simulator):
    workload = jobs(ran_on=[0, -1], ran_on_types=("a100",), reference_type="V100")
    log = bl.simulate(workload, A100, "fcfs", simulator=simulator).log
    assert log.time[-2:].tolist() == [pytest.approx(100 * RATIO), 100]
    scaling = run_time_scaling(workload, bl.Cluster.parse(A100))
    assert scaling is not None
    assert (scaling.jobs, scaling.of) == (1, 2)
    assert scaling.in_words() == "x 0.568: recorded on V100-32, run on A100-80; 1 of 2 jobs"


def test_reference_speeds_of_recorded_jobs():
    workload = jobs(reference_type="recorded")
    assert speeds(workload, mixed())[1].tolist() == [AS_RECORDED]
    uniform = bl.Cluster.parse(A100)
    assert speeds(workload, uniform)[1].tolist() == [gpu_type("A100").speed]
    assert relative_speed([2.0, 2.0], [AS_RECORDED, 4.0]).tolist() == [1.0, 0.5]


def test_equal_speeds_switch_scaling_off():
    cluster = bl.Cluster.parse(A100).with_conditions({"gpu_speeds": 0})
    assert run_time_scaling(jobs(reference_type="V100"), cluster) is None


def test_every_pair_of_types_is_listed():
    workload = jobs(ran_on=[0, 0, 1], ran_on_types=("T4", "P100"), reference_type="recorded")
    scaling = run_time_scaling(workload, mixed())
    assert scaling is not None
    assert [(pair.recorded, pair.on, pair.jobs) for pair in scaling.types] == [
        ("T4", "A100-80", 2),
        ("P100", "A100-80", 1),
        ("P100", "T4", 1),
    ]
    assert scaling.lowest < scaling.highest < 1
    assert recorded_types(workload) == {"T4": 2, "P100": 1}


def test_a_set_of_two_names_has_the_reference_type_whatever_nodes_there_are():
    workload = jobs(
        gpu_types=[0], gpu_type_sets=("T4|own-type",), reference_type="V100", ran_on=[-1]
    )
    assert speeds(workload, mixed())[1].tolist() == [gpu_type("V100").speed]


def test_the_common_type_of_a_log():
    assert common_type(jobs(ran_on=[0, 0], ran_on_types=("a100",))) == "A100-80"
    assert common_type(jobs(ran_on=[0, 1], ran_on_types=("a100", "T4"))) == "recorded"
    assert common_type(jobs(reference_type="P100")) == "P100"


def test_a_reference_type_that_is_asked_for_holds_for_all_jobs():
    workload = jobs(ran_on=[0, -1], ran_on_types=("a100",), reference_type="recorded")
    assert recorded_types(with_reference_type(workload, "T4")) == {"T4": 2}
    assert recorded_types(with_reference_type(workload, "recorded")) == {"recorded": 2}


def test_a_job_keeps_its_type_when_the_cluster_lacks_it():
    workload = jobs(gpu_types=[0], gpu_type_sets=("P100",), reference_type="V100", ran_on=[-1])
    opened = without_missing_types(workload, bl.Cluster.parse(A100))
    assert opened.gpu_types.tolist() == [-1]
    assert recorded_types(opened) == {"P100": 1}


def test_types_stay_with_their_jobs_in_a_window():
    workload = jobs(ran_on=[0, -1, 1], ran_on_types=("a100", "T4"))
    window = workload.window(1, 3)
    assert window.ran_on.tolist() == [-1, 1]
    assert window.ran_on_types == ("a100", "T4")
