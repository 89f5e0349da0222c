"""Jobs without GPUs: they need CPUs and memory of one node, and nothing else."""

from __future__ import annotations

from tests.sim.scenarios import finishes, jobs, nodes, rejections, run, starts, story


def test_cpu_job__runs_on_a_node_whose_gpus_are_taken() -> None:
    workload = jobs((0, 50, 4), (1, 20, 0), cpus=[8, 8])
    assert story(run(workload, nodes(4, cpus=[16]), "fcfs")) == [
        "0 submit 0",
        "0 start 0 on 0:4",
        "1 submit 1",
        "1 start 1 on 0:0",
        "21 finish 1",
        "50 finish 0",
    ]


def test_cpu_job__waits_for_cpus_while_gpus_are_idle() -> None:
    workload = jobs((0, 50, 0), (1, 20, 0), (2, 5, 1), cpus=[10, 7, 6])
    log = run(workload, nodes(4, cpus=[16]), "fcfs+skip")
    assert starts(log) == {0: 0, 1: 50, 2: 2}


def test_cpu_job__is_not_split_over_nodes() -> None:
    """20 cores on two nodes of 16 are too many, and so is their memory; a gang could be split."""
    workload = jobs((0, 1, 0), (0, 1, 0), (0, 1, 2), cpus=[20, 1, 20], memory_mib=[0, 20, 0])
    log = run(workload, nodes(1, 1, cpus=[16, 16], memory_mib=[16, 16]), "fcfs")
    assert rejections(log) == {
        0: "its CPUs do not fit on the nodes it may use",
        1: "its memory does not fit on the nodes it may use",
    }
    assert starts(log) == {2: 0}


def test_cpu_job__does_not_care_how_fast_the_gpus_are() -> None:
    cluster = nodes(1, gpu_type=["FAST"], cpus=[8]).with_conditions({"across_nodes": 0.5})
    assert finishes(run(jobs((0, 30, 0), (0, 30, 1), cpus=[1, 1]), cluster, "fcfs")) == {
        0: 30,
        1: 15,
    }


def test_cpu_job__counts_as_no_gpu_in_formulas() -> None:
    """By GPU-seconds it comes first, whatever its length."""
    workload = jobs((0, 5, 1), (1, 5, 1), (1, 900, 0), cpus=[8, 8, 8])
    assert starts(run(workload, nodes(1, cpus=[8]), "smallest-area")) == {0: 0, 1: 905, 2: 5}


def test_cpu_job__on_a_node_without_limits_always_fits() -> None:
    workload = jobs(*[(0, 10, 0)] * 3, cpus=99)
    assert starts(run(workload, nodes(1), "fcfs")) == {0: 0, 1: 0, 2: 0}
