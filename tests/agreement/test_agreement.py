"""The native core gives the reference simulator's log, event for event, allocations included."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_runs import Run, random_run

import berthline as bl
from berthline.errors import PolicyError

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule


def both(run: Run) -> tuple[Schedule, Schedule] | None:
    """Simulate twice; None when the run is refused (and then both must refuse it)."""
    logs = []
    for simulator in ("reference", "native"):
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
            assert run.knowledge == "none"
            return None
        logs.append(result.log)
    return logs[0], logs[1]


def assert_agreement(run: Run) -> bool:
    logs = both(run)
    if logs is None:
        return False
    reference, native = logs
    for column in ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus"):
        np.testing.assert_array_equal(
            getattr(native, column), getattr(reference, column), err_msg=f"{column} of {run}"
        )
    assert native.decisions == reference.decisions
    assert native.sha256() == reference.sha256()
    return True


@pytest.mark.parametrize("block", range(20))
def test_agreement__pinned_seeds(block: int) -> None:
    compared = sum(assert_agreement(random_run(block * 100 + number)) for number in range(100))
    assert compared > 50


@settings(max_examples=200, deadline=None)
@given(st.integers(min_value=10_000, max_value=2**40))
def test_agreement__drawn_seeds(number: int) -> None:
    assert_agreement(random_run(number))


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_agreement__many_seeds(block: int) -> None:
    for number in range(500):
        assert_agreement(random_run(1_000_000 + block * 500 + number))
