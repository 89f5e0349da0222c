"""The native core gives the reference simulator's log over the full cluster model too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import (
    random_model_run,
    random_reservation_run,
    random_round_run,
)
from tests.agreement.test_agreement import assert_agreement

import berthline as bl
from berthline.model.schedule import END_OF_ROUND, KINDS, NODE_WENT_DOWN, PREEMPT, WHOLE_GPUS

if TYPE_CHECKING:
    from tests.agreement.random_runs import Run

RUNS_PER_BLOCK = 50


@pytest.mark.parametrize("block", range(10))
def test_model_agreement__pinned_numbers(block: int) -> None:
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        assert assert_agreement(random_model_run(number)), number


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=1_000_000, max_value=2**40))
def test_model_agreement__drawn_numbers(number: int) -> None:
    assert assert_agreement(random_model_run(number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_model_agreement__many_numbers(block: int) -> None:
    for number in range(10_000 + block * RUNS_PER_BLOCK, 10_000 + (block + 1) * RUNS_PER_BLOCK):
        assert assert_agreement(random_model_run(number)), number


def test_model_runs__meet_everything_the_log_can_say() -> None:
    """Agreement on runs in which nothing happens would be worth little."""
    kinds: set[str] = set()
    reasons: set[tuple[str, int]] = set()
    shared = 0
    for number in range(10 * RUNS_PER_BLOCK):
        run = random_model_run(number)
        log = bl.simulate(
            run.workload,
            run.cluster,
            run.scheduler,
            knowledge=run.knowledge,
            seed=run.seed,
            horizon=run.horizon,
        ).log
        kinds |= {KINDS[kind] for kind in log.kind.tolist()}
        for kind in ("reject", "preempt"):
            reasons |= {(kind, d) for d in log.detail[log.kind == KINDS.index(kind)].tolist()}
        shared += int((log.alloc_slot != WHOLE_GPUS).sum())
    assert kinds == set(KINDS) - {"fallback"}, "which milp alone has: test_milp_agreement"
    assert {reason for kind, reason in reasons if kind == "preempt"} == {0, 1, 2, 3}
    assert {reason for kind, reason in reasons if kind == "reject"} == {0, 1, 2, 3, 4, 5, 6}
    assert shared > 500


@pytest.mark.parametrize("block", range(4))
def test_model_agreement__reservations_of_gangs_that_may_span_nodes(block: int) -> None:
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        assert assert_agreement(random_reservation_run(number)), number


@pytest.mark.parametrize("block", range(4))
def test_model_agreement__failures_between_rounds(block: int) -> None:
    saved_before = 0
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        run = random_round_run(number)
        assert assert_agreement(run), number
        saved_before += _failures_after_a_round(run)
    assert saved_before > 20 * RUNS_PER_BLOCK / 50


def _failures_after_a_round(run: Run) -> int:
    """Return how often a node took a job down that had saved its work at the end of a round."""
    log = bl.simulate(
        run.workload,
        run.cluster,
        run.scheduler,
        knowledge=run.knowledge,
        seed=run.seed,
        horizon=run.horizon,
    ).log
    rows = log.kind == PREEMPT
    saved: set[int] = set()
    count = 0
    for job, reason in zip(log.job[rows].tolist(), log.detail[rows].tolist(), strict=True):
        if reason == END_OF_ROUND:
            saved.add(job)
        count += reason == NODE_WENT_DOWN and job in saved
    return count
