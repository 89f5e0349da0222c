"""Each placement of the zoo puts a job where it should, and where simpler rules would not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import allocations, jobs, nodes, run, starts, story

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

LONG = 1000
TYPES = ("V100", "P100", "T4", "A10")


def last_place(log: Schedule) -> dict[int, int]:
    """Return {node: gpus} of the job that was submitted last."""
    found = allocations(log)
    return found[max(found)]


def test_first_available__is_first_fit() -> None:
    workload = jobs((0, LONG, 3), (1, 5, 2), (2, 5, 1))
    found = [
        run(workload, nodes(4, 8, 2), f"fcfs@{rule}").sha256()
        for rule in ("first-available", "first-fit")
    ]
    assert found[0] == found[1]
    assert allocations(run(workload, nodes(4, 8, 2), "fcfs@first-available"))[1] == {1: 2}


def test_least_loaded__by_the_share_that_is_free() -> None:
    """Four of eight GPUs are a smaller share than two of two; worst-fit counts GPUs instead."""
    workload = jobs((0, LONG, 4), (1, 5, 1))
    assert last_place(run(workload, nodes(8, 2), "fcfs@least-loaded")) == {1: 1}
    assert last_place(run(workload, nodes(8, 2), "fcfs@worst-fit")) == {0: 1}


def test_fastest_type__then_fewest_free_gpus() -> None:
    """Nodes 2 and 3 are fast; node 3 is smaller. A gang that does not fit there goes to node 2."""
    cluster = nodes(1, 2, 8, 4, gpu_type=["SLOW", "V100", "FAST", "FAST"])
    assert last_place(run(jobs((0, 5, 1)), cluster, "fcfs@fastest-type")) == {3: 1}
    assert last_place(run(jobs((0, 5, 5)), cluster, "fcfs@fastest-type")) == {2: 5}
    assert last_place(run(jobs((0, 5, 1)), cluster, "fcfs@best-fit")) == {0: 1}
    full = jobs((0, LONG, 8), (0, LONG, 4), (1, 5, 1))
    assert last_place(run(full, cluster, "fcfs@fastest-type")) == {1: 1}


@pytest.mark.parametrize(("gpus", "cpus", "node"), [(1, 8, 1), (4, 1, 0)])
def test_dot_product__a_job_goes_where_what_it_needs_is_free(
    gpus: int, cpus: int, node: int
) -> None:
    """Node 0 has many GPUs and 8 cores, node 1 few GPUs and 64 cores.

    One GPU with 8 cores: 8/64 + 64/4096 against 4/64 + 512/4096. Four with one core: 32/64 + 8/4096
    against 16/64 + 64/4096.
    """
    workload = jobs((0, 5, gpus), cpus=cpus)
    log = run(workload, nodes(8, 4, cpus=[8, 64]), "fcfs@dot-product")
    assert last_place(log) == {node: gpus}


def test_rack_aware__a_gang_stays_in_one_rack() -> None:
    """Job 0 is on node 0 of rack a. A gang of two nodes fits in rack b; first-fit takes 1 and 2."""
    cluster = nodes(2, 2, 2, 2, rack=["a", "a", "b", "b"])
    workload = jobs((0, LONG, 1), (1, 5, 4))
    assert last_place(run(workload, cluster, "fcfs@rack-aware")) == {2: 2, 3: 2}
    assert last_place(run(workload, cluster, "fcfs@first-fit")) == {1: 2, 2: 2}


def test_rack_aware__the_rack_with_the_fewest_free_gpus() -> None:
    """Rack b has three GPUs free on two nodes, rack a four: the next one goes to b, best fit."""
    cluster = nodes(2, 2, 2, 2, rack=["a", "a", "b", "b"])
    workload = jobs((0, 10, 4), (0, LONG, 1), (20, 5, 2))
    log = run(workload, cluster, "fcfs@rack-aware")
    assert allocations(log) == {0: {0: 2, 1: 2}, 1: {2: 1}, 2: {3: 2}}


def test_rack_aware__across_racks_when_no_rack_can() -> None:
    """Every rack has one node: a gang of two nodes cannot stay in one."""
    cluster = nodes(2, 2, 2, rack=["a", "b", "c"])
    assert last_place(run(jobs((0, 5, 4)), cluster, "fcfs@rack-aware")) == {0: 2, 1: 2}


def test_defrag__few_partly_used_nodes() -> None:
    """A gang of six on nodes of four: 2 + 4 leaves one node partly used, 3 + 3 two.

    With two GPUs of node 0 in use it leaves none: 2 + 4 again.
    """
    assert last_place(run(jobs((0, 5, 6)), nodes(4, 4, 4), "fcfs@defrag")) == {0: 2, 1: 4}
    filled = jobs((0, LONG, 2), (1, 5, 6))
    assert last_place(run(filled, nodes(4, 4, 4), "fcfs@defrag")) == {0: 2, 1: 4}


def test_balance__even_use() -> None:
    """3 + 3 is more even than 2 + 4; and the next job goes to the unused node."""
    log = run(jobs((0, LONG, 6), (1, 5, 2)), nodes(4, 4, 4), "fcfs@balance")
    assert allocations(log) == {0: {0: 3, 1: 3}, 1: {2: 2}}


def pinned(*rows: tuple[int, int], gang: int) -> Workload:
    """Return long jobs of (gpus, node), a GPU type for each node; then a gang at 1."""
    workload = [(0, LONG, gpus) for gpus, _ in rows]
    types = [node for _, node in rows]
    return jobs(*workload, (1, 5, gang), gpu_types=[*types, -1], gpu_type_sets=TYPES)


@pytest.mark.parametrize(
    ("placement", "start"),
    [("defrag", 1), ("balance", 1), ("milp-candidates", 1), ("best-fit", LONG), ("fgd", LONG)],
)
def test_tier_2__one_node_more_than_needed_if_that_fills_nodes(placement: str, start: int) -> None:
    """Two GPUs are free on each of three nodes of four; a gang of six needs two nodes when empty.

    On three nodes it leaves none partly used. Rules without tiers wait for two nodes.
    """
    cluster = nodes(4, 4, 4, gpu_type=TYPES[:3]).with_conditions({"gpu_speeds": 0})
    log = run(pinned((2, 0), (2, 1), (2, 2), gang=6), cluster, f"fcfs@{placement}")
    assert starts(log)[3] == start
    assert start == LONG or allocations(log)[3] == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize("placement", ["defrag", "balance", "milp-candidates"])
def test_tier_2__not_if_it_leaves_more_nodes_partly_used(placement: str) -> None:
    """4, 2 and 2 GPUs are free on unused nodes. A gang of seven would leave one GPU over.

    A gang of eight leaves none. Both need two nodes of four on the empty cluster.
    """
    cluster = nodes(4, 4, 2, 2, gpu_type=TYPES).with_conditions({"gpu_speeds": 0})
    log = run(pinned((4, 1), gang=7), cluster, f"fcfs@{placement}")
    assert starts(log)[1] == LONG
    log = run(pinned((4, 1), gang=8), cluster, f"fcfs@{placement}")
    assert allocations(log)[1] == {0: 4, 2: 2, 3: 2}


def test_milp_candidates__the_next_job_decides() -> None:
    """Two nodes of eight; job 0 has one GPU of node 0. Job 1 needs one.

    On node 0: one node is partly used, the range of free GPUs is 2 (6 and 8), a gang of seven fits
    on one node: 10 + 6 - 5 = 11. On node 1: two partly used, range 0, seven fit on both:
    20 - 10 = 10, the better one if job 2 needs seven. If no job waits, every node counts as
    fitting: 10 + 6 - 10 = 6 against 10.
    """
    alone = jobs((0, LONG, 1), (1, 5, 1))
    assert allocations(run(alone, nodes(8, 8), "fcfs@milp-candidates"))[1] == {0: 1}
    followed = jobs((0, LONG, 1), (1, 5, 1), (1, 5, 7))
    assert allocations(run(followed, nodes(8, 8), "fcfs@milp-candidates"))[1] == {1: 1}


def test_fgd__leaves_what_typical_jobs_can_use() -> None:
    """Two GPUs: 350 of one are left (job 19 has 650), 600 of the other (job 20 has 400).

    Typical jobs are twenty of 300, one of 650, one of 400. Job 21 needs 300. On the first GPU 50
    would be left, which none of the 22 jobs can use; two could not use the 350: 1,100 - 700 more.
    On the second, 300 would be left, which two cannot use (600); one could not use the 600: no
    increase. Best-fit takes the first.
    """
    workload = jobs(
        *earlier(19, gpus=1), *((50, LONG, 1), (50, LONG, 1), (51, 5, 1)),
        gpu_milli=[300] * 19 + [650, 400, 300],
    )  # fmt: skip
    fgd, best_fit = (
        story(run(workload, nodes(1, 1), f"fcfs@{rule}")) for rule in ("fgd", "best-fit")
    )
    assert "51 start 21 on 1#0" in fgd
    assert "51 start 21 on 0#0" in best_fit


def test_fgd__keeps_gpus_whole_for_those_who_need_them() -> None:
    """Node 1 has a GPU in parts already. If most jobs are gangs of two, another part goes there.

    Worst-fit takes the node with the most free GPUs and breaks up its pair.
    """
    workload = jobs(
        *earlier(5, gpus=2), *((50, LONG, 1), (50, LONG, 1), (51, 5, 1)),
        gpu_milli=[1000] * 5 + [1000, 500, 500],
        gpu_types=[-1] * 5 + [0, 0, -1],
        gpu_type_sets=("P100",),
    )  # fmt: skip
    cluster = nodes(2, 2, gpu_type=["V100", "P100"])
    assert "51 start 7 on 1#0" in story(run(workload, cluster, "fcfs@fgd"))
    assert "51 start 7 on 0#0" in story(run(workload, cluster, "fcfs@worst-fit"))


def test_fgd__a_whole_gpu_goes_where_cpus_are_short_already() -> None:
    """Job 5 has all cores of node 1: the other GPU there is of no use to typical jobs.

    Job 6 needs no cores and takes it; first-fit takes one of node 0, which typical jobs could use.
    """
    workload = jobs(
        *earlier(5, gpus=1), *((50, LONG, 1), (51, 5, 1)),
        cpus=[4] * 5 + [8, 0],
        gpu_types=[-1] * 5 + [0, -1],
        gpu_type_sets=("P100",),
    )  # fmt: skip
    cluster = nodes(2, 2, gpu_type=["V100", "P100"], cpus=[8, 8])
    assert "51 start 6 on 1:1" in story(run(workload, cluster, "fcfs@fgd"))
    assert "51 start 6 on 0:1" in story(run(workload, cluster, "fcfs@first-fit"))


@pytest.mark.parametrize(("placement", "node"), [("fgd", 0), ("fgd-gangs", 1)])
def test_fgd__a_gang_larger_than_a_node_can_use_none_of_it(placement: str, node: int) -> None:
    """Two GPUs of node 0 are free, and three of the four of node 1. Gangs of four have come before.

    None of them fits now, so all free GPUs are fragments, wherever job 6 takes one; by job 5, which
    needs a P100, those of node 0 count more. By fgd-gangs, half of such a gang could fill node 0,
    so job 6 goes to node 1.
    """
    workload = jobs(
        *earlier(5, 4), (50, LONG, 1), (51, 5, 1),
        gpu_types=[-1] * 5 + [0, -1], gpu_type_sets=("P100",),
    )  # fmt: skip
    cluster = nodes(2, 4, gpu_type=["V100", "P100"])
    assert allocations(run(workload, cluster, f"fcfs@{placement}"))[6] == {node: 1}


@pytest.mark.parametrize(
    ("cores", "node"), [(8, 1), (16, 0)], ids=["the rest lacks cores", "all fits"]
)
def test_fgd__a_typical_job_needs_all_its_cores_on_the_node(cores: int, node: int) -> None:
    """Gangs of four with sixteen cores are usual: they fit on node 1 only if it has as many."""
    workload = jobs(*earlier(5, 4), (50, 5, 1), cpus=[16] * 5 + [0])
    cluster = nodes(8, 4, gpu_type=["V100", "V100"], cpus=[32, cores])
    assert allocations(run(workload, cluster, "fcfs@fgd"))[5] == {node: 1}


def earlier(count: int, gpus: int) -> list[tuple[float, float, int]]:
    """Return jobs that are over before 50."""
    return [(i, 0.5, gpus) for i in range(count)]


def test_formula__over_nodes_and_the_job() -> None:
    """The fewest running jobs, then the highest rack number."""
    cluster = nodes(4, 4, 4, rack=["a", "b", "c"])
    workload = jobs((0, LONG, 1), (1, 5, 1), (2, 5, 1))
    log = run(workload, cluster, "fcfs@[node_running * 10 - node_rack]")
    assert allocations(log) == {0: {2: 1}, 1: {1: 1}, 2: {0: 1}}
