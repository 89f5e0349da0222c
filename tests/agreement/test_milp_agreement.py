"""Under the placement `milp`, both simulators ask for the same plans and log the same fallbacks.

The time limit is far above what these programs take, so that nothing depends on the machine.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.test_agreement import assert_agreement

import berthline as bl
from berthline.model.schedule import (
    FALLBACK,
    NOT_ON_OWN_NODES,
    REFUSE,
    RESUME,
    START,
    TOO_MANY_WAYS,
)
from berthline.policies import milp_loads

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run

    from berthline.model.schedule import Schedule

pytest.importorskip("highspy", reason="the extra milp is not installed")

RUNS = 60


def milp_run(number: int) -> Run:
    """Return a random run with the placement replaced, without what `milp` does not know."""
    run = random_model_run(number)
    scheduler = re.sub(r"@(\[[^\]]*\]|[a-z-]+)", "@milp:k=3:limit=600", run.scheduler)
    quotas = tuple(quota for quota in run.cluster.quotas if not quota.gpu_type)
    cluster = dataclasses.replace(run.cluster, quotas=quotas)
    return dataclasses.replace(run, scheduler=scheduler, cluster=cluster)


def log_of(run: Run) -> Schedule:
    """Return the native core's log."""
    return bl.simulate(
        run.workload,
        run.cluster,
        run.scheduler,
        knowledge=run.knowledge,
        seed=run.seed,
        horizon=run.horizon,
    ).log


def reasons(log: Schedule) -> set[int]:
    """Return the reasons of the log's fallbacks, each of which comes before a start of its job."""
    for row in (log.kind == FALLBACK).nonzero()[0]:
        assert log.job[row + 1] == log.job[row]
        assert log.time[row + 1] == log.time[row]
        assert log.kind[row + 1] in (START, RESUME, REFUSE)
    assert log.fallbacks == (log.kind == FALLBACK).sum()
    return set(log.detail[log.kind == FALLBACK].tolist())


def test_milp_agreement__pinned_numbers() -> None:
    """Jobs that go to borrowed nodes are not planned."""
    seen: set[int] = set()
    for number in range(RUNS):
        run = milp_run(number)
        assert assert_agreement(run), number
        seen |= reasons(log_of(run))
    assert seen == {NOT_ON_OWN_NODES}


def test_milp_agreement__programs_that_are_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(milp_loads, "MOST_LOADS", 12)
    seen: set[int] = set()
    for number in range(RUNS, RUNS + 20):
        run = milp_run(number)
        assert assert_agreement(run), number
        seen |= reasons(log_of(run))
    assert TOO_MANY_WAYS in seen
