"""The placement `milp` logs when and why best-fit replaced a plan."""

from __future__ import annotations

import dataclasses

import pytest
from tests.sim.scenarios import jobs, nodes, run, story

from berthline.model.limits import PoolRules
from berthline.model.schedule import FALLBACK_REASONS, NOT_IN_TIME, TOO_MANY_WAYS
from berthline.policies import milp_loads
from berthline.policies.scheduler import Scheduler

pytest.importorskip("highspy", reason="the extra milp is not installed")

PATIENT = "fcfs@milp:limit=600"


def test_fallback__a_job_that_goes_to_borrowed_nodes() -> None:
    """Red's only node is taken by job 0, so that job 1 borrows blue's."""
    cluster = nodes(2, 2, pool=("red", "blue"))
    rules = {"red": PoolRules(borrow=True), "blue": PoolRules(lend=True)}
    cluster = dataclasses.replace(cluster, pool_rules=rules)
    workload = jobs((0, 10, 2), (3, 10, 2), pool=0, pool_names=("red", "blue"))
    log = run(workload, cluster, PATIENT)
    assert story(log) == [
        "0 submit 0",
        "0 start 0 on 0:2",
        "3 submit 1",
        "3 fallback 1 (its own nodes cannot take it now)",
        "3 start 1 on 1:2",
        "10 finish 0",
        "13 finish 1",
    ]
    assert log.fallbacks == 1


def test_fallback__a_program_that_would_be_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp_loads, "MOST_LOADS", 2)
    log = run(jobs((0, 10, 2), (0, 10, 1)), nodes(4, 2, 3), PATIENT)
    assert f"0 fallback 0 ({FALLBACK_REASONS[TOO_MANY_WAYS]})" in story(log)


def test_fallback__a_solver_without_time() -> None:
    """Without any time, every planned job falls back to best-fit."""
    scheduler = Scheduler.parse("fcfs+skip@milp:k=32")
    hasty = dataclasses.replace(scheduler, plan_seconds=0.0)
    rows = [(0.0, 50.0 + job, 1 + job % 5) for job in range(30)]
    sizes = (8, 7, 6, 5, 8, 7, 6, 5)
    log = run(jobs(*rows), nodes(*sizes), hasty)
    told = [line for line in story(log) if "fallback" in line]
    assert told
    assert all(line.endswith(f"({FALLBACK_REASONS[NOT_IN_TIME]})") for line in told)
    assert len(told) == log.fallbacks


def test_fallback__none_under_other_placements() -> None:
    log = run(jobs((0, 10, 2), (0, 10, 1)), nodes(4, 2, 3), "fcfs@best-fit")
    assert log.fallbacks == 0
