"""Times of single decisions: one of each, only on request, and the run stays the same."""

from __future__ import annotations

import pytest
from tests.sim.scenarios import jobs, nodes

import berthline as bl

BUSY = jobs(*((10 * i, 25, 1 + i % 2) for i in range(20)))


@pytest.mark.parametrize("simulator", ["native", "reference"])
@pytest.mark.parametrize("scheduler", ["fcfs", "sjf+easy", "srpt+skip!srpt", "fcfs+rounds:T=90"])
def test_every_decision_is_timed(simulator: str, scheduler: str) -> None:
    plain = bl.simulate(BUSY, nodes(2), scheduler, simulator=simulator)
    timed = bl.simulate(BUSY, nodes(2), scheduler, simulator=simulator, time_decisions=True)
    assert plain.decision_seconds is None
    assert timed.decision_seconds is not None
    assert len(timed.decision_seconds) == timed.log.decisions
    assert min(timed.decision_seconds) >= 0
    assert 0 < sum(timed.decision_seconds) < timed.wall_seconds
    assert timed.log.sha256() == plain.log.sha256()
