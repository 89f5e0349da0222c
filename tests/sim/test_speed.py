"""How long a job runs: the GPU type it is on, and the nodes and racks its gang spans."""

from __future__ import annotations

import math

import pytest
from tests.sim.scenarios import allocations, finishes, jobs, nodes, run, starts

from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.gpu_types import GpuType

P100_SPEED = math.sqrt(21.2 / 125 * (10.6 / 15.7))
"""From the datasheets' TFLOPS in half and single precision, relative to a V100."""


@pytest.mark.parametrize(
    ("gpu_type", "seconds"),
    [("V100", 100), ("SLOW", 200), ("FAST", 50), ("P100", 100 / P100_SPEED)],
)
def test_type__a_run_time_on_a_v100_is_divided_by_the_speed(gpu_type: str, seconds: float) -> None:
    log = run(jobs((3, 100, 1)), nodes(1, gpu_type=[gpu_type]), "fcfs")
    assert finishes(log)[0] == pytest.approx(3 + seconds, rel=1e-12)


def test_type__all_are_alike_where_the_cluster_says_so() -> None:
    cluster = nodes(1, gpu_type=["SLOW"]).with_conditions({"gpu_speeds": 0})
    assert finishes(run(jobs((0, 100, 1)), cluster, "fcfs")) == {0: 100}


def test_type__a_gang_goes_at_the_pace_of_its_slowest_gpu() -> None:
    """One GPU twice as fast, one half as fast, one as the reference: the gang of three is slow."""
    cluster = nodes(1, 1, 1, gpu_type=["FAST", "SLOW", "V100"])
    workload = jobs((0, 100, 3), (200, 100, 1))
    assert finishes(run(workload, cluster, "fcfs")) == {0: 200, 1: 250}


def test_reference_type__is_what_the_run_times_were_measured_on() -> None:
    """Measured on a P100, 100 s there are fewer on a V100; on a P100 they stay as they are."""
    workload = jobs((0, 100, 1), reference_type="P100")
    assert finishes(run(workload, nodes(1), "fcfs"))[0] == pytest.approx(100 * P100_SPEED)
    assert finishes(run(workload, nodes(1, gpu_type=["P100"]), "fcfs")) == {0: 100}


def test_reference_type__a_job_that_asks_for_one_type_ran_on_it() -> None:
    """Job 0 asks for a P100: its run time is for a P100. Job 1 takes either: its run time is for a
    V100."""
    workload = jobs((0, 100, 1), (0, 100, 1), gpu_types=[0, 1], gpu_type_sets=("P100", "P100|T4"))
    found = finishes(run(workload, nodes(2, gpu_type=["P100"]), "fcfs"))
    assert found[0] == 100
    assert found[1] == pytest.approx(100 / P100_SPEED, rel=1e-12)


@pytest.mark.parametrize(
    ("gpus", "seconds", "why"),
    [
        (2, 100, "on one node"),
        (4, 200, "on two nodes of one rack, at half the speed"),
        (6, 250, "in two racks, at 0.8 of that"),
    ],
)
def test_span__factors_for_nodes_and_racks(gpus: int, seconds: float, why: str) -> None:
    cluster = nodes(2, 2, 2, rack=["a", "a", "b"])
    cluster = cluster.with_conditions({"across_nodes": 0.5, "across_racks": 0.8})
    assert finishes(run(jobs((0, 100, gpus)), cluster, "fcfs")) == {0: seconds}, why


def test_span__counts_nodes_really_used_not_those_needed() -> None:
    """Scatter spreads a gang of two over what is left of two nodes, and pays for it."""
    cluster = nodes(2, 2).with_conditions({"across_nodes": 0.5})
    workload = jobs((0, 70, 1), (0, 60, 2))
    assert allocations(run(workload, cluster, "fcfs@scatter"))[1] == {0: 1, 1: 1}
    assert finishes(run(workload, cluster, "fcfs@scatter"))[1] == 120
    assert finishes(run(workload, cluster, "fcfs@first-fit"))[1] == 60


@pytest.mark.parametrize(("run_time", "start"), [(97.5, 5), (98, 220)])
def test_easy__reservations_know_how_fast_jobs_run(run_time: float, start: float) -> None:
    """Two GPUs at half the speed. Job 0 ends at 200, when job 1 has both.

    Job 2 comes at 5. With 97.5 s of run time it ends exactly then, and may go first.
    """
    workload = jobs((0, 100, 1), (0, 10, 2), (5, run_time, 1))
    log = run(workload, nodes(2, gpu_type=["SLOW"]), "fcfs+easy")
    assert starts(log) == {0: 0, 1: 200, 2: start}


def test_conservative__plans_with_the_slowest_place_a_job_could_get() -> None:
    """A fast and a slow node of one GPU. The fast one is busy until 50, the slow one until 60.

    Job 2 wants both from 60 on. Job 3 (20 s) comes at 50. On the fast GPU it would be over at 60,
    but its place is planned for 40 s, as on the slow one: it has to wait for job 2.
    """
    workload = jobs((0, 100, 1), (0, 30, 1), (1, 50, 2), (50, 20, 1))
    cluster = nodes(1, 1, gpu_type=["FAST", "SLOW"])
    log = run(workload, cluster, "fcfs+conservative")
    assert allocations(log)[0] == {0: 1}
    assert starts(log) == {0: 0, 1: 0, 2: 60, 3: 160}
    assert starts(run(workload, cluster, "fcfs+easy"))[3] == 50


def test_conservative__a_gang_that_fits_one_node_is_not_slowed_by_other_nodes() -> None:
    """Four GPUs. Job 0 holds two until 100, when job 1 gets all four. Job 2 is over at 62.

    A planned length of 120 s, with the factor across racks, would make it wait until 150.
    """
    workload = jobs((0, 100, 2), (1, 50, 4), (2, 60, 2))
    cluster = nodes(4).with_conditions({"across_racks": 0.5})
    assert starts(run(workload, cluster, "fcfs+conservative")) == {0: 0, 1: 100, 2: 2}


@pytest.mark.parametrize(
    ("placement", "start", "why"),
    [
        ("first-fit", 2, "two GPUs always get one node"),
        ("scatter", 150, "may spread over two nodes"),
        ("defrag", 150, "may use one node more than needed"),
    ],
)
def test_conservative__plans_with_the_nodes_that_the_placement_may_use(
    placement: str, start: float, why: str
) -> None:
    """Two nodes of two GPUs; across nodes, jobs run at half the speed.

    Job 0 holds node 0 until 100, job 1 waits for both nodes. Job 2 needs 60 s on one node.
    """
    workload = jobs((0, 100, 2), (1, 25, 4), (2, 60, 2))
    cluster = nodes(2, 2, rack=["a", "a"]).with_conditions({"across_nodes": 0.5})
    assert starts(run(workload, cluster, f"fcfs+conservative@{placement}"))[2] == start, why


@pytest.mark.parametrize(("racks", "start"), [("aa", 2), ("ab", 120)])
def test_conservative__plans_with_the_factor_of_racks_only_if_there_are_two(
    racks: str, start: float
) -> None:
    """Three nodes of one GPU, or two racks of them. Job 2 (60 s) spans two nodes from 2 on.

    Job 1 has all three GPUs from 100 on, for 20 s. With 120 s in two racks, job 2 comes after it.
    """
    workload = jobs((0, 100, 1), (1, 20 if racks == "aa" else 10, 3), (2, 60, 2))
    cluster = nodes(1, 1, 1, rack=[racks[0], racks[0], racks[1]])
    log = run(workload, cluster.with_conditions({"across_racks": 0.5}), "fcfs+conservative")
    assert starts(log) == {0: 0, 1: 100, 2: start}


@pytest.mark.parametrize("other", ["BH", "V100"])
def test_reference_type__does_not_depend_on_which_nodes_exist(other: str) -> None:
    """A job that takes either of two types ran on the workload's, a V100.

    On a B2, twice as fast, it takes 500 s, whether or not the cluster has a node with a BH.
    """
    types = tuple(GpuType(name, 125, 16_384, 10, 100, measured_speed=2.0) for name in ("B2", "BH"))
    groups = [NodeGroup(count=1, gpus=1, gpu_type=name) for name in ("B2", other)]
    cluster = Cluster.from_groups(groups, extra_types=types)
    workload = jobs((0, 1000, 1), gpu_types=[0], gpu_type_sets=("B2|BH",))
    assert finishes(run(workload, cluster, "fcfs")) == {0: 500}


def test_reference_type__two_spellings_of_one_type_are_one() -> None:
    """The second is another name of the first: the job asks for one type, and ran on it."""
    workload = jobs(
        (0, 100, 1), gpu_types=[0], gpu_type_sets=("P100|P100-SXM2-16GB",), reference_type="V100"
    )
    assert finishes(run(workload, nodes(1, gpu_type=["P100"]), "fcfs")) == {0: 100}
