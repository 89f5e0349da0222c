"""A run that begins in the middle is the rest of the uninterrupted run, in both simulators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_instants import (
    KINDS,
    Instant,
    decided_rows,
    random_instant,
    rows_after,
    rows_of,
    with_run_times,
)

import berthline as bl
from berthline.model.schedule import REJECT
from berthline.sim.snapshots.take import count_before_decision


def assert_the_rest_is_the_same(instant: Instant) -> None:
    """Resume in both simulators from a snapshot, or from one of a run that was resumed itself."""
    result, at = instant.result, instant.at
    earlier = None
    if instant.rng.random() < 0.3:
        earlier = instant.at * instant.rng.choice([0.0, 0.5, 1.0])
        first = result.snapshot(earlier)
        result = bl.resume(
            first,
            arrivals=instant.arrivals(first),
            horizon=instant.run.horizon,
            simulator=str(instant.rng.choice(["native", "reference"])),
        )
    snapshot = result.snapshot(at)
    numbers = instant.numbers(snapshot)
    log = instant.result.log
    rest = np.arange(len(log)) >= count_before_decision(log, at)
    expected = rows_of(log, rest, np.append(np.arange(len(instant.run.workload)), -1))
    for simulator in ("native", "reference"):
        resumed = bl.resume(
            snapshot,
            arrivals=instant.arrivals(snapshot),
            horizon=instant.run.horizon,
            simulator=simulator,
        )
        found = rows_after(resumed.log, len(snapshot.log), numbers)
        assert found == expected, f"{simulator} from {at} (by {earlier}): {instant.run}"


def assert_decides_as_the_run(instant: Instant) -> bool:
    """Decide in both simulators, with true run times, without any, and with wrong ones."""
    log = instant.result.log
    snapshot = instant.result.snapshot(instant.at)
    decided = decided_rows(log, instant.at)
    if not snapshot.decides:
        assert not decided.any(), instant.run
        return False
    numbers = instant.numbers(snapshot)
    expected = rows_of(log, decided, np.append(np.arange(len(instant.run.workload)), -1))
    states = [snapshot]
    if instant.run.knowledge != "exact":
        states += [with_run_times(snapshot, np.nan), with_run_times(snapshot, 3.0)]
    for state in states:
        for simulator in ("native", "reference"):
            decision = bl.decide(state, simulator=simulator)
            found = rows_after(decision.log, len(snapshot.log), numbers)
            assert found == expected, f"{simulator} at {instant.at}: {instant.run}"
    return True


def assert_reasons_are_complete(instant: Instant) -> None:
    """Each job that waits after the decision has a reason, and no other job has."""
    decision = bl.decide(instant.result.snapshot(instant.at))
    left = {action.job for action in decision.actions if action.kind in ("start", "resume")}
    away = {action.job for action in decision.actions if action.kind in ("preempt", "refuse")}
    assert not left & set(decision.reasons) - away
    assert away - left <= set(decision.reasons)
    last = decision.log
    rejected = set(last.job[last.kind == REJECT].tolist())
    assert not rejected & set(decision.reasons)


def compare(kind: str, first: int, count: int) -> int:
    compared = 0
    for number in range(first, first + count):
        instant = random_instant(kind, number)
        if instant is None:
            continue
        if number % 2:
            assert_the_rest_is_the_same(instant)
            compared += 1
        else:
            compared += assert_decides_as_the_run(instant)
    return compared


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(4))
def test_snapshot__pinned_instants(kind: str, block: int) -> None:
    assert compare(kind, block * 100, 100) > 60


@pytest.mark.parametrize("kind", KINDS)
def test_decision__has_a_reason_for_every_waiting_job(kind: str) -> None:
    for number in range(40):
        instant = random_instant(kind, number)
        if instant is not None:
            assert_reasons_are_complete(instant)


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(list(KINDS)), st.integers(min_value=10_000, max_value=2**40))
def test_snapshot__drawn_instants(kind: str, number: int) -> None:
    compare(kind, number, 1)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("block", range(40))
def test_snapshot__many_instants(kind: str, block: int) -> None:
    assert compare(kind, 1_000_000 + block * 500, 500) > 300
