"""Pick with ranks: what is asked, what the discipline makes of the answers, and what is seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.env import by_hand
from tests.env.agents import options_of

import berthline as bl
from berthline.env.single import SchedulingEnv
from berthline.model.schedule import START


def workload(*jobs: tuple[float, float, int]) -> bl.Workload:
    """Return jobs of (submit, run, gpus)."""
    submit, run, gpus = map(list, zip(*jobs, strict=True))
    return bl.Workload.from_columns(name="by-hand", submit=submit, run=run, gpus=gpus, estimate=run)


FOUR_GPUS = "uniform:1x4:V100"
BUSY = workload((0, 100, 3), (1, 10, 4), (2, 50, 1), (3, 300, 1), (4, 20, 1))
"""Job 0 leaves one GPU of four; job 1 needs all four, the others one. Job 3 is the longest."""


def make(jobs: bl.Workload = BUSY, **options: Any) -> SchedulingEnv:
    columns = ["can_start", "ranked", "gpus"]
    given = {"cluster": FOUR_GPUS, "semantics": "rank", "window": 4, "features": columns}
    return by_hand.make("pick", jobs, **(given | options))


def starts(env: SchedulingEnv) -> dict[int, float]:
    log = env.log()
    rows = log.kind == START
    return dict(zip(log.job[rows].tolist(), log.time[rows].tolist(), strict=True))


def rows(seen: Any) -> list[list[float]]:
    return seen["jobs"].tolist()


def test_easy__the_first_is_the_head_then_those_that_may_pass_it() -> None:
    """At 2 s jobs 1 and 2 wait. Job 1 as the head has a reservation at 100 s.

    Job 2 alone may pass it, so it is not asked about, and starts. At 3 and 4 s no GPU is free. At
    52 s job 2 has ended; jobs 1, 3 and 4 wait. Job 1 is the head: job 3 would delay it, job 4 may
    pass it. At 72 s one GPU is free and jobs 1 and 3 wait: job 1 again, and nothing passes it. At
    100 s all are free: job 1 first, which starts. Then job 3 is alone.
    """
    env = make(discipline="easy")
    episode = by_hand.play(env, 0, 0, 0, 0)
    assert episode.times == [2.0, 52.0, 72.0, 100.0]
    assert starts(env) == {0: 0, 1: 100, 2: 2, 3: 110, 4: 52}
    # At 52 s: jobs 1, 3 and 4, of which 3 and 4 could be placed; no job has a place yet.
    assert rows(episode.seen[1]) == [[0, 0, 4], [1, 0, 1], [1, 0, 1], [0, 0, 0]]
    assert episode.info["action_mask"].tolist() == [False] * 4 + [True], "at the end"


def test_easy__a_job_behind_the_head_is_asked_about_with_the_head_in_its_place() -> None:
    """At 4 s jobs 1, 2 and 3 wait, and one GPU is free. Two of them may pass job 1."""
    jobs = workload((0, 100, 3), (4, 10, 4), (4, 50, 1), (4, 30, 1))
    env = make(jobs, discipline="easy")
    seen, info = env.reset(seed=0)
    assert rows(seen)[:3] == [[0, 0, 4], [1, 0, 1], [1, 0, 1]]
    assert info["action_mask"].tolist() == [True, True, True, False, False]
    seen, _, _, _, info = env.step(0)
    assert info["seconds"] == 0.0
    assert rows(seen)[:3] == [[0, 1, 4], [1, 0, 1], [1, 0, 1]]
    assert info["action_mask"].tolist() == [False, True, True, False, False]
    env.step(2)
    assert starts(env)[3] == 4.0


def test_strict__a_head_that_cannot_start_holds_all_others_back() -> None:
    env = make(discipline="strict")
    episode = by_hand.play(env, 0, 1, 2, 0, 0)
    # At 2 s job 1 is named, so job 2 waits; at 3 s job 2, which starts. At 4 s nothing fits.
    assert episode.times == [2.0, 3.0, 53.0, 73.0, 100.0]
    assert starts(env) == {0: 0, 2: 3, 4: 53, 1: 100, 3: 110}


def test_skip__only_jobs_that_can_start_are_named() -> None:
    env = make(discipline="skip")
    episode = by_hand.play(env, 1)
    # Job 2 starts at once at 2 s: no other can. At 52 s jobs 3 and 4 can.
    assert episode.times == [52.0]
    assert rows(episode.seen[0]) == [[0, 0, 4], [1, 0, 1], [1, 0, 1], [0, 0, 0]]
    assert starts(env)[3] == 52.0


def test_conservative__jobs_that_cannot_start_keep_their_places_in_order() -> None:
    """Jobs 1 and 2 wait for all and for three GPUs; job 3 may start unless it delays them."""
    jobs = workload((0, 100, 3), (5, 10, 4), (5, 10, 2), (5, 90, 1), (5, 500, 1))
    env = make(jobs, discipline="conservative")
    seen, info = env.reset(seed=0)
    seen, *_, info = env.step(1)  # job 2 first: at 100 s
    seen, *_, info = env.step(0)  # then job 1: at 110 s
    assert rows(seen) == [[0, 2, 4], [0, 1, 2], [1, 0, 1], [1, 0, 1]]
    assert info["action_mask"].tolist() == [False, False, True, True, False]
    env.step(3)  # job 4 would delay job 1, so job 3 is the only one left, and starts
    assert starts(env) == {0: 0, 3: 5}


def test_the_order_is_asked_for_again_only_with_rerank() -> None:
    """Two jobs pass the head at one instant: its place is asked for once, or twice."""
    jobs = workload((0, 100, 2), (4, 10, 4), (4, 50, 1), (4, 30, 1), (4, 20, 1))
    asked = {}
    for rerank in (None, True):
        env = make(jobs, discipline="easy", rerank=rerank)
        _, info = env.reset(seed=0)
        masks = [info["action_mask"].tolist()]
        for _ in range(2):
            *_, info = env.step(int(np.argmax(info["action_mask"])))
            masks.append(info["action_mask"].tolist())
        asked[rerank] = masks
    assert asked[None][:2] == asked[True][:2]
    assert asked[None][2] == [False, True, True, False, False], "behind the head"
    assert asked[True][2] == [True, True, True, False, False], "from the first job"


def test_jobs_outside_the_window_come_after_all_shown_ones() -> None:
    """Two of three waiting jobs are shown, in order of size; the third passes when it may."""
    jobs = workload((0, 100, 3), (4, 10, 4), (4, 50, 3), (4, 30, 1))
    env = make(jobs, discipline="easy", window=2, order="largest-first")
    _, info = env.reset(seed=0)
    assert info["action_mask"].tolist() == [True, True, False]
    env.step(1)  # job 2 is the head; none of the shown jobs may pass it
    assert starts(env)[3] == 4.0


@pytest.mark.parametrize("action", [3, 4, -1, 99])
def test_an_action_that_is_not_allowed_is_the_first_allowed_one(action: int) -> None:
    env = make(discipline="strict", out_of_range="illegal")
    env.reset(seed=0)
    *_, info = env.step(action)
    assert info["illegal"]
    assert env.question()["now"] == 3.0, "job 1 was the head"


def test_a_mask_that_was_overwritten_is_not_believed() -> None:
    """Neither a job that has its place, nor a row without a job, can be named."""
    jobs = workload((0, 100, 3), (4, 10, 4), (4, 50, 1), (4, 30, 1))
    env = make(jobs, discipline="easy")
    env.reset(seed=0)
    env.step(0)
    for action in (0, 3):
        what_if = env.fork()
        what_if._envs.mask[:] = True
        *_, info = what_if.step(action)
        assert info["illegal"]
        assert what_if.log().kind.tolist().count(START) <= 4


def test_without_a_no_op_the_mask_always_allows_a_choice() -> None:
    single = SchedulingEnv("pick", **options_of("pick", semantics="rank"))
    rng = np.random.default_rng(1)
    for seed in range(3):
        _, info = single.reset(seed=seed)
        is_over = False
        while not is_over:
            mask = info["action_mask"]
            assert not mask[-1]
            assert mask.sum() > 1, "a question is a choice"
            *_, terminated, truncated, info = single.step(int(rng.choice(np.flatnonzero(mask))))
            is_over = terminated or truncated
