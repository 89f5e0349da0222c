"""Rewards of the reference environment, computed in plain Python."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.slowdown import BOUND_SECONDS
from berthline.model.schedule import FINISH, START
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare
from berthline.sim.reference import Simulation
from berthline.sim.reference_speed import progress_now
from berthline.sim.reference_words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.env.plan import Plan
    from berthline.env.reference_env import ReferenceEpisode
    from berthline.model.schedule import Schedule
    from berthline.policies.formulas import Formula

SCORES = ("jct", "wait", "slowdown", "bounded_slowdown", "utilization")


class ReferenceRewards:
    """The reward since the last decision, `total`, its terms, `sums`, and over the episode, `sum`.

    Rewards before the first decision are added to it, so that the sum over an episode is complete.

    Args:
        episode: the episode.
        plan: of the environment.
        seed: of the episode.
    """

    def __init__(self, episode: ReferenceEpisode, plan: Plan, seed: int) -> None:
        self.episode, self.plan, self.seed = episode, plan, seed
        self.terms = [(term.occasion, term.parse()) for term in plan.reward.terms]
        self.sums = [0.0] * len(self.terms)
        self.total = 0.0
        self.before = 0.0  # before the last decision
        self.has_decided = False
        self.asleep_at: float | None = None  # the time at which nodes count as asleep; None = now
        self.values: dict[str, float] = {}  # words that have a value only at one moment
        self.idle_w = [plan.cluster.types[kind].idle_w for kind in plan.cluster.gpu_type]
        self.peak_w = [plan.cluster.types[kind].peak_w for kind in plan.cluster.gpu_type]

    @property
    def sum(self) -> float:
        """The return of the episode so far."""
        return self.before + self.total

    def true_work(self, job: int) -> float:
        """GPU-seconds of a job."""
        return self.episode.run_time[job] * (self.episode.milli(job) / 1000)

    # --- occasions -------------------------------------------------------------------------------

    def decide(self, *, is_no_op: bool, has_started: bool, can_start: tuple[int, ...]) -> None:
        """A decision was made and carried out."""
        if self.has_decided:
            self.sums = [0.0] * len(self.terms)
            self.before += self.total
            self.total = 0.0
        self.has_decided = True
        self.values = {
            "is_no_op": float(is_no_op),
            "has_started": float(has_started),
            "startable_work": sum(map(self.true_work, can_start), 0.0),
        }
        self._add("decision", 0)

    def pass_time(self, since: float) -> None:
        """Time has passed: integrate over it.

        Between events, values are linear in time or constant. It is not an event when a node falls
        asleep, or when a job begins to make progress after its start, so the interval is split
        there if a term depends on it.
        """
        until = self.episode.now
        cuts = {
            time
            for time in (*self._times_of_sleep(), *self._times_of_progress())
            if since < time < until
        }
        times = sorted({since, until, *cuts})
        for begin, end in itertools.pairwise(times):
            self._integrate(begin, end)

    def _integrate(self, since: float, until: float) -> None:
        """Add seconds x the mean of the values at both ends; sleep is that at the beginning."""
        episode = self.episode
        kept, self.asleep_at = episode.pretended_now, since
        for i, (occasion, formula) in enumerate(self.terms):
            if occasion == "second":
                episode.pretended_now = since
                first = self.value(formula, 0)
                episode.pretended_now = until
                last = self.value(formula, 0)
                self._count(i, (until - since) * (first + last) / 2)
        episode.pretended_now, self.asleep_at = kept, None

    def _asks(self, word: str) -> bool:
        return any(word in formula.words for _, formula in self.terms)

    def _times_of_sleep(self) -> list[float]:
        """Return when idle nodes fall asleep, or fell asleep."""
        if not self._asks("power_w"):
            return []
        return [self.falls_asleep(node) for node in range(len(self.episode.up))]

    def _times_of_progress(self) -> list[float]:
        """Return when running jobs begin to make progress, or have begun."""
        if not self._asks("backlog_work"):
            return []
        return [running.since for running in self.episode.running.values()]

    def falls_asleep(self, node: int) -> float:
        """Return when a node falls asleep; infinity = never: it is in use, or down."""
        episode = self.episode
        if not episode.up[node] or episode.jobs_on(node):
            return math.inf
        return episode.idle_since[node] + episode.conditions.sleep_after

    def read_log(self, since: int) -> None:
        """Jobs have finished: read the rows of the log from `since` on."""
        for _, kind, job, _ in self.episode.log[since:]:
            if kind == FINISH:
                self._add("finish", job)

    def finish_episode(self) -> None:
        """The episode is over."""
        if all(occasion != "end" for occasion, _ in self.terms):
            return
        episode = self.episode
        end = episode.now if episode.end == "truncated" else episode.inputs.horizon
        scores = self._scores(episode.schedule(end))
        self.values = {
            "is_done": float(episode.end == "terminated"),
            "fairness": scores.pop("fairness"),
            **{f"mean_{name}": value for name, value in scores.items()},
        }
        if any(word.startswith("baseline") for _, formula in self.terms for word in formula.words):
            inputs = prepare(
                episode.inputs.workload,
                self.plan.cluster,
                Scheduler.parse(self.plan.options.baseline),
                knowledge=self.plan.options.knowledge,
                seed=self.seed,
                horizon=None if np.isinf(end) else end or None,
                start=episode.inputs.start,
            )
            # Nodes fail as in the episode, whenever each of the two runs ends.
            inputs = dataclasses.replace(inputs, outages=episode.inputs.outages)
            theirs = self._scores(Simulation(inputs).run(lambda _: None))
            self.values |= {f"baseline_{name}": theirs[name] for name in SCORES}
        self._add("end", 0)

    def _add(self, occasion: str, job: int) -> None:
        for i, (own, formula) in enumerate(self.terms):
            if own == occasion:
                self._count(i, self.value(formula, job))

    def _count(self, term: int, value: float) -> None:
        """Add a value to its term, and to the reward.

        The reward adds values as they come. Where they are finite, it is the sum of the terms; but
        a term may overflow to infinity and meet another's -infinity where the reward does not.
        """
        self.sums[term] += value
        self.total += value

    def _scores(self, log: Schedule) -> dict[str, float]:
        """Return means over the jobs that were submitted and not rejected."""
        measured = measure(log, self.episode.inputs.workload, self.plan.cluster)
        if measured.jobs.submitted == measured.jobs.rejected:
            return {**dict.fromkeys(SCORES, 0.0), "fairness": 1.0}
        means = {name: float(getattr(measured, name).mean) for name in SCORES[:-1]}
        return {
            **means,
            "utilization": measured.utilization.gpu,
            "fairness": measured.fairness.jain,
        }

    # --- words -----------------------------------------------------------------------------------

    def value(self, formula: Formula, job: int) -> float:
        """Return the value of a term's formula now; `job` is the one that finished."""

        def of_word(word: str) -> float:
            if word in self.values:
                return self.values[word]
            if word in REWARD_WORDS:
                return float(REWARD_WORDS[word](self, job))
            return float(WORDS[word](self.episode, job))

        return formula.evaluate(of_word)

    def jct(self, job: int) -> float:
        """Seconds since a job was submitted."""
        return self.episode.now - self.episode.submit[job]

    def started(self, job: int) -> float:
        """When a job first started."""
        return next(t for t, kind, who, _ in self.episode.log if kind == START and who == job)

    def backlog(self) -> float:
        """GPU-seconds that jobs in the system still need."""
        episode, total = self.episode, 0.0
        for job in sorted((*episode.queue, *episode.running, *episode.away)):
            left = max(episode.run_time[job] - progress_now(episode, job), 0.0)
            total += left * (episode.milli(job) / 1000)
        return total

    def power(self) -> float:
        """Watts of all GPUs and sleeping nodes; a node that is down draws none."""
        episode, total = self.episode, 0.0
        now = episode.now if self.asleep_at is None else self.asleep_at
        for node, gpus in enumerate(episode.total.gpus):
            if episode.up[node] and now >= self.falls_asleep(node):
                total += episode.conditions.sleep_w
            elif episode.up[node]:
                busy = gpus - episode.free.milli(node) / 1000
                total += self.idle_w[node] * (gpus - busy) + self.peak_w[node] * busy
        return total

    def unfinished_work(self) -> float:
        """GPU-seconds of the jobs that have not finished."""
        done = sum(self.true_work(job) for _, kind, job, _ in self.episode.log if kind == FINISH)
        return self.total_work() - done

    def overdue_jobs(self) -> int:
        """Jobs in the system whose deadline has passed."""
        episode = self.episode
        left = (*episode.queue, *episode.running, *episode.away)
        return sum(episode.now > episode.inputs.workload.deadline[job] for job in left)

    def total_work(self) -> float:
        """GPU-seconds of all jobs."""
        return sum(map(self.true_work, range(len(self.episode.submit))))


REWARD_WORDS: dict[str, Callable[[ReferenceRewards, int], float]] = {
    "jct": lambda rewards, job: rewards.jct(job),
    "waited": lambda rewards, job: rewards.started(job) - rewards.episode.submit[job],
    "run_time": lambda rewards, job: rewards.episode.run_time[job],
    "true_work": lambda rewards, job: rewards.true_work(job),
    "slowdown": lambda rewards, job: rewards.jct(job) / rewards.episode.run_time[job],
    "bounded_slowdown": lambda rewards, job: max(
        1.0, rewards.jct(job) / max(rewards.episode.run_time[job], BOUND_SECONDS)
    ),
    "missed": lambda rewards, job: (
        rewards.episode.now > rewards.episode.inputs.workload.deadline[job]
    ),
    "jobs_in_system": lambda rewards, _: (
        len(rewards.episode.queue) + len(rewards.episode.running) + len(rewards.episode.away)
    ),
    "waiting_seconds": lambda rewards, _: sum(
        WORDS["wait"](rewards.episode, job) for job in rewards.episode.queue
    ),
    "backlog_work": lambda rewards, _: rewards.backlog(),
    "power_w": lambda rewards, _: rewards.power(),
    "total_work": lambda rewards, _: rewards.total_work(),
    "horizon": lambda rewards, _: rewards.episode.inputs.horizon,
    "num_jobs": lambda rewards, _: len(rewards.episode.submit),
    "time_left": lambda rewards, _: rewards.episode.inputs.horizon - rewards.episode.now,
    "unfinished_work": lambda rewards, _: rewards.unfinished_work(),
    "overdue_jobs": lambda rewards, _: rewards.overdue_jobs(),
}
"""Words of rewards, given the job that an event is about; the others are in `values`."""
