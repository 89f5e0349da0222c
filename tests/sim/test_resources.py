"""CPUs, memory, GPU types and pools; and the reasons, except quotas, for rejecting jobs."""

from __future__ import annotations

import dataclasses

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, rejections, run, starts

from berthline.model.limits import PoolRules
from berthline.model.schedule import REJECT_REASONS


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__a_node_without_enough_left_is_passed_by(column: str) -> None:
    """Two nodes of 4 GPUs and 8 cores (MiB). Job 0 leaves 3 GPUs and 2 cores on node 0."""
    workload = jobs((0, 9, 1), (1, 9, 1), (2, 9, 1), **{column: [6, 2, 1]})
    log = run(workload, nodes(4, 4, **{column: [8, 8]}), "fcfs")
    assert allocations(log) == {0: {0: 1}, 1: {0: 1}, 2: {1: 1}}


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__block_although_gpus_are_free(column: str) -> None:
    """One node of 4 GPUs and 8 cores: jobs 0 and 1 need 5 each.

    4 GPUs |00000000001111111111
            0         10
    """
    workload = jobs((0, 10, 1), (1, 10, 1), **{column: [5, 5]})
    assert starts(run(workload, nodes(4, **{column: [8]}), "fcfs")) == {0: 0, 1: 10}
    assert starts(run(workload, nodes(4, **{column: [10]}), "fcfs")) == {0: 0, 1: 1}


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__zero_means_no_limit(column: str) -> None:
    """A node without a limit or a job without a demand is never short."""
    workload = jobs((0, 9, 1), (1, 9, 1), (2, 9, 1), **{column: [100, 100, 0]})
    assert starts(run(workload, nodes(3, **{column: [0]}), "fcfs")) == {0: 0, 1: 1, 2: 2}
    log = run(workload, nodes(1, 3, **{column: [8, 0]}), "fcfs")
    assert allocations(log) == {0: {1: 1}, 1: {1: 1}, 2: {0: 1}}


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__a_gang_is_spread_in_proportion_to_gpus(column: str) -> None:
    """Six GPUs and 12 cores over nodes of 4 GPUs: 8 cores on one, 4 on the other."""
    workload = jobs((0, 9, 6), (1, 9, 1), (2, 9, 1), **{column: [12, 5, 4]})
    log = run(workload, nodes(4, 4, **{column: [8, 8]}), "fcfs+skip")
    assert allocations(log)[0] == {0: 4, 1: 2}
    assert starts(log) == {0: 0, 1: 9, 2: 2}
    assert allocations(log)[2] == {1: 1}


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
@pytest.mark.parametrize(("left", "fits"), [(1, True), (2, False)])
def test_limits__a_nodes_part_is_rounded_up(column: str, left: int, fits: bool) -> None:
    """Three GPUs and four cores over nodes of 2 GPUs and 3 cores.

    Two GPUs take ceil(8/3) = 3 cores, one GPU takes ceil(4/3) = 2: one core is left, not two.
    """
    workload = jobs((0, 10, 3), (1, 10, 1), **{column: [4, left]})
    log = run(workload, nodes(2, 2, **{column: [3, 3]}), "fcfs")
    assert allocations(log)[0] == {0: 2, 1: 1}
    assert starts(log)[1] == (1 if fits else 10)


@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__count_when_the_fewest_nodes_are_worked_out(column: str) -> None:
    """Two GPUs and four cores; a node of 4 GPUs has 3 cores, enough for one GPU of this gang."""
    log = run(jobs((0, 9, 2), **{column: 4}), nodes(4, 4, 4, **{column: [3, 3, 3]}), "fcfs")
    assert allocations(log) == {0: {0: 1, 1: 1}}


@pytest.mark.parametrize("discipline", ["easy", "conservative"])
@pytest.mark.parametrize("column", ["cpus", "memory_mib"])
def test_limits__reservations_count_them_too(column: str, discipline: str) -> None:
    """One node, 8 GPUs, 8 cores. The head needs all cores at 10, so none is spare for job 2.

    cores 0..3 |00000000001111111111
    cores 4..7 |          1111111111222222...
                0         10        20
    """
    workload = jobs((0, 10, 1), (1, 10, 1), (2, 90, 1), **{column: [4, 8, 4]})
    log = run(workload, nodes(8, **{column: [8]}), f"fcfs+{discipline}")
    assert starts(log) == {0: 0, 1: 10, 2: 20}
    shorter = jobs((0, 10, 1), (1, 10, 1), (2, 8, 1), **{column: [4, 8, 4]})
    assert starts(run(shorter, nodes(8, **{column: [8]}), f"fcfs+{discipline}"))[2] == 2


def test_gpu_types__a_job_goes_to_nodes_of_its_set() -> None:
    cluster = nodes(2, 2, 2, gpu_type=["T4", "P100", "H100"])
    workload = jobs(
        *[(0, 9, 1)] * 5,
        gpu_types=[2, 1, -1, 0, 1],
        gpu_type_sets=("T4", "H100|P100", "H100"),
    )
    log = run(workload, cluster, "fcfs")
    assert allocations(log) == {0: {2: 1}, 1: {1: 1}, 2: {0: 1}, 3: {0: 1}, 4: {1: 1}}


def test_gpu_types__a_gang_may_mix_the_types_of_its_set() -> None:
    cluster = nodes(2, 2, 2, gpu_type=["T4", "P100", "H100"])
    workload = jobs((0, 9, 4), gpu_types=0, gpu_type_sets=("H100|P100",))
    assert allocations(run(workload, cluster, "fcfs")) == {0: {1: 2, 2: 2}}


def test_pools__a_node_in_no_pool_is_open_to_all() -> None:
    """Nodes: red, none, blue, one GPU each; three jobs of red, one of blue, one of no pool.

    red  |000000000222222222
    none |111111111444444444
    blue |333333333
          0        9
    """
    cluster = nodes(1, 1, 1, pool=["red", "", "blue"])
    workload = jobs(
        *[(0, 9, 1)] * 5, pool=[0, 0, 0, 1, -1], pool_names=("red", "blue"), name="pools"
    )
    log = run(workload, cluster, "fcfs+skip")
    assert starts(log) == {0: 0, 1: 0, 2: 9, 3: 0, 4: 9}
    assert allocations(log) == {0: {0: 1}, 1: {1: 1}, 3: {2: 1}, 2: {0: 1}, 4: {1: 1}}


def test_pools__are_matched_by_name_and_not_by_number() -> None:
    """The workload's pool 0 is the cluster's pool 1."""
    cluster = nodes(1, 1, pool=["red", "blue"])
    workload = jobs((0, 9, 1), (0, 9, 1), pool=[0, 1], pool_names=("blue", "red"))
    assert allocations(run(workload, cluster, "fcfs")) == {0: {1: 1}, 1: {0: 1}}


def test_pools__and_gpu_types_both_hold() -> None:
    cluster = nodes(1, 1, 1, pool=["red", "red", "blue"], gpu_type=["T4", "H100", "H100"])
    workload = jobs(
        (0, 9, 1), (0, 9, 1), pool=0, gpu_types=0, pool_names=("red",), gpu_type_sets=("H100",)
    )
    log = run(workload, cluster, "fcfs")
    assert allocations(log) == {0: {1: 1}, 1: {1: 1}}
    assert starts(log) == {0: 0, 1: 9}


@pytest.mark.parametrize("placement", ["worst-fit", "scatter"])
@pytest.mark.parametrize("count", [3, 20], ids=["scanned", "indexed"])
def test_pools__can_start_looks_at_the_nodes_the_job_may_use(count: int, placement: str) -> None:
    """Red nodes of two GPUs, one busy on each (under scatter: with all cores); an empty blue one.

    The red job of two GPUs cannot start, so the blue job is first in this order. If the blue node
    counted for the red job, the red job would be first and block it.
    """
    cores = 4 if placement == "scatter" else 0
    cluster = nodes(*[2] * count, 8, pool=["red"] * count + ["blue"], cpus=[cores] * count + [0])
    workload = jobs(
        *[(0, 100, 1)] * count,
        *((1, 10, 2), (1, 10, 8)),
        pool=[0] * (count + 1) + [1],
        pool_names=("red", "blue"),
        cpus=[cores] * (count + 1) + [0],
    )
    log = run(workload, cluster, f"[where(can_start, 0, 1)]@{placement}")
    assert starts(log)[count + 1] == 1
    assert starts(log)[count] == 100


def test_rejected__all_five_reasons() -> None:
    """Red nodes: T4, 4 GPUs, 8 cores, 16 MiB. Blue nodes: H100, 2 GPUs, no limits."""
    cluster = nodes(
        *(4, 4, 2),
        pool=["red", "red", "blue"],
        gpu_type=["T4", "T4", "H100"],
        cpus=[8, 8, 0],
        memory_mib=[16, 16, 0],
    )
    workload = jobs(
        *[(0, 9, 1)] * 2,  # no such pool; no such type in the pool
        *[(1, 9, 9), (1, 9, 8)],  # red has 8 GPUs
        *[(2, 9, 2), (2, 9, 2)],  # 16 cores on two nodes
        *[(3, 9, 2), (3, 9, 2)],  # 32 MiB on two nodes
        *[(4, 9, 1), (4, 9, 11)],  # may use every node
        pool=[1, 0, 0, 0, 0, 0, 0, 0, -1, -1],
        gpu_types=[-1, 0, -1, -1, -1, -1, -1, -1, -1, -1],
        pool_names=("red", "green"),
        gpu_type_sets=("H100",),
        cpus=[0, 0, 0, 0, 17, 16, 0, 0, 99, 0],
        memory_mib=[0, 0, 0, 0, 0, 0, 33, 32, 99, 0],
    )
    log = run(workload, cluster, "fcfs+skip")
    assert rejections(log) == {
        0: REJECT_REASONS[0],
        1: REJECT_REASONS[1],
        2: REJECT_REASONS[2],
        4: REJECT_REASONS[3],
        6: REJECT_REASONS[4],
        9: REJECT_REASONS[2],
    }
    assert set(starts(log)) == {3, 5, 7, 8}
    assert allocations(log)[8] == {2: 1}


def test_rejected__short_of_cores_and_memory_is_short_of_cores() -> None:
    log = run(jobs((0, 9, 1), cpus=9, memory_mib=9), nodes(1, cpus=[8], memory_mib=[8]), "fcfs")
    assert rejections(log) == {0: "its CPUs do not fit on the nodes it may use"}


def test_rejected__a_gang_that_no_split_can_hold() -> None:
    """Two GPUs, three cores on each of two nodes: a gang of 2 GPUs and 7 cores needs 4 on one."""
    log = run(jobs((0, 9, 2), (0, 9, 2), cpus=[7, 6]), nodes(2, 2, cpus=[3, 3]), "fcfs")
    assert rejections(log) == {0: "its CPUs do not fit on the nodes it may use"}
    assert allocations(log) == {1: {0: 1, 1: 1}}


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_rejected__never_blocks_and_is_over_at_once(discipline: str) -> None:
    """Job 0, which is too large, is submitted and rejected at 0; job 1 starts at the same
    instant."""
    log = run(jobs((0, 9, 5), (0, 9, 4)), nodes(4), f"fcfs+{discipline}")
    assert [(row["time"], row["kind"], row["job"]) for row in log.frame().to_dicts()] == [
        (0.0, "submit", 0),
        (0.0, "reject", 0),
        (0.0, "submit", 1),
        (0.0, "start", 1),
        (9.0, "finish", 1),
    ]


@pytest.mark.parametrize("placement", ["first-fit", "scatter", "defrag"])
def test_rejected__more_nodes_than_a_job_may_have(placement: str) -> None:
    """One node may be enough by GPUs (job 1), but not by memory (job 2)."""
    cluster = nodes(4, 8, memory_mib=[100, 200]).with_conditions({"max_nodes": 1})
    workload = jobs((0, 9, 9), (0, 9, 8), (0, 9, 3), memory_mib=[0, 100, 240])
    log = run(workload, cluster, f"fcfs@{placement}")
    reason = "more nodes than a job may have here"
    assert rejections(log) == {0: reason, 2: reason}
    assert starts(log) == {1: 0}


def test_rejected__more_nodes_than_a_job_may_have_is_about_borrowed_ones_too() -> None:
    """Two nodes of its own, or one that it borrows: it may run there only."""
    cluster = dataclasses.replace(
        nodes(2, 2, 4, pool=["a", "a", "b"]),
        pool_rules={"a": PoolRules(borrow=True), "b": PoolRules(lend=True)},
    ).with_conditions({"max_nodes": 1})
    workload = jobs((0, 9, 4), (0, 9, 5), pool=0, pool_names=("a",))
    log = run(workload, cluster, "fcfs")
    assert list(rejections(log)) == [1]
    assert allocations(log) == {0: {2: 4}}


def test_rejected__scatter_rejects_what_consolidated_rejects() -> None:
    cluster = nodes(4, 4)
    for placement in ("first-fit", "scatter"):
        log = run(jobs((0, 9, 9), (0, 9, 8)), cluster, f"fcfs@{placement}")
        assert list(rejections(log)) == [0]
        assert starts(log) == {1: 0}
