"""No one knows a run time before the job has ended, unless knowledge is `exact`.

One job's run time is made four times as long. Up to the time at which it would have ended, nothing
changes: no row of the log, no question, observation, mask or reward, in any seat.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_agent_runs import SEATS, AgentRun, random_agent_run
from tests.agreement.random_model_runs import random_model_run
from tests.agreement.random_runs import Run, random_run
from tests.properties.test_prefix import log_of, rows_before

from berthline.env.rewards import SCOPES, resolve_reward
from berthline.env.single import SchedulingEnv
from berthline.model.cluster import Cluster
from berthline.model.schedule import FINISH, Schedule
from berthline.model.workload import Workload
from berthline.model.workload_rows import with_values
from berthline.policies.formulas import ALL_WORDS
from berthline.policies.reward_words import TELL_RUN_TIMES

KNOWLEDGE = ("none", "estimate", "predicted")
LONGER = 4.0
RUNS_PER_BLOCK = 60
EPISODES_PER_BLOCK = 140
MOST_STEPS = 150


def a_finish(log: Schedule, rng: np.random.Generator) -> tuple[int, float] | None:
    """Return a job that has finished, and when; None = none has."""
    rows = np.flatnonzero(log.kind == FINISH)
    if not rows.size:
        return None
    row = int(rng.choice(rows))
    return int(log.job[row]), float(log.time[row])


# --- runs -----------------------------------------------------------------------------------------


def assert_log_tells_nothing(run: Run, number: int) -> bool:
    """Return whether there was anything to compare."""
    if run.knowledge == "exact":
        run = dataclasses.replace(run, knowledge="estimate")
    before = log_of(run, run.workload)
    found = None if before is None else a_finish(before, np.random.default_rng(number))
    if before is None or found is None:
        return False
    job, end = found
    longer = with_values(run.workload, job, run=LONGER * float(run.workload.run[job]))
    after = log_of(run, longer)
    assert after is not None
    assert rows_before(after, end) == rows_before(before, end), (run.scheduler, run.knowledge)
    return True


@pytest.mark.parametrize("block", range(4))
def test_log__tells_no_run_times(block: int) -> None:
    compared = 0
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        compared += assert_log_tells_nothing(random_run(number), number)
        compared += assert_log_tells_nothing(random_model_run(number), number)
    assert compared > RUNS_PER_BLOCK


# --- environments ---------------------------------------------------------------------------------


def hiding(run: AgentRun) -> AgentRun | None:
    """Return the episode with a reward that may not tell run times; None = it knows them."""
    options = dict(run.options)
    if options["knowledge"] == "exact":
        return None
    reward = resolve_reward(options["reward"])
    if reward.uses(TELL_RUN_TIMES):
        terms = {
            term.name: (term.occasion, term.formula)
            for term in reward.terms
            if not term.parse().words & TELL_RUN_TIMES
        }
        options["reward"] = terms or "jct"
    # Credit is how good an answer was, as training may know it: it depends on what comes.
    options["credit"] = None
    # The horizon is known to depend on all run times; it only ends the episode.
    options["horizon_factor"] = None
    options["max_steps"] = MOST_STEPS
    return dataclasses.replace(run, options=options)


def play(run: AgentRun, workload: Workload) -> tuple[list[tuple[Any, ...]], Schedule]:
    """Return what an agent sees and gets at each question, and the log."""
    env = SchedulingEnv(run.seat, **{**run.options, "workload": workload}, observation="flat")
    observation, info = env.reset(seed=run.seed)
    rng = np.random.default_rng(run.seed)
    rows = env.plan.num_actions
    reward, is_over = 0.0, False
    seen: list[tuple[Any, ...]] = []
    while True:
        mask = info["action_mask"]
        question = env.question()
        seen.append(
            (
                question["now"],
                observation.tobytes(),
                mask.tobytes(),
                env._envs.pair_mask[0].tobytes() if run.seat == "pickplace" else b"",
                np.float64(reward).tobytes(),
                np.asarray(info.get("reward_terms", ())).tobytes(),
                {key: value for key, value in question.items() if key != "now"},
                is_over,
            )
        )
        if is_over:
            return seen, env.log()
        allowed = np.flatnonzero(mask[:rows])
        action: Any = int(rng.choice(allowed)) if len(allowed) else 0
        if run.seat == "pickplace":
            action = [action, int(rng.integers(env.plan.cluster.num_nodes))]
        observation, reward, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated


def assert_agent_sees_nothing(run: AgentRun) -> int:
    """Return how many questions were compared."""
    before, log = play(run, run.options["workload"])
    found = a_finish(log, np.random.default_rng(run.seed))
    if found is None:
        return 0
    job, end = found
    workload = run.options["workload"]
    # Nodes fail at random up to a time that depends on the longest run time (semantics.md).
    end = min(end, 2.0 * float(workload.submit[-1]) + 10.0 * float(workload.run.max()))
    after, _ = play(run, with_values(workload, job, run=LONGER * float(workload.run[job])))
    asked = [question for question in before if question[0] < end]
    assert len(after) >= len(asked)
    for old, new in zip(asked, after, strict=False):
        assert new == old, (run.seat, run.options["knowledge"], run.options.get("lookahead"), job)
    # What comes next comes when the job would have ended, or later.
    assert len(after) == len(asked) or after[len(asked)][0] >= end
    return len(asked)


@pytest.mark.parametrize("block", range(5))
def test_agent__sees_no_run_times(block: int) -> None:
    compared: Counter[tuple[str, str]] = Counter()
    for number in range(block * EPISODES_PER_BLOCK, (block + 1) * EPISODES_PER_BLOCK):
        run = hiding(random_agent_run(number))
        if run is not None:
            compared[run.seat, run.options["knowledge"]] += assert_agent_sees_nothing(run)
    assert len(compared) > 2 * len(SEATS)
    assert sum(compared.values()) > EPISODES_PER_BLOCK


@settings(max_examples=40, deadline=None)
@given(st.integers(min_value=1_000_000, max_value=2**40))
def test_agent__sees_no_run_times_in_drawn_episodes(number: int) -> None:
    run = hiding(random_agent_run(number))
    if run is not None:
        assert_agent_sees_nothing(run)


@pytest.mark.parametrize("seat", SEATS)
@pytest.mark.parametrize(
    ("knowledge", "lookahead"),
    [
        (knowledge, lookahead)
        for knowledge in KNOWLEDGE
        for lookahead in (None, "off", "per_gpu", "sorted", "cdf")
        if knowledge != "none" or lookahead in (None, "off")  # others are refused
    ],
)
def test_agent__sees_no_run_times_by_default(
    knowledge: str, lookahead: str | None, seat: str
) -> None:
    cluster = Cluster.uniform(nodes=3, gpus_per_node=4)
    options: dict[str, Any] = {"cluster": cluster, "episode_jobs": None, "knowledge": knowledge}
    if lookahead is not None:
        options |= {"lookahead": lookahead, "lookahead_size": cluster.total_gpus}
    # These jobs run for minutes, so agents must be asked more often than by default.
    options |= {"preempt": {"min_run": 0.0}, "meta": {"every_seconds": 0.0}}.get(seat, {})
    if seat == "meta" and knowledge == "none":
        options["schedulers"] = ["fcfs+skip", "lcfs+skip"]
    compared = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        run = rng.integers(20, 200, 40).astype(float)
        workload = Workload.from_columns(
            submit=np.cumsum(rng.exponential(8.0, 40)),
            run=run,
            estimate=np.rint(run * rng.uniform(0.5, 3.0, 40)),
            gpus=rng.integers(1, 7, 40),
            priority=rng.integers(0, 5, 40).astype(float),
        )
        episode = AgentRun(seat, {**options, "workload": workload, "max_steps": MOST_STEPS}, seed)
        compared += assert_agent_sees_nothing(episode)
    assert compared > 10


# --- what the words of rewards know --------------------------------------------------------------


@pytest.mark.parametrize("occasion", ["decision", "second"])
def test_reward_words__tell_run_times_only_where_they_say_so(occasion: str) -> None:
    """Each word by itself, in the seat Pick: the set of words that tell is known exactly."""
    jobs = Workload.from_columns(
        submit=np.arange(20.0),
        run=np.linspace(30, 90, 20),
        estimate=np.linspace(30, 90, 20),
        gpus=[2, 1, 3, 4] * 5,
    )
    words = [word.name for word in ALL_WORDS.values() if word.scope in SCOPES[occasion]]
    reward = {word: (occasion, f"min({word}, 1e12)") for word in words}
    run = AgentRun(
        "pick",
        {
            "workload": jobs,
            "cluster": Cluster.uniform(nodes=2, gpus_per_node=4),
            "episode_jobs": None,
            "reward": reward,
            "horizon_factor": 50.0,
        },
        3,
    )
    job = 5
    before, log = play(run, jobs)
    end = float(log.time[(log.kind == FINISH) & (log.job == job)][0])
    after, _ = play(run, with_values(jobs, job, run=LONGER * float(jobs.run[job])))
    count = sum(question[0] < end for question in before)
    told: set[str] = set()
    for old, new in zip(before[1:count], after[1:count], strict=True):
        terms = (np.frombuffer(question[5]) for question in (old, new))
        told |= {word for word, a, b in zip(words, *terms, strict=True) if a != b}
    assert told == TELL_RUN_TIMES & set(words)
