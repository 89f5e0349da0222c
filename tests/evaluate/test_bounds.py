"""No schedule of either simulator goes below the bound, and the bound matches its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run

import berthline as bl
from berthline.errors import PolicyError
from berthline.evaluate.bounds import (
    gap_to_bound,
    jct_lower_bound,
    least_mean_busy_times,
    rejected_jobs,
    srpt_total_jct,
)
from berthline.evaluate.metrics.job_table import REJECTED, completion_times, job_table
from berthline.model.cluster import NodeGroup
from berthline.policies.orders import ORDERS
from berthline.policies.rules import DISCIPLINES, PLACEMENTS, PREEMPTIONS

EPS = np.finfo(float).eps


def assert_bounded(run: Run, simulator: str) -> bool:
    """Return whether there was a run to check."""
    try:
        result = bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
            simulator=simulator,
        )
    except PolicyError:
        return False  # the scheduler needs run times that it does not know
    table = job_table(result.log, run.workload)
    total = float(completion_times(table, run.workload).sum())
    until = np.inf if run.horizon is None else run.horizon
    bound = jct_lower_bound(run.workload, run.cluster, until=until)
    assert bound.jobs == table.counted.sum()
    assert (
        bound == jct_lower_bound(run.workload, run.cluster, counted=table.counted, until=until)
        or not table.counted.any()
    )
    clock = max(table.end, float(run.workload.submit[-1]))
    assert bound.total <= total * (1 + 1e-9) + 8 * EPS * clock * len(run.workload)
    for some in (table.counted & (np.arange(len(run.workload)) % 3 == k) for k in range(3)):
        # The bound also holds for a subset of the jobs: a measurement window counts only some.
        part = jct_lower_bound(run.workload, run.cluster, counted=some, until=until)
        jct = np.fmin(table.finish, table.end)[some] - run.workload.submit[some]
        assert part.total <= jct.sum() * (1 + 1e-9) + 8 * EPS * clock * len(run.workload)
    return True


@pytest.mark.parametrize("block", range(4))
def test_bound__pinned_native_runs__is_below_every_schedule(block: int) -> None:
    """All orders, disciplines, placements and preemption rules occur in these runs."""
    runs = [
        draw(number)
        for number in range(block * 100, block * 100 + 100)
        for draw in (random_run, random_model_run)
    ]
    assert sum(assert_bounded(run, "native") for run in runs) > 150


@settings(max_examples=60, deadline=None)
@given(st.integers(min_value=0, max_value=2**40), st.sampled_from([random_run, random_model_run]))
def test_bound__drawn_native_runs__is_below_every_schedule(number: int, draw) -> None:
    assert_bounded(draw(number), "native")


@settings(max_examples=15, deadline=None)
@given(st.integers(min_value=0, max_value=2**40))
def test_bound__reference_runs__is_below_every_schedule(number: int) -> None:
    assert_bounded(random_model_run(number), "reference")


def every_rule() -> list[str]:
    """A scheduler for every named order, discipline, placement and preemption rule."""
    return [
        *(f"{order}+skip" for order in ORDERS),
        *(f"sjf+{discipline}" for discipline in DISCIPLINES),
        *(f"sjf+easy@{placement}" for placement in PLACEMENTS if placement != "milp"),
        *(f"sjf+skip!{preemption}" for preemption in PREEMPTIONS),
    ]


@pytest.mark.parametrize("cluster", ["uniform:1x16", "uniform:4x4:A100", "philly"])
def test_bound__every_named_rule__is_above_it(cluster: str) -> None:
    rng = np.random.default_rng(5)
    jobs = 120
    run = rng.lognormal(5, 1.5, jobs)
    workload = bl.Workload.from_columns(
        submit=np.sort(rng.uniform(0, 4000, jobs)),
        run=run,
        gpus=rng.choice([1, 1, 2, 4, 8], jobs),
        priority=rng.integers(0, 3, jobs),
        user=rng.integers(0, 4, jobs),
        estimate=run,
    )
    nodes = bl.Cluster.parse(cluster)
    bound = jct_lower_bound(workload, nodes)
    closest = np.inf
    for scheduler in every_rule():
        mean = bl.simulate(workload, nodes, scheduler, knowledge="exact").metrics().jct.mean
        assert mean >= bound.mean * (1 - 1e-9), scheduler
        closest = min(closest, mean)
    assert closest < 2.5 * bound.mean, "a bound far below everything says nothing"


def test_bound__jobs_alone__is_met() -> None:
    """With a GPU for every job, JCTs are the run times."""
    workload = bl.Workload.from_columns(submit=[0, 5, 9], run=[100, 50, 25], gpus=[2, 1, 1])
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x4"))
    assert (bound.total, bound.run_times, bound.jobs) == (175, 175, 3)
    assert bound.mean == pytest.approx(175 / 3)


def test_bound__gangs_as_wide_as_the_cluster__srpt_is_met() -> None:
    workload = bl.Workload.from_columns(submit=[0, 1, 2], run=[30, 10, 20], gpus=[4, 4, 4])
    cluster = bl.Cluster.parse("uniform:1x4").with_conditions({"checkpoint": 0, "restart": 0})
    bound = jct_lower_bound(workload, cluster)
    result = bl.simulate(workload, cluster, "srpt+skip!srpt", knowledge="exact")
    assert bound.total == bound.srpt == pytest.approx(60 + 10 + 29)
    assert result.metrics().jct.mean * 3 == pytest.approx(bound.total)


def test_bound__many_equal_jobs__busy_times_are_met() -> None:
    """Batches of single GPUs: half a run time is what the one fast machine leaves out."""
    workload = bl.Workload.from_columns(submit=[0] * 40, run=[10] * 40, gpus=[1] * 40)
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x4"))
    assert bound.total == bound.busy_times == pytest.approx(4 * sum(range(10, 101, 10)))
    assert bound.srpt == pytest.approx(sum(2.5 * k for k in range(1, 41)))


def test_bound__horizon__cuts_every_job_off_there() -> None:
    workload = bl.Workload.from_columns(submit=[0, 0, 50], run=[10, 100, 10], gpus=[1, 1, 1])
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x1"), until=40)
    assert bound.total == 10 + 40
    assert (bound.jobs, bound.busy_times) == (2, None)


def test_bound__faster_gpus__shorten_holds__but_not_beyond_the_nodes_that_have_them() -> None:
    fast = bl.Cluster.from_groups(
        [NodeGroup(count=1, gpus=2, gpu_type="V100"), NodeGroup(count=1, gpus=2, gpu_type="T4")]
    )
    t4 = next(kind for kind in fast.types if kind.name == "T4").speed
    workload = bl.Workload.from_columns(submit=[0], run=[60], gpus=[2])
    assert jct_lower_bound(workload, fast).run_times == pytest.approx(60)
    gang = bl.Workload.from_columns(submit=[0], run=[60], gpus=[3])
    assert jct_lower_bound(gang, fast).run_times == pytest.approx(60 / t4)
    apart = fast.with_conditions({"across_nodes": 0.5, "start_delay": 7})
    assert jct_lower_bound(gang, apart).run_times == pytest.approx(120 / t4 + 7)
    level = fast.with_conditions({"gpu_speeds": 0})
    assert jct_lower_bound(gang, level).run_times == pytest.approx(60)


def test_bound__speeds_differ__all_gpus_are_not_taken_for_the_fastest() -> None:
    """40 jobs on a fast and a slow GPU: the machine is as fast as both, not twice the fast one."""
    cluster = bl.Cluster.from_groups(
        [NodeGroup(count=1, gpus=1, gpu_type="V100"), NodeGroup(count=1, gpus=1, gpu_type="T4")]
    )
    t4 = next(kind for kind in cluster.types if kind.name == "T4").speed
    workload = bl.Workload.from_columns(submit=[0] * 40, run=[10] * 40, gpus=[1] * 40)
    srpt = sum(10 / (1 + t4) * k for k in range(1, 41))
    assert jct_lower_bound(workload, cluster).srpt == pytest.approx(srpt)


def test_bound__pools_that_share_no_node__are_bounded_apart() -> None:
    cluster = bl.Cluster.from_groups(
        [NodeGroup(count=1, gpus=4, pool="a"), NodeGroup(count=1, gpus=4, pool="b")]
    )
    columns = {"submit": [0] * 8, "run": [10] * 8, "gpus": [4] * 8, "pool_names": ("a", "b")}
    bound = jct_lower_bound(bl.Workload.from_columns(**columns, pool=0), cluster)
    assert bound.srpt == pytest.approx(10 * sum(range(1, 9)))
    even = jct_lower_bound(bl.Workload.from_columns(**columns, pool=[0, 1] * 4), cluster)
    assert even.srpt == pytest.approx(2 * 10 * sum(range(1, 5)))
    shared = jct_lower_bound(bl.Workload.from_columns(**columns, pool=[0] * 7 + [-1]), cluster)
    assert shared.srpt == pytest.approx(5 * sum(range(1, 9)))


def test_bound__jobs_without_gpus__count_with_their_run_times() -> None:
    workload = bl.Workload.from_columns(
        submit=[0, 0, 0], run=[10, 10, 70], gpus=[1, 1, 0], cpus=[0, 0, 1]
    )
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x1"))
    assert (bound.run_times, bound.srpt) == (90, 100)


def test_bound__nothing_counted__is_zero() -> None:
    workload = bl.Workload.from_columns(submit=[0], run=[10], gpus=[9])
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x1"))
    assert (bound.total, bound.jobs) == (0, 0)
    assert np.isnan(bound.mean)
    assert gap_to_bound(0.0, bound) is None


def test_gap__is_the_share_above_the_bound() -> None:
    workload = bl.Workload.from_columns(submit=[0, 0], run=[10, 10], gpus=[1, 1])
    bound = jct_lower_bound(workload, bl.Cluster.parse("uniform:1x1"))
    assert gap_to_bound(bl.simulate(workload, "uniform:1x1", "fcfs").metrics().jct.mean, bound) == 0
    assert gap_to_bound(22.5, bound) == pytest.approx(0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=0, max_value=2**40))
def test_rejected_jobs__are_those_of_a_run(number: int) -> None:
    run = random_model_run(number)
    last = float(run.workload.submit[-1]) + 1
    result = bl.simulate(run.workload, run.cluster, "fcfs+skip", knowledge="none", horizon=last)
    table = job_table(result.log, run.workload)
    rejected = rejected_jobs(run.workload, run.cluster)
    assert (rejected == (table.status == REJECTED)).all()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), min_size=1, max_size=6),
    st.integers(1, 30),
)
def test_srpt__is_the_second_by_second_definition(jobs: list[tuple[int, int]], until: int) -> None:
    jobs.sort()
    submit, size = (np.array(column, float) for column in zip(*jobs, strict=True))
    assert srpt_total_jct(submit, size) == total_by_seconds(jobs, 1000, lambda job, left: left)
    early = [job for job in jobs if job[0] <= until]
    cut = srpt_total_jct(submit[: len(early)], size[: len(early)], until=until)
    assert cut == total_by_seconds(early, until, lambda job, left: left)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3)), min_size=1, max_size=3))
def test_busy_times__no_order_of_unit_pieces_has_smaller_means(jobs: list[tuple[int, int]]) -> None:
    jobs.sort()
    submit, size = (np.array(column, float) for column in zip(*jobs, strict=True))
    pieces = [(job, s, w) for job, (s, w) in enumerate(jobs) for _ in range(w)]
    least = np.inf
    for order in set(itertools.permutations(pieces)):
        clock, means = 0.0, 0.0
        for _, begin, whole in order:
            clock = max(clock, begin) + 1
            means += (clock - 0.5) / whole
        least = min(least, means)
    assert least_mean_busy_times(submit, size) == pytest.approx(least)


def total_by_seconds(jobs: list[tuple[int, int]], until: int, index) -> float:
    """Serve the job with the smallest index for one second, repeatedly."""
    left = [work for _, work in jobs]
    total = 0.0
    for second in range(until):
        there = [j for j, (submit, _) in enumerate(jobs) if submit <= second and left[j]]
        total += len(there)
        if there:
            left[min(there, key=lambda j: (index(j, left[j]), j))] -= 1
        if not any(left):
            break
    return total
