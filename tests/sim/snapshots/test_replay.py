"""A replay of the log has the state that the reference simulator had, at every instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run

from berthline.errors import BerthlineError
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import Inputs, prepare
from berthline.sim.reference import Simulation
from berthline.sim.reference_words import WORDS
from berthline.sim.snapshots.replay import Replay

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.sim.reference_state import State

KEPT = (
    "free",
    "up",
    "idle_since",
    "queue",
    "away",
    "running",
    "quota_used",
    "progress",
    "restarts",
    "attempts",
    "ran",
    "attained",
    "estimate",
    "usage",
    "user_usage",
    "finished_runs",
    "arrived",
    "outages_left",
    "preemptions",
)


def snapshot(state: State) -> dict[str, str]:
    kept = {name: repr(getattr(state, name)) for name in KEPT}
    waiting = {*state.queue, *state.away}
    fewest = {key: nodes for key, nodes in state.nodes_min.items() if key[0] in waiting}
    return kept | {"nodes_min": repr(sorted(fewest.items()))}


class Watched(Simulation):
    """The reference simulator, with its state recorded at the end of every instant."""

    def __init__(self, inputs: Inputs) -> None:
        super().__init__(inputs)
        # At large times, some instants are not distinguishable: the last of them counts.
        self.seen: dict[float, dict[str, str]] = {}

    def settle(self) -> None:
        super().settle()
        self.seen[self.now] = snapshot(self)


def inputs_of(run: Run) -> Inputs:
    return prepare(
        run.workload,
        run.cluster,
        Scheduler.parse(run.scheduler),
        knowledge=run.knowledge,
        seed=run.seed,
        horizon=run.horizon,
    )


def in_order(value: object) -> str:
    """Return a value as text; the text of equal sets may differ in order."""
    return repr(sorted(value) if isinstance(value, set) else value)


def check(run: Run) -> int:
    """Compare all instants; return how many there were."""
    try:
        watched = Watched(inputs_of(run))
        log = watched.run(lambda _: None)
    except BerthlineError:
        return 0  # refused, or preempted without end
    replay = Replay(inputs_of(run), log)
    for time, seen in watched.seen.items():
        replay.advance(time)
        found: dict[str, Any] = snapshot(replay)
        assert found == seen, f"at {time}"
    assert replay.row == len(log)
    check_skipping(run, log, watched.seen)
    return len(watched.seen)


def check_skipping(run: Run, log: Schedule, seen: dict[float, dict[str, str]]) -> None:
    """Compare later instants with and without a replay of the past."""
    since = [*seen][len(seen) // 2]
    whole, skipping = Replay(inputs_of(run), log), Replay(inputs_of(run), log, since=since)
    words = [word for word in WORDS if inputs_of(run).uses(word)]
    for time in [*seen][len(seen) // 2 :]:
        whole.advance(time)
        skipping.advance(time)
        for name in ("free", "up", "queue", "away", "running", "quota_used", "arrived"):
            assert in_order(getattr(whole, name)) == in_order(getattr(skipping, name)), name
        for job in (*whole.queue, *whole.running):
            for word in words:
                found = repr(WORDS[word](skipping, job))
                assert found == repr(WORDS[word](whole, job)), (job, word)


@pytest.mark.parametrize("block", range(4))
def test_same_state_as_the_reference(block: int) -> None:
    instants = sum(check(random_run(number)) for number in range(block * 15, block * 15 + 15))
    assert instants > 200


@pytest.mark.parametrize("block", range(6))
def test_same_state_as_the_reference_in_the_full_model(block: int) -> None:
    first = block * 20
    instants = sum(check(random_model_run(number)) for number in range(first, first + 20))
    assert instants > 200
