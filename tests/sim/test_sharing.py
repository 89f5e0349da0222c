"""Parts of GPUs: which GPU is shared, how neighbours slow each other down, and when that ends."""

from __future__ import annotations

import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

HALF = {"gpu_milli": 500}


def test_interference__a_neighbour_comes_and_goes() -> None:
    """Both run at 1 / 1.5 while they share the GPU.

    Job 0 (100 s) is alone until 40. Job 1 (30 s) takes 45 s and ends at 85; by then job 0 has done
    40 + 30. For the last 30 s it is alone again.
    """
    cluster = nodes(1).with_conditions({"interference": 0.5})
    assert story(run(jobs((0, 100, 1), (40, 30, 1), **HALF), cluster, "fcfs")) == [
        "0 submit 0",
        "0 start 0 on 0#0",
        "40 submit 1",
        "40 start 1 on 0#0",
        "85 finish 1",
        "115 finish 0",
    ]


def test_interference__grows_with_the_number_of_neighbours() -> None:
    """One, then two, then three jobs on a GPU, at 1, 1/2 and 1/3 of the speed.

    Job 0 has done 10 by 10, 15 by 20, and continues at a third: its last 5 s take 15 s, until 35.
    Jobs 1 and 2 continue at a half: job 1 has done 5 + 5 and job 2 has done 5, of 20 each. Job 1
    needs 20 s more, until 55; then job 2, which has done 15, is alone for 5 s.
    """
    cluster = nodes(1).with_conditions({"interference": 1})
    workload = jobs((0, 20, 1), (10, 20, 1), (20, 20, 1), gpu_milli=300)
    assert finishes(run(workload, cluster, "fcfs")) == {0: 35, 1: 55, 2: 60}


def test_interference__ends_at_the_edge_of_the_gpu() -> None:
    """Two GPUs on one node: job 1 does not fit beside job 0, and they do not slow each other."""
    cluster = nodes(2).with_conditions({"interference": 1})
    workload = jobs((0, 20, 1), (0, 20, 1), gpu_milli=600)
    assert finishes(run(workload, cluster, "fcfs")) == {0: 20, 1: 20}


def test_interference__one_neighbour_after_another() -> None:
    """Job 2 follows job 1 at 10, so job 0 runs at a half until 20, and is alone for its last 20."""
    cluster = nodes(1).with_conditions({"interference": 1})
    workload = jobs((0, 30, 1), (0, 5, 1), (1, 5, 1), **HALF)
    assert finishes(run(workload, cluster, "fcfs")) == {0: 40, 1: 10, 2: 20}


def test_slots__the_fullest_shared_gpu_that_has_room() -> None:
    """Two GPUs. 600 opens one, 500 another; 300 goes beside 600, 500 beside 500, 100 beside 900."""
    workload = jobs(*[(0, 10, 1)] * 6, gpu_milli=[600, 500, 300, 500, 100, 100])
    assert story(run(workload, nodes(2), "fcfs"))[6:11] == [
        "0 start 0 on 0#0",
        "0 start 1 on 0#1",
        "0 start 2 on 0#0",
        "0 start 3 on 0#1",
        "0 start 4 on 0#0",
    ]
    assert starts(run(workload, nodes(2), "fcfs"))[5] == 10, "both GPUs are full until then"


def test_slots__a_number_is_free_again_when_its_last_job_has_gone() -> None:
    workload = jobs((0, 10, 1), (0, 30, 1), (20, 5, 1), gpu_milli=[900, 800, 700])
    assert story(run(workload, nodes(3), "fcfs"))[-4:] == [
        "20 submit 2",
        "20 start 2 on 0#0",
        "25 finish 2",
        "30 finish 1",
    ]


def test_whole_gpus__need_gpus_that_nobody_uses_at_all() -> None:
    """A tenth of a GPU is enough to keep a gang of two off two GPUs."""
    workload = jobs((0, 50, 1), (1, 10, 2), gpu_milli=[100, 1000])
    assert starts(run(workload, nodes(2), "fcfs")) == {0: 0, 1: 50}
    assert starts(run(workload, nodes(3), "fcfs")) == {0: 0, 1: 1}


@pytest.mark.parametrize(("placement", "node"), [("best-fit", 1), ("worst-fit", 0)])
def test_nodes__free_thousandths_decide(placement: str, node: int) -> None:
    """Job 0 (whole) leaves node 0 one GPU; job 1 leaves node 1, which has one, 400 of it."""
    workload = jobs(
        *((0, 9, 1), (0, 9, 1), (1, 5, 1)), gpu_milli=[1000, 600, 400], gpu_types=[0, 1, -1],
        gpu_type_sets=("V100", "P100"),
    )  # fmt: skip
    log = run(workload, nodes(2, 1, gpu_type=["V100", "P100"]), f"fcfs@{placement}")
    assert f"1 start 2 on {node}#0" in story(log)


def test_estimates__reservations_assume_that_neighbours_stay() -> None:
    """EASY: jobs 0 and 1 share a GPU at half speed and should end at 40.

    Job 2 (a whole GPU) is reserved for then. Job 3 (half a GPU, if it fitted) does not fit: the GPU
    is full.
    """
    cluster = nodes(1).with_conditions({"interference": 1})
    workload = jobs((0, 20, 1), (0, 20, 1), (1, 10, 1), (2, 1, 1), gpu_milli=[500, 500, 1000, 500])
    assert starts(run(workload, cluster, "fcfs+easy")) == {0: 0, 1: 0, 2: 40, 3: 50}


def test_formulas__over_nodes_count_the_jobs_on_shared_gpus() -> None:
    """Two parts go to different nodes, the third to the first node again; nothing slows them
    down."""
    log = run(jobs(*[(0, 10, 1)] * 3, gpu_milli=100), nodes(1, 1), "fcfs@[node_running]")
    assert [line for line in story(log) if "start" in line] == [
        "0 start 0 on 0#0",
        "0 start 1 on 1#0",
        "0 start 2 on 0#0",
    ]
