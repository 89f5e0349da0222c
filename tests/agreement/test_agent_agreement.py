"""An agent in any seat is asked the same, sees the same and gets the same in both simulators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.agreement.random_agent_runs import SEATS, AgentRun, random_agent_run

from berthline.env.episode_supply import episode_seed
from berthline.env.native_envs import SCORES
from berthline.env.reference_env import ReferenceEpisode
from berthline.env.single import SchedulingEnv
from berthline.env.spaces import views
from berthline.evaluate.metrics.measure import measure
from berthline.sim.reference_agent import Answer, Question

RUNS_PER_BLOCK = 49


class SideBySide:
    """Steps a native environment with the answers of an agent in the reference simulator."""

    asked_at: float | None = None  # the time of the last question that was compared

    def __init__(self, run: AgentRun) -> None:
        self.env = SchedulingEnv(
            run.seat, **run.options, observation="flat", out_of_range="illegal"
        )
        self.rng = np.random.default_rng(run.seed)
        if run.seed % 2:
            self.leave_something_behind(run.seed)
        self.observation, info = self.env.reset(seed=run.seed)
        self.mask = info["action_mask"]
        seed = episode_seed(*info["episode_key"].tolist())
        self.reference = self.make_reference(seed)
        self.steps = 0
        self.illegal = 0
        self.is_over = False
        self.reward, self.terms, self.info = 0.0, np.zeros(0), info
        self.total = 0.0

    def make_reference(self, seed: int) -> ReferenceEpisode:
        """Return the same episode in the reference simulator."""
        return ReferenceEpisode(self.env.plan, self.env.workload(), seed, self.answer)

    def leave_something_behind(self, seed: int) -> None:
        """Break off another episode: the next must not depend on it."""
        _, info = self.env.reset(seed=seed + 1)
        jobs = self.env.plan.num_actions
        for _ in range(int(self.rng.integers(1, 40))):
            allowed = np.flatnonzero(info["action_mask"][:jobs])
            action: Any = int(self.rng.choice(allowed)) if len(allowed) else 0
            if self.env.plan.seat == "pickplace":
                action = [action, int(self.rng.integers(self.env.plan.cluster.num_nodes))]
            *_, terminated, truncated, info = self.env.step(action)
            if terminated or truncated:
                return

    def play(self) -> None:
        """Play the episode, comparing all the way, and compare what became of it."""
        log = self.reference.play()
        if self.reference.steps == 0:
            assert not self.is_over
            self.step(Answer(0))
        assert self.reference.question is not None
        self.compare(self.reference.question)
        self.compare_reward()
        assert self.is_over
        assert self.env.unwrapped.terminated == (self.reference.end == "terminated")
        native = self.env.log()
        for column in ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus", "alloc_slot"):
            np.testing.assert_array_equal(
                getattr(native, column), getattr(log, column), err_msg=column
            )
        assert native.decisions == log.decisions
        assert native.horizon == log.horizon
        assert native.sha256() == log.sha256()
        self.compare_scores()

    def answer(self, question: Question) -> Answer:
        """Compare the question with the native core's, and give both the same answer."""
        self.compare(question)
        if self.steps:
            self.compare_reward()
        assert not self.is_over
        answer = self.choose(question)
        self.step(answer)
        return answer

    def choose(self, question: Question) -> Answer:
        """Return a random answer, most often one that is allowed."""
        rng = self.rng
        if rng.random() < 0.03:
            return Answer(int(rng.integers(-2, len(question.mask) + 2)), int(rng.integers(-1, 9)))
        choices = question.mask
        if question.pairs:
            choices = choices[: len(question.pairs) + 1]
        action = int(rng.choice(np.flatnonzero(choices)))
        if not question.pairs or action == len(question.pairs):
            return Answer(action)
        return Answer(action, int(rng.choice(np.flatnonzero(question.pairs[action]))))

    def step(self, answer: Answer) -> None:
        """Step the native environment."""
        action: Any = list(answer) if self.env.plan.seat == "pickplace" else answer.action
        self.observation, self.reward, terminated, truncated, self.info = self.env.step(action)
        self.mask, self.terms = self.info["action_mask"], self.info["reward_terms"]
        self.is_over = terminated or truncated
        self.env.unwrapped.terminated = terminated
        assert not (terminated and truncated)
        self.total += self.reward
        self.steps += 1

    def compare(self, question: Question) -> None:
        """Compare what is asked and what is seen."""
        native = self.env.question()
        assert native["now"] == question.now
        if self.asked_at is not None:
            assert self.info["seconds"] == question.now - self.asked_at
        self.asked_at = question.now
        assert native["jobs"] == question.jobs
        assert native["running"] == question.running
        at_hand = -1 if question.job_at_hand is None else question.job_at_hand
        assert native["job_at_hand"] == at_hand
        np.testing.assert_array_equal(self.mask, question.mask)
        if self.env.plan.seat == "pickplace" and question.pairs:
            np.testing.assert_array_equal(self.env._envs.pair_mask[0], question.pairs)
        assert self.env.observation_space.contains(self.observation)
        expected = self.reference.observe(question)
        if not np.array_equal(self.observation, expected):
            plan = self.env.plan
            found = views(plan, self.observation)
            for name, table in views(plan, expected).items():
                where = (name, getattr(plan.columns, name, plan.options.lookahead))
                np.testing.assert_array_equal(found[name], table, err_msg=str(where))

    def compare_reward(self) -> None:
        """Compare the reward of the last step, term by term."""
        expected = np.array(self.reference.rewards.sums)
        names = [(term.occasion, term.formula) for term in self.env.plan.reward.terms]
        np.testing.assert_allclose(self.terms, expected, rtol=1e-9, atol=1e-9, err_msg=str(names))
        np.testing.assert_allclose(
            self.reward, self.reference.reward, rtol=1e-9, atol=1e-9, err_msg=str(names)
        )
        assert self.info.get("illegal", False) == (not self.reference.was_legal)
        self.illegal += not self.reference.was_legal

    def compare_scores(self) -> None:
        """Compare the scores of the episode with the metrics of its log."""
        scores = self.info["sched"]
        assert tuple(scores) == SCORES
        measured = measure(self.env.log(), self.env.workload(), self.env.plan.cluster)
        assert scores["length"] == self.steps
        np.testing.assert_allclose(scores["return"], self.total, rtol=1e-9, atol=1e-9)
        assert scores["completed"] == measured.jobs.completed
        assert scores["rejected"] == measured.jobs.rejected
        assert scores["unfinished"] == measured.jobs.unfinished
        if measured.jobs.submitted == measured.jobs.rejected:
            return
        for name, expected in (
            ("mean_jct", measured.jct.mean),
            ("p99_jct", measured.jct.p99),
            ("mean_wait", measured.wait.mean),
            ("mean_slowdown", measured.slowdown.mean),
            ("mean_bounded_slowdown", measured.bounded_slowdown.mean),
            ("utilization", measured.utilization.gpu),
            ("fairness", measured.fairness.jain),
            ("makespan", measured.makespan),
        ):
            np.testing.assert_allclose(scores[name], expected, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("block", range(10))
def test_agent_agreement__pinned_numbers(block: int) -> None:
    for number in range(block * RUNS_PER_BLOCK, (block + 1) * RUNS_PER_BLOCK):
        SideBySide(random_agent_run(number)).play()


@pytest.mark.parametrize("number", [51454868954, 62281803194])
def test_agent_agreement__numbers_that_once_failed(number: int) -> None:
    """What these episodes are about.

    51454868954: one term is -inf, and another overflows to inf where their sum does not.
    62281803194: a column is the least of a value and 0 / 0, which is the value.
    """
    SideBySide(random_agent_run(number)).play()


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=1_000_000, max_value=2**40))
def test_agent_agreement__drawn_numbers(number: int) -> None:
    SideBySide(random_agent_run(number)).play()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_agent_agreement__many_numbers(block: int) -> None:
    for number in range(10_000 + block * RUNS_PER_BLOCK, 10_000 + (block + 1) * RUNS_PER_BLOCK):
        SideBySide(random_agent_run(number)).play()


def test_agent_runs__ask_enough() -> None:
    """Agreement on episodes in which nothing is asked would be worth little."""
    asked = dict.fromkeys(SEATS, 0)
    for number in range(3 * RUNS_PER_BLOCK):
        run = random_agent_run(number)
        side = SideBySide(run)
        side.play()
        asked[run.seat] += side.reference.steps
    assert min(asked.values()) > 50, asked
