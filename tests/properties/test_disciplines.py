"""What each discipline promises, checked on random runs against small oracles of its own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.agreement.random_runs import random_cluster, random_workload
from tests.properties.progress import rate
from tests.properties.replayed_log import ReplayedLog
from tests.sim.scenarios import allocations, starts

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup
from berthline.model.workload import Workload
from berthline.policies.rules import DISCIPLINES

blocks = pytest.mark.parametrize("block", range(4))


def shadow_time(replay: ReplayedLog, head: int, now: float) -> float:
    """Return when the head fits if running jobs end when they will."""
    free = {name: list(amounts) for name, amounts in replay.free.items()}
    ends = sorted(
        (max(one.start + float(replay.workload.run[job]) / rate(replay, job), now), job)
        for job, one in replay.running.items()
    )
    while ends:
        time = ends[0][0]
        while ends and ends[0][0] == time:
            job = ends.pop(0)[1]
            replay.give_back(free, job, replay.running[job].allocation)
        if replay.fits(head, free):
            return time
    raise AssertionError("the head does not fit on the empty cluster")


@blocks
@pytest.mark.parametrize("placement", ["first-fit", "best-fit", "worst-fit", "random"])
def test_easy__never_delays_the_head_beyond_its_shadow_time(block: int, placement: str) -> None:
    """With exact run times, the head starts by the time that was reserved when it first blocked."""
    promises = 0
    for number in range(25):
        rng = np.random.default_rng([block, number, 0xEA5])
        cluster = random_cluster(rng)
        workload = random_workload(rng, cluster)
        log = bl.simulate(workload, cluster, f"fcfs+easy@{placement}", knowledge="exact").log
        started = starts(log)
        replay = ReplayedLog(log, workload, cluster)
        promised: dict[int, float] = {}
        for now in replay.instants():
            if replay.waiting and replay.waiting[0] not in promised:
                head = replay.waiting[0]
                promised[head] = shadow_time(replay, head, now)
        for head, time in promised.items():
            assert started[head] <= time
        promises += len(promised)
    assert promises > 30


def test_easy__backfilling_does_happen() -> None:
    """The property above would also hold for strict; EASY must be better on the whole."""
    waits = {"strict": 0.0, "easy": 0.0, "conservative": 0.0}
    for number in range(25):
        rng = np.random.default_rng([number, 0xEA5])
        cluster = random_cluster(rng)
        workload = random_workload(rng, cluster)
        for discipline in waits:
            result = bl.simulate(workload, cluster, f"fcfs+{discipline}", knowledge="exact")
            waits[discipline] += np.nan_to_num(result.metrics().wait.mean)
    assert waits["easy"] < 0.9 * waits["strict"]
    assert waits["conservative"] < 0.9 * waits["strict"]


def conservative_oracle(workload: Workload, sizes: list[int]) -> dict[int, dict[int, int]]:
    """Return {job: (start, allocation)} when jobs, in order of submission, take the earliest place.

    Earlier jobs are fixed, later ones unknown; nodes without limits, first-fit over the fewest
    nodes. With exact run times this is what conservative backfilling amounts to.
    """
    placed: list[tuple[float, float, dict[int, int]]] = []
    found = {}
    for job in range(len(workload)):
        submit, run, left = (
            float(workload.submit[job]),
            float(workload.run[job]),
            int(workload.gpus[job]),
        )
        held = np.cumsum(sorted(sizes, reverse=True))
        if held[-1] < left:
            continue
        nodes_min = int(np.flatnonzero(held >= left)[0]) + 1
        times = sorted({submit, *(time for one in placed for time in one[:2] if time > submit)})
        for begin in times:
            instants = [begin, *(t for one in placed for t in one[:2] if begin < t < begin + run)]
            free = [
                min(
                    size - sum(a.get(node, 0) for s, e, a in placed if s <= t < e) for t in instants
                )
                for node, size in enumerate(sizes)
            ]
            if sum(sorted(free, reverse=True)[:nodes_min]) < left:
                continue
            allocation: dict[int, int] = {}
            for others in reversed(range(nodes_min)):
                rest = sorted((f for n, f in enumerate(free) if n not in allocation), reverse=True)
                at_least = left - sum(rest[:others])
                node = next(n for n, f in enumerate(free) if n not in allocation and f >= at_least)
                allocation[node] = min(free[node], left)
                left -= allocation[node]
            placed.append((begin, begin + run, allocation))
            found[job] = (begin, allocation)
            break
    return found


@blocks
def test_conservative__no_job_starts_later_than_its_first_reservation(block: int) -> None:
    """Exact run times: every job starts when, and where, it was reserved at its submission."""
    for number in range(12):
        rng = np.random.default_rng([block, number, 0xC05])
        sizes = rng.choice([1, 2, 4, 8], int(rng.integers(1, 7))).tolist()
        cluster = Cluster.from_groups(NodeGroup(count=1, gpus=gpus) for gpus in sizes)
        num_jobs = int(rng.integers(2, 30))
        workload = Workload.from_columns(
            submit=np.cumsum(rng.integers(0, 12, num_jobs)),
            run=rng.integers(1, 60, num_jobs),
            gpus=rng.integers(1, sum(sizes) + 2, num_jobs),
        )
        log = bl.simulate(workload, cluster, "fcfs+conservative", knowledge="exact").log
        reserved = conservative_oracle(workload, sizes)
        assert starts(log) == {job: start for job, (start, _) in reserved.items()}
        assert allocations(log) == {job: allocation for job, (_, allocation) in reserved.items()}


@blocks
@pytest.mark.parametrize("discipline", ["strict", "skip"])
def test_scatter__starts_jobs_as_one_large_node_would(block: int, discipline: str) -> None:
    """On nodes without limits, any number of nodes is as good as one."""
    for number in range(30):
        rng = np.random.default_rng([block, number, 0x5CA])
        sizes = rng.choice([1, 2, 4, 8], int(rng.integers(2, 30))).tolist()
        many = Cluster.from_groups(NodeGroup(count=1, gpus=gpus) for gpus in sizes)
        one = Cluster.uniform(nodes=1, gpus_per_node=sum(sizes))
        workload = random_workload(rng, many)
        workload = Workload.from_columns(
            submit=workload.submit, run=workload.run, gpus=workload.gpus, estimate=workload.run
        )
        for order in ("fcfs", "sjf", "wfp3"):
            scattered = bl.simulate(workload, many, f"{order}+{discipline}@scatter").log
            pooled = bl.simulate(workload, one, f"{order}+{discipline}").log
            for column in ("time", "kind", "job"):
                np.testing.assert_array_equal(getattr(scattered, column), getattr(pooled, column))


@pytest.mark.parametrize("discipline", [name for name in DISCIPLINES if name != "rounds"])
def test_fcfs_on_one_gpu__is_the_same_under_every_discipline(discipline: str) -> None:
    """With one GPU there is nothing to pass with: Lindley's recursion gives every start."""
    rng = np.random.default_rng(5)
    submit = np.cumsum(rng.integers(0, 20, 300)).astype(float)
    run = rng.integers(1, 20, 300).astype(float)
    workload = Workload.from_columns(submit=submit, run=run, gpus=1, rebase=False)
    log = bl.simulate(workload, "uniform:1x1", f"fcfs+{discipline}", knowledge="exact").log
    free = 0.0
    for job, start in starts(log).items():
        assert start == max(free, submit[job])
        free = start + run[job]
