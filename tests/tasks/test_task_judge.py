"""Measurements of environments against the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.policies.scheduler import Scheduler
from berthline.tasks.opponents import Opponent, opponents_of
from berthline.tasks.play import first_allowed, last_allowed, play
from berthline.tasks.task_judge import Judge, row_of

SMALL: dict[str, Any] = {
    "workload": "poisson",
    "cluster": "uniform:2x4:V100",
    "load": 1.3,
    "episode_jobs": 40,
    "dials": {"gpu_mix": "1:0.6,2:0.2,4:0.2"},
    "reward": {"wait": ("second", "-queue_len / num_jobs / 3600")},
}


def test_rules__have_the_wait_of_the_simulator() -> None:
    judge = Judge("small", "pick", SMALL, episodes=3)
    for text in ("sjf+easy@best-fit", "wfp3+conservative@worst-fit", "fcfs+skip@best-fit"):
        played = judge.scheduler(text)
        for (jobs, start), value in zip(judge.beginnings(), played.returns, strict=True):
            assert start is None
            wait = bl.simulate(jobs, SMALL["cluster"], text).metrics().wait.mean
            assert value == pytest.approx(-wait / 3600, abs=1e-12)


def test_rules_of_the_simulator_alone__are_scored_from_their_logs() -> None:
    judge = Judge("small", "place", SMALL | {"reward": "mean-jct-hours"}, episodes=3)
    native = judge.scheduler("fcfs+easy@best-fit").returns
    assert judge._simulated("x", Scheduler.parse("fcfs+easy@best-fit")).returns == pytest.approx(
        native
    )
    with pytest.raises(ConfigError, match="from a log alone"):
        Judge("small", "place", SMALL | {"reward": "slowdown"}).scheduler("fcfs@fgd")


def test_warm_episodes__are_those_of_the_simulator() -> None:
    judge = Judge("warm", "pick", SMALL | {"start": "warm", "reward": "mean-jct-hours"}, episodes=2)
    text = "sjf+easy@best-fit"
    known = [metrics_since_start(judge, text, number) for number in range(2)]
    assert judge.scheduler(text).returns == pytest.approx(known)


def metrics_since_start(judge: Judge, text: str, number: int) -> float:
    """Return minus the seconds that jobs spent in the system after the start, in job hours."""
    from berthline.sim.snapshots.take import take_jobs

    jobs, start = judge.beginnings()[number]
    assert start is not None
    arrivals = take_jobs(jobs, np.arange(start.num_jobs, len(jobs)))
    result = bl.resume(start, text, arrivals=arrivals)
    table = result.metrics()
    since = sum(max(0.0, start.now - submit) for submit in result.workload.submit)
    return -(table.jct.mean * len(result.workload) - since) / len(result.workload) / 3600


def test_measurement__has_random_first_best_and_bound() -> None:
    measured = Judge("small", "pick", SMALL | {"semantics": "rank"}, episodes=8).measure(
        policies={"theirs": "fcfs+easy@best-fit"},
        rules=[
            Opponent(text, scheduler=text) for text in ("sjf+easy@best-fit", "lcfs+easy@best-fit")
        ],
    )
    assert measured.best.name == "sjf+easy@best-fit"
    assert measured.bound is not None
    assert measured.bound >= measured.best.value >= measured.random.value
    assert measured.random.against is not None
    assert measured.random.against < 0
    [theirs] = measured.policies
    assert theirs.low < theirs.value < theirs.high
    assert measured.choices == 1.0


@pytest.mark.parametrize(
    "seat", ["pick", "pickplace", "place", "meta", "backfill", "gate", "preempt"]
)
@pytest.mark.parametrize("knowledge", ["estimate", "none"])
def test_opponents__can_all_be_played(seat: str, knowledge: str) -> None:
    options = SMALL | {"knowledge": knowledge, "episode_jobs": 12, "reward": "mean-jct-hours"}
    if seat == "meta" and knowledge == "none":
        options["schedulers"] = ["fcfs+skip", "lcfs+skip"]
    judge = Judge(seat, seat, options, episodes=2)
    assert judge.opponents() == opponents_of(judge.plan)
    for one in judge.opponents():
        assert len(judge.opponent(one).returns) == 2


def test_first__is_start_in_gate() -> None:
    gate = SMALL | {"order": "sjf"}
    judge = Judge("gate", "gate", gate, episodes=2)
    always = judge.scheduler("sjf+easy@best-fit").returns
    assert judge.first().returns == pytest.approx(always, rel=1e-12)
    assert play("gate", gate, last_allowed, name="", episodes=2).returns == judge.first().returns
    held = play("gate", gate, first_allowed, name="", episodes=2)
    assert np.mean(held.returns) < np.mean(judge.first().returns)


def test_rows__have_paired_intervals() -> None:
    judge = Judge("small", "pick", SMALL, episodes=2)
    best = judge.scheduler("sjf+easy@best-fit")
    again = row_of(judge.scheduler("sjf+easy@best-fit"), best)
    assert (again.against, again.against_low, again.against_high) == (0.0, 0.0, 0.0)
