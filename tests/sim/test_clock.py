"""Time: the order of events at one instant, ties, the horizon, and times lost to rounding."""

from __future__ import annotations

import ast
import inspect
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.sim.scenarios import events, jobs, nodes, order, run, starts

import berthline as bl
from berthline.errors import ConfigError
from berthline.model.schedule import FINISH, REJECT, START, SUBMIT
from berthline.sim import reference_clock
from berthline.sim.reference_clock import Clock


def test_one_instant__finishes_then_arrivals_then_one_decision() -> None:
    """Job 0 ends at 10, as job 1 arrives: the GPU is free for it at once."""
    log = run(jobs((0, 10, 1), (10, 5, 1)), nodes(1), "fcfs")
    assert events(log) == [
        *((0, SUBMIT, 0), (0, START, 0)),
        *((10, FINISH, 0), (10, SUBMIT, 1), (10, START, 1)),
        (15, FINISH, 1),
    ]
    assert log.decisions == 3


def test_one_instant__several_of_each_by_job_id() -> None:
    """Jobs 1 and 0 end together (started in the other order), jobs 2 to 4 arrive; 3 is rejected."""
    workload = jobs((0, 10, 1), (0, 10, 1), (10, 5, 1), (10, 5, 9), (10, 5, 1))
    log = run(workload, nodes(2), "lcfs")
    assert order(log)[:2] == [0, 1], "equal submission times: the lowest id first"
    workload = jobs((0, 10, 1), (1, 9, 1), (10, 5, 1), (10, 5, 9), (10, 5, 1))
    log = run(workload, nodes(2), "largest-first")
    assert events(log)[4:] == [
        *((10, FINISH, 0), (10, FINISH, 1)),
        *((10, SUBMIT, 2), (10, SUBMIT, 3), (10, REJECT, 3), (10, SUBMIT, 4)),
        *((10, START, 2), (10, START, 4)),
        *((15, FINISH, 2), (15, FINISH, 4)),
    ]
    assert log.decisions == 4


def test_one_instant__all_arrivals_are_seen_before_anyone_starts() -> None:
    """Four jobs at 0 for one GPU: the shortest goes first, though it arrives last."""
    log = run(jobs((0, 4, 1), (0, 3, 1), (0, 2, 1), (0, 1, 1)), nodes(1), "sjf")
    assert order(log) == [3, 2, 1, 0]
    assert [kind for _, kind, _ in events(log)][:5] == [SUBMIT] * 4 + [START]


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
@pytest.mark.parametrize("formula", ["0", "0/0", "wait * 0", "where(gpus > 1, -0, 0)", "1e999"])
def test_ties__go_to_the_lowest_id(formula: str, discipline: str) -> None:
    workload = jobs((0, 5, 2), (1, 5, 1), (1, 5, 2), (1, 5, 1), (1, 5, 2))
    assert order(run(workload, nodes(2), f"[{formula}]+{discipline}"))[:2] == [0, 1]
    strict = run(workload, nodes(2), f"[{formula}]+strict")
    assert order(strict) == [0, 1, 2, 3, 4]


def test_order__not_a_number_goes_last_with_infinity() -> None:
    """Keys: job 1 NaN, job 2 infinity, job 3 large, job 4 -infinity."""
    workload = jobs(*[(0, 1, 1)] * 5, priority=[0, 1, 2, 3, 4])
    key = (
        "where(priority == 1, 0/0, where(priority == 2, 1/0, "
        "where(priority == 3, 1e300, where(priority == 4, -1/0, -1e300))))"
    )
    assert order(run(workload, nodes(1), f"[{key}]")) == [4, 0, 3, 1, 2]


def test_horizon__events_at_it_happen_and_later_ones_do_not() -> None:
    """Job 0 ends at 10 and job 1 starts; job 2 would arrive at 10.5."""
    workload = jobs((0, 10, 1), (1, 5, 1), (10.5, 1, 1))
    log = run(workload, nodes(1), "fcfs", horizon=10)
    assert events(log)[-2:] == [(10, FINISH, 0), (10, START, 1)]
    assert log.horizon == 10
    assert log.decisions == 3
    before = run(workload, nodes(1), "fcfs", horizon=np.nextafter(10, 0))
    assert events(before) == [(0, SUBMIT, 0), (0, START, 0), (1, SUBMIT, 1)]
    metrics = bl.simulate(workload, nodes(1), "fcfs", horizon=10).metrics()
    assert metrics.jobs.submitted == 2
    assert metrics.jobs.completed == metrics.jobs.unfinished == 1


def test_horizon__before_the_first_job_leaves_an_empty_log() -> None:
    log = run(jobs((5, 1, 1)), nodes(1), "fcfs", horizon=4)
    assert len(log) == len(log.alloc_node) == log.decisions == 0


def test_horizon__after_the_end_changes_nothing() -> None:
    workload = jobs((0, 10, 1), (1, 5, 1))
    log = run(workload, nodes(1), "fcfs", horizon=1e9)
    assert log.sha256() == run(workload, nodes(1), "fcfs").sha256()


@pytest.mark.parametrize("horizon", [0, -1, np.nan, -np.inf])
def test_horizon__must_be_positive(horizon: float) -> None:
    with pytest.raises(ConfigError) as caught:
        bl.simulate(jobs((0, 1, 1)), nodes(1), "fcfs", horizon=horizon)
    assert caught.value.what == f"horizon is {horizon}"
    assert caught.value.expected == "seconds, more than 0"


def test_rounding__finish_is_start_plus_run_as_floats_add() -> None:
    """0.1 + 0.2 is not 0.3: the next job starts where the float sum says."""
    log = run(jobs((0.1, 0.2, 1), (0.1, 0.2, 1)), nodes(1), "fcfs")
    assert starts(log)[1] == 0.1 + 0.2
    assert events(log)[-1][0] == 0.1 + 0.2 + 0.2


@pytest.mark.parametrize("discipline", ["strict", "skip", "easy", "conservative"])
def test_rounding__a_run_time_that_vanishes_ends_at_its_own_start(discipline: str) -> None:
    """At 1e16 s neighbouring times are 2 s apart: jobs of 0.5 s end when they start.

    Each finish is a separate instant, with its own decision point.
    """
    workload = jobs((1e16, 0.5, 1), (1e16, 0.5, 1), (1e16 + 2, 0.5, 1))
    log = run(workload, nodes(1), f"fcfs+{discipline}")
    assert [(kind, job) for _, kind, job in events(log)] == [
        *((SUBMIT, 0), (SUBMIT, 1), (START, 0), (FINISH, 0), (START, 1), (FINISH, 1)),
        *((SUBMIT, 2), (START, 2), (FINISH, 2)),
    ]
    assert {time for time, _, _ in events(log)} == {1e16, 1e16 + 2}
    assert log.decisions == 5


def test_rounding__tiny_run_times() -> None:
    """Shortest positive run times; they do not advance the clock."""
    tiny = 5e-324
    log = run(jobs((0, tiny, 1), (0, tiny, 1), (1, tiny, 1)), nodes(1), "fcfs")
    assert starts(log) == {0: 0, 1: tiny, 2: 1}
    assert log.time.tolist() == [0, 0, 0, tiny, tiny, 2 * tiny, 1, 1, 1]


def test_times__largest_floats_do_not_overflow_into_an_endless_run() -> None:
    """A finish beyond the largest float never happens: the job is unfinished."""
    log = run(jobs((0, 1.7e308, 1), (1, 1.7e308, 1)), nodes(1), "fcfs")
    assert events(log)[-1] == (1.7e308, START, 1)


TWO_STEPS = [
    (now / 10, time / 10)
    for now in range(1, 20)
    for time in range(2 * now, 200)
    if now / 10 + (time / 10 - now / 10) != time / 10
]
"""(now, time) where one delay misses the time by a bit, such as 0.4 + (1.7 - 0.4)."""


def test_clock__calls_at_exactly_the_given_time() -> None:
    assert (0.4, 1.7) in TWO_STEPS
    for now, time in [*TWO_STEPS, (0.0, 0.1), (1.0, 1.0), (2.5, 1.7e308)]:
        clock, called = Clock(now), []
        clock.at(time, lambda _, c=clock, to=called: to.append(c.now))
        clock.run()
        assert called == [time]


@pytest.mark.parametrize(("now", "time"), [(0.0, 3.0), *TWO_STEPS[:5]])
def test_clock__what_is_planned_before_its_time_comes_before_what_is_planned_at_it(
    now: float, time: float
) -> None:
    """Also if `at` needs two steps, so that its second step is planned last of all."""
    clock, called = Clock(now), []

    def first(name: str) -> None:
        called.append(name)
        clock.after(0, lambda _: called.append("planned at it"))

    clock.at(time, lambda _: first("a"))
    clock.at((now + time) / 2, lambda _: clock.after(time - clock.now, lambda _: first("b")))
    clock.run()
    assert sorted(called[:2]) == ["a", "b"]
    assert called[2:] == ["planned at it"] * 2


def test_clock__uses_the_public_interface_of_simpy_only() -> None:
    """An attribute with a leading underscore belongs to SimPy's implementation."""
    tree = ast.parse(inspect.getsource(reference_clock))
    names = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert names
    assert not [name for name in names if name.startswith("_")]


def test_simpy__is_an_ordinary_dependency() -> None:
    """So `--simulator reference` works on every install, without the extra `dev`."""
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [text for text in project["dependencies"] if text.startswith("simpy")]
