"""Runs with an agent, broken off at a random instant and continued there with the same answers."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.deploy.policy_run import PolicyRun, inputs_of
from berthline.env.make_plan import make_plan
from berthline.env.options import resolve_options
from berthline.env.reference_env import ReferenceEpisode
from berthline.model.workload_join import join
from berthline.sim.reference_agent import Answer, Question
from berthline.sim.simulate import Result
from berthline.sim.snapshots.resume import without_run_times
from berthline.sim.snapshots.take import count_before_decision, take_jobs, take_snapshot

if TYPE_CHECKING:
    from tests.agreement.random_agent_runs import AgentRun

    from berthline.env.plan import Plan
    from berthline.model.schedule import Schedule
    from berthline.model.snapshot import Snapshot

OF_EPISODE = frozenset({"num_jobs", "total_work", "horizon", "unfinished_work", "overdue_jobs"})
"""Words of rewards that depend on all jobs of an episode, those that are over included."""


@dataclasses.dataclass
class Asked:
    """A question, the answer, and the reward of the step before it."""

    now: float
    jobs: list[int]
    running: list[int]
    at_hand: int
    mask: np.ndarray
    observation: np.ndarray
    reward: float
    answer: int = 0


class Answers:
    """Answers the questions of a run: the given ones first, then random ones that are allowed."""

    def __init__(self, given: list[int], seed: int) -> None:
        self.given, self.rng = given, np.random.default_rng(seed)
        self.count = 0

    def __call__(self, mask: np.ndarray) -> int:
        self.count += 1
        if self.count <= len(self.given):
            return self.given[self.count - 1]
        return int(self.rng.choice(np.flatnonzero(mask)))


def asked(run: PolicyRun, ids: np.ndarray) -> Asked:
    """Return the question of a run with the ids of jobs in another run."""
    question = run.question()
    hand = question["job_at_hand"]
    return Asked(
        now=question["now"],
        jobs=ids[question["jobs"]].tolist(),
        running=ids[question["running"]].tolist(),
        at_hand=int(ids[hand]) if hand >= 0 else -1,
        mask=run.mask.copy(),
        observation=run.observation.copy(),
        reward=question["reward"],
    )


def play(run: PolicyRun, answers: Answers, ids: np.ndarray) -> list[Asked]:
    """Answer all questions of a run; return them."""
    found = []
    while run.has_question:
        found.append(asked(run, ids))
        found[-1].answer = answers(found[-1].mask)
        run.act(found[-1].answer)
    return found


def rest_of(log: Schedule, rows: np.ndarray, ids: np.ndarray) -> list[tuple[Any, ...]]:
    """Return some rows of a log, with allocations, and with other ids of jobs."""
    starts = np.flatnonzero(log.is_start)
    first = log.detail[starts]
    last = np.append(first[1:], len(log.alloc_node))[: len(first)]
    shares = {
        int(row): tuple(
            zip(
                *(
                    column[a:b].tolist()
                    for column in (log.alloc_node, log.alloc_gpus, log.alloc_slot)
                ),
                strict=True,
            )
        )
        for row, a, b in zip(starts.tolist(), first.tolist(), last.tolist(), strict=True)
        if rows[row]
    }
    return [
        (
            float(log.time[row]),
            int(log.kind[row]),
            int(ids[log.job[row]]) if log.job[row] >= 0 else -1,
            shares.get(row, int(log.detail[row])),
        )
        for row in np.flatnonzero(rows).tolist()
    ]


class Broken:
    """A run with an agent that is broken off at an instant.

    Args:
        run: the run.
        seed: of the answers, and of the instant.
    """

    def __init__(self, run: AgentRun, seed: int) -> None:
        options = {**run.options, "max_steps": None}
        self.seed, self.of_run = seed, run.seed
        self.plan: Plan = make_plan(run.seat, resolve_options(run.seat, options))
        self.workload = run.options["workload"]
        self.arguments = self.plan.native_arguments()
        columns = ("submit", "run", "gpus", "gpu_milli")
        self.horizon = self.plan.horizon(**{name: getattr(self.workload, name) for name in columns})
        self.inputs = inputs_of(self.plan, self.workload, seed=run.seed, horizon=self.horizon)
        self.all = np.arange(len(self.workload))
        whole = PolicyRun(self.inputs, self.arguments)
        self.asked = play(whole, Answers([], seed), self.all)
        self.log = whole.log()
        self.at = self.instant(np.random.default_rng([seed, 1]))
        before = PolicyRun(self.inputs, self.arguments, before=self.at)
        answers = [question.answer for question in self.asked]
        self.first = len(play(before, Answers(answers, seed), self.all))
        self.start = self.take(before)
        known = self.start.memory.jobs + self.start.num_jobs
        later = np.arange(known, len(self.workload))
        self.ids = np.concatenate([self.start.number, later])
        self.jobs = join(self.start.workload, take_jobs(self.workload, later))
        self.rest = inputs_of(
            self.plan, self.jobs, seed=run.seed, horizon=self.horizon, start=self.start
        )

    def instant(self, rng: np.random.Generator) -> float:
        """Return a time: of an event, of a question, or any."""
        times = np.unique(self.log.time)
        kind = rng.random()
        if kind < 0.5 or not self.asked:
            at = float(rng.choice(times))
        elif kind < 0.75:
            at = self.asked[int(rng.integers(len(self.asked)))].now
        else:
            at = float(rng.uniform(0, times[-1] * 1.05))
        return min(at, self.inputs.horizon)

    def take(self, before: PolicyRun) -> Snapshot:
        """Return the snapshot, with what the seat remembers."""
        seat: dict[str, Any] = {}
        options = self.plan.options
        remembers = self.plan.seat in ("gate", "meta") or options.semantics == "wait"
        if remembers or options.lookahead == "per_gpu":
            seat = before.memory()
            seat["decides"] = seat.pop("next") == self.at
        result = Result(
            log=self.log,
            workload=self.workload,
            cluster=self.plan.cluster,
            scheduler=self.plan.scheduler,
            knowledge=self.plan.options.knowledge,
            seed=self.of_run,
            wall_seconds=0.0,
        )
        return take_snapshot(result, self.at, seat=seat)

    @property
    def compares_rewards(self) -> bool:
        """Whether no term of the reward depends on the whole episode."""
        return all(
            term.occasion != "end" and not OF_EPISODE & set(term.parse().words)
            for term in self.plan.reward.terms
        )

    def expected(self) -> list[tuple[Any, ...]]:
        """Return the rest of the log of the whole run."""
        return rest_of(
            self.log,
            (np.arange(len(self.log)) >= count_before_decision(self.log, self.at)),
            self.all,
        )

    def answers(self) -> Answers:
        """Return the answers of the rest."""
        given = [question.answer for question in self.asked[self.first :]]
        return Answers(given, self.seed)

    def check_native(self) -> list[Asked]:
        """Continue in the native core, compare, and return the questions."""
        run = PolicyRun(self.rest, self.arguments)
        found = play(run, self.answers(), self.ids)
        expected = self.asked[self.first :]
        for theirs, ours in zip(expected, found, strict=False):
            assert_same(theirs, ours)
        assert len(found) == len(expected)
        log = run.log()
        rows = np.arange(len(log)) >= len(self.start.log)
        assert rest_of(log, rows, self.ids) == self.expected()
        if self.compares_rewards:
            # The reward of a run's first step includes that of the time before it.
            is_first = self.first == 0 or (bool(found) and found[0].now > self.at)
            begin = 2 if is_first else 1
            first = [question.reward for question in expected[begin:]]
            again = [question.reward for question in found[begin:]]
            np.testing.assert_allclose(again, first, rtol=1e-9, atol=1e-9)
        return found

    def check_decision(self) -> bool:
        """Make the decision of the instant, not knowing run times; return whether there is one."""
        if not self.start.decides or self.plan.cluster.conditions.tick > 0:
            return False
        start = without_run_times(self.start, self.plan.options.knowledge)
        inputs = inputs_of(self.plan, start.workload, seed=self.of_run, start=start)
        more = len(self.jobs) > self.start.num_jobs
        run = PolicyRun(inputs, self.arguments, only_now=True, expects_jobs=more)
        found = play(run, self.answers(), self.ids)
        expected = [asked for asked in self.asked[self.first :] if asked.now == self.at]
        for theirs, ours in zip(expected, found, strict=True):
            assert_same(theirs, ours)
        log = run.log(self.at)
        rows = np.arange(len(log)) >= len(self.start.log)
        assert rest_of(log, rows, self.ids) == [row for row in self.expected() if row[0] == self.at]
        return True

    def check_reference(self, native: list[Asked]) -> None:
        """Continue in the reference simulator, and compare with the rest in the native core."""
        answers = self.answers()
        plan, nodes = self.plan, self.plan.cluster.num_nodes
        place = iter(native)

        def answer(question: Question) -> Answer:
            ours = next(place)
            assert question.now == ours.now
            assert self.ids[question.jobs].tolist() == ours.jobs
            assert self.ids[question.running].tolist() == ours.running
            hand = -1 if question.job_at_hand is None else int(self.ids[question.job_at_hand])
            assert hand == ours.at_hand
            mask = np.array(question.mask)
            if question.pairs:
                pairs = np.array(question.pairs) & mask[: plan.options.window, None]
                mask = np.append(pairs.ravel(), mask[plan.options.window])
            np.testing.assert_array_equal(mask, ours.mask)
            np.testing.assert_array_equal(episode.observe(question), ours.observation)
            if pays and episode.rewards.has_decided:
                credit = episode.credit
                total = sum(episode.rewards.sums) if credit is None else credit.reward
                np.testing.assert_allclose(total, ours.reward, rtol=1e-9, atol=1e-9)
            chosen = answers(ours.mask)
            if question.pairs:
                return Answer(*divmod(chosen, nodes))
            return Answer(chosen)

        pays = all(term.occasion != "end" for term in self.plan.reward.terms)
        episode = ReferenceEpisode(plan, self.jobs, self.of_run, answer, self.rest)
        log = episode.play()
        assert next(place, None) is None
        rows = np.arange(len(log)) >= len(self.start.log)
        assert rest_of(log, rows, self.ids) == self.expected()


def assert_same(expected: Asked, found: Asked) -> None:
    """Raise unless two questions are the same."""
    for name in ("now", "jobs", "running", "at_hand"):
        assert getattr(found, name) == getattr(expected, name), name
    np.testing.assert_array_equal(found.mask, expected.mask)
    np.testing.assert_array_equal(found.observation, expected.observation, err_msg="observation")
