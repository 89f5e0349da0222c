"""The optimum of tiny instances: against brute force, a mixed-integer program and heuristics."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import berthline as bl
from berthline.errors import ConfigError
from berthline.evaluate.bounds import jct_lower_bound
from berthline.evaluate.optimum import MOST_JOBS, jct_optimum
from berthline.policies.orders import ORDERS

Job = tuple[int, int, int]  # submit, run, gpus

TINY = st.lists(
    st.tuples(st.integers(0, 6), st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=3
)
SMALL = st.lists(
    st.tuples(st.integers(0, 15), st.integers(1, 12), st.integers(1, 4)), min_size=1, max_size=7
)


def workload_of(jobs: list[Job]) -> bl.Workload:
    submit, run, gpus = zip(*sorted(jobs), strict=True)
    return bl.Workload.from_columns(submit=submit, run=run, gpus=gpus, estimate=run, rebase=False)


def is_feasible(jobs: list[Job], start: list[float], gpus: int) -> bool:
    """No job starts before its submission, and no start exceeds the GPUs there are."""
    rows = list(zip(jobs, start, strict=True))
    return all(begin >= job[0] for job, begin in rows) and all(
        sum(job[2] for job, begin in rows if begin <= now < begin + job[1]) <= gpus for now in start
    )


@settings(max_examples=40, deadline=None)
@given(TINY)
def test_optimum__is_that_of_all_whole_starts(jobs: list[Job]) -> None:
    """All combinations of whole seconds; none is better with whole submissions and run times."""
    jobs.sort()
    last = max(job[0] for job in jobs) + sum(job[1] for job in jobs)
    least = min(
        sum(begin + job[1] - job[0] for job, begin in zip(jobs, start, strict=True))
        for start in itertools.product(*(range(job[0], last + 1) for job in jobs))
        if is_feasible(jobs, list(start), 3)
    )
    found = jct_optimum(workload_of(jobs), bl.Cluster.parse("uniform:1x3"))
    assert found.total == least
    assert is_feasible(jobs, found.start, 3)


@settings(max_examples=30, deadline=None)
@given(SMALL)
def test_optimum__is_that_of_a_mixed_integer_program(jobs: list[Job]) -> None:
    pytest.importorskip("highspy", reason="the extra milp is not installed")
    jobs.sort()
    found = jct_optimum(workload_of(jobs), bl.Cluster.parse("uniform:1x4"))
    assert found.total == pytest.approx(by_time_indexed_program(jobs, 4))
    assert is_feasible(jobs, found.start, 4)


def test_optimum__gpus_given_back_at_one_instant_count_together() -> None:
    """Three small jobs at once; when two of them end at 1, the large one gets its three GPUs."""
    jobs = workload_of([(0, 1, 1), (0, 1, 1), (0, 1, 3), (0, 2, 1)])
    found = jct_optimum(jobs, bl.Cluster.parse("uniform:1x4"))
    assert (found.total, found.start) == (6, [0, 0, 1, 0])


@settings(max_examples=60, deadline=None)
@given(SMALL, st.sampled_from(sorted(ORDERS)), st.sampled_from(["strict", "skip", "easy"]))
def test_optimum__lies_between_the_bound_and_every_heuristic(
    jobs: list[Job], order: str, discipline: str
) -> None:
    workload, cluster = workload_of(jobs), bl.Cluster.parse("uniform:1x4")
    found = jct_optimum(workload, cluster)
    assert jct_lower_bound(workload, cluster).total <= found.total * (1 + 1e-12)
    result = bl.simulate(workload, cluster, f"{order}+{discipline}", knowledge="exact")
    assert found.total <= result.metrics().jct.mean * len(workload) * (1 + 1e-12)


def test_optimum__idling_can_pay() -> None:
    """No scheduler that never keeps GPUs idle finds it: the long job must wait for the short."""
    workload = bl.Workload.from_columns(submit=[0, 1], run=[100, 1], gpus=[2, 2])
    found = jct_optimum(workload, bl.Cluster.parse("uniform:1x2"))
    assert (found.start, found.total) == ([2.0, 1.0], 102 + 1)


def test_optimum__faster_gpus_and_rejected_jobs() -> None:
    workload = bl.Workload.from_columns(submit=[0, 0], run=[100, 1], gpus=[2, 3])
    cluster = bl.Cluster.parse("uniform:1x2:A100")
    found = jct_optimum(workload, cluster)
    result = bl.simulate(workload, cluster, "fcfs")
    assert found.total == pytest.approx(result.metrics().jct.mean)
    assert found.start[0] == 0
    assert np.isnan(found.start[1])


def test_optimum__equal_jobs__are_not_searched_in_every_order() -> None:
    workload = bl.Workload.from_columns(
        submit=[0] * MOST_JOBS, run=[5] * MOST_JOBS, gpus=[1] * MOST_JOBS
    )
    found = jct_optimum(workload, bl.Cluster.parse("uniform:1x4"))
    assert found.total == 4 * (5 + 10) + 2 * 15
    assert found.visited < 100


@pytest.mark.parametrize(
    ("columns", "cluster", "what"),
    [
        ({"gpus": [1] * (MOST_JOBS + 1)}, "uniform:1x4", "an optimum of 11 jobs"),
        ({"gpus": [1]}, "uniform:2x4", "more than one node"),
        ({"gpus": [1], "gpu_milli": 500}, "uniform:1x4", "part of a GPU"),
    ],
)
def test_optimum__more_than_it_models__is_refused(columns: dict, cluster: str, what: str) -> None:
    jobs = len(columns["gpus"])
    workload = bl.Workload.from_columns(submit=[0] * jobs, run=[1] * jobs, **columns)
    with pytest.raises(ConfigError, match=what):
        jct_optimum(workload, bl.Cluster.parse(cluster))


@pytest.mark.parametrize(
    ("condition", "what"), [("start_delay", "delays"), ("tick", "delays"), ("mtbf", "failures")]
)
def test_optimum__conditions_it_does_not_model__are_refused(condition: str, what: str) -> None:
    workload = bl.Workload.from_columns(submit=[0], run=[1], gpus=[1])
    cluster = bl.Cluster.parse("uniform:1x4").with_conditions({condition: 5})
    with pytest.raises(ConfigError, match=what):
        jct_optimum(workload, cluster)


def by_time_indexed_program(jobs: list[Job], gpus: int) -> float:
    """Return the optimum of a program with a column per job and start, and a row per second."""
    from berthline.policies.milp import Program

    program = Program()
    # No active schedule is idle while a job waits, so nothing starts after this.
    last = max(job[0] for job in jobs) + sum(job[1] for job in jobs)
    held: dict[int, list[tuple[int, int]]] = {}
    costs: list[float] = []
    for submit, run, wanted in jobs:
        starts = np.arange(submit, last + 1)
        columns = program.integers(starts + run - submit, 0, 1)
        costs.extend(starts + run - submit)
        program.row(1, 1, (columns, 1))
        for column, begin in zip(columns.tolist(), starts.tolist(), strict=True):
            for second in range(begin, begin + run):
                held.setdefault(second, []).append((column, wanted))
    for entries in held.values():
        columns, amounts = (np.array(part) for part in zip(*entries, strict=True))
        program.row(0, gpus, (columns, amounts))
    solution = program.solve(60.0, 0)
    assert not isinstance(solution, int)
    return float(solution @ np.array(costs))
