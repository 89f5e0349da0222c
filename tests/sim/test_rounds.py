"""Rounds: GPUs are reassigned every T seconds, and at no other time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.sim.scenarios import finishes, jobs, nodes, run, starts, story

from berthline.errors import PolicyError
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
