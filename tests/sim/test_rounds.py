"""Rounds: GPUs are reassigned every T seconds, and at no other time."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

from berthline.errors import PolicyError
from berthline.model.limits import Outage
from berthline.model.schedule import PREEMPT

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster


def one_gpu(restart: float = 0) -> Cluster:
    return nodes(1).with_conditions({"checkpoint": 0, "restart": restart})


def test_rounds__two_jobs_take_turns() -> None:
    """The job that has had least is next. Job 0 ends at 160; the next round is at 180."""
    log = run(jobs((0, 100, 1), (0, 100, 1)), one_gpu(), "[attained]+rounds:T=60")
    assert story(log) == [
        "0 submit 0",
        "0 submit 1",
        "0 start 0 on 0:1",
        "60 preempt 0 (end of its round)",
        "60 start 1 on 0:1",
        "120 preempt 1 (end of its round)",
        "120 resume 0 on 0:1",
        "160 finish 0",
        "180 resume 1 on 0:1",
        "220 finish 1",
    ]


def test_rounds__each_turn_costs_a_restart() -> None:
    """20 s of every turn but the first are lost.

    Job 0 does 60 s by 60 and 40 s from 140 to 180, job 1 the same from 60 and from 200 on.
    """
    log = run(jobs((0, 100, 1), (0, 100, 1)), one_gpu(restart=20), "[attained]+rounds:T=60")
    assert finishes(log) == {0: 180, 1: 240}


def test_rounds__jobs_wait_for_the_next_one() -> None:
    log = run(jobs((10, 5, 1), (61, 5, 1)), one_gpu(), "fcfs+rounds:T=60")
    assert starts(log) == {0: 60, 1: 120}


def test_rounds__who_is_chosen_again_goes_on_undisturbed() -> None:
    log = run(jobs((0, 300, 1), (0, 100, 1)), one_gpu(restart=20), "fcfs+rounds:T=60")
    assert (log.kind == PREEMPT).sum() == 0
    assert finishes(log) == {0: 300, 1: 400}


def test_rounds__jobs_that_do_not_fit_beside_the_first_are_passed() -> None:
    """Four GPUs: job 1 needs three and does not fit beside job 0; job 2 does."""
    cluster = nodes(4).with_conditions({"restart": 0})
    log = run(jobs((0, 70, 2), (0, 70, 3), (0, 10, 2)), cluster, "fcfs+rounds:T=60")
    assert starts(log) == {0: 0, 1: 120, 2: 0}


def test_rounds__jobs_save_their_state_before_a_round_ends() -> None:
    """With checkpoints every 50 s, all 60 s of work are kept; the end is known."""
    cluster = nodes(1).with_conditions({"checkpoint": 50, "restart": 0})
    log = run(jobs((0, 100, 1), (0, 100, 1)), cluster, "[attained]+rounds:T=60")
    assert finishes(log) == {0: 160, 1: 220}


@pytest.mark.parametrize(("conditions", "least"), [({"restart": 60}, "60"), ({}, "60")])
def test_rounds__must_be_longer_than_a_restart(conditions: dict[str, float], least: str) -> None:
    cluster = nodes(1).with_conditions(conditions)
    with pytest.raises(PolicyError, match="is over before a job makes progress") as caught:
        run(jobs((0, 100, 1)), cluster, "fcfs+rounds:T=60")
    assert caught.value.expected.startswith(f"T of more than {least} s")


def test_rounds__default_length() -> None:
    log = run(jobs((0, 5, 1), (1, 5, 1)), one_gpu(), "fcfs+rounds")
    assert starts(log) == {0: 0, 1: 360}


def test_rounds__a_later_failure_does_not_take_what_a_round_saved() -> None:
    """Two jobs of 500 s take turns of 100 s on one GPU; a checkpoint comes after 400 s.

    Job 0 has 100 s when its first round ends. It fails at 250, with 150 s: 50 s are lost, not 150.
    Job 1 is next, at 400. Job 0 has 400 s left, in the rounds from 500, 700, 900 and 1,100 on.
    """
    cluster = nodes(1).with_conditions({"checkpoint": 400, "restart": 0})
    cluster = dataclasses.replace(cluster, outages=(Outage(down=250, up=360, nodes=(0,)),))
    log = run(jobs((0, 500, 1), (0, 500, 1)), cluster, "[attained]+rounds:T=100")
    assert "250 preempt 0 (its node went down)" in story(log)
    assert finishes(log) == {0: 1200, 1: 1100}


@pytest.mark.parametrize("checkpoint", [math.inf, 30])
def test_rounds__two_failures_in_a_row_take_nothing_that_a_round_saved(checkpoint: float) -> None:
    """Job 0 has 60 s at 60. It fails twice before it saves more, and needs 40 s in the end."""
    cluster = nodes(1).with_conditions({"checkpoint": checkpoint, "restart": 0})
    outages = (Outage(down=130, up=131, nodes=(0,)), Outage(down=190, up=191, nodes=(0,)))
    cluster = dataclasses.replace(cluster, outages=outages)
    log = run(jobs((0, 100, 1), (50, 10, 1)), cluster, "[attained]+rounds:T=60")
    assert finishes(log) == {0: 280, 1: 70}
