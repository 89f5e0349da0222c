"""The native core gives the reference simulator's log over the full cluster model too."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.test_agreement import assert_agreement

import berthline as bl
from berthline.model.schedule import KINDS, WHOLE_GPUS

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
