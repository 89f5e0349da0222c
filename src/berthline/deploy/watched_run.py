"""Runs to be watched: a log and, for a learned policy, every question and what it thought."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.deploy.policy_run import PolicyRun, inputs_of
from berthline.deploy.run_policy import environment_of, load_policy
from berthline.deploy.trained_policy import read_policy
from berthline.env.rendering.shown_question import (
    action_words,
    of_rows_and_nodes,
    shown_question,
)
from berthline.policies.learned import Learned
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.view.job_colours import share_text
from berthline.view.playback import Playback, ShownQuestion

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload
    from berthline.view.scene import Scene

_BY_VALUE = ("d3qn", "meta-dqn")
"""Algorithms whose scores are values of actions, not logarithms of probabilities."""


@dataclasses.dataclass(frozen=True)
class WatchedDecision:
    """One question to a policy, and its answer.

    Attributes:
        now: the clock.
        rows: rows of the log before it.
        question: as scenes show it, with the probability of every answer.
        answer: in words.
    """

    now: float
    rows: int
    question: ShownQuestion
    answer: str


@dataclasses.dataclass(frozen=True)
class WatchedRun:
    """A run, ready to be looked at.

    Attributes:
        playback: of its log.
        decisions: of a learned policy; empty for a rule.
    """

    playback: Playback
    decisions: tuple[WatchedDecision, ...] = ()

    @property
    def last_start(self) -> float:
        """When the last job started; from then on the mean wait does not change."""
        log = self.playback.log
        starts = log.time[log.is_start]
        return float(starts[-1]) if len(starts) else 0.0

    def instants(self) -> list[float]:
        """Return when something was decided: the policy was asked, or jobs started."""
        if self.decisions:
            return [decision.now for decision in self.decisions]
        log = self.playback.log
        return [float(time) for time in np.unique(log.time[log.is_start])]

    def scene(self, now: float) -> Scene:
        """Return what a time looks like, after all that happened then."""
        before = [one for one in self.decisions if one.now <= now]
        return self.playback.scene(now, last_choice=before[-1].answer if before else "")

    def scene_of(self, number: int) -> Scene:
        """Return what a decision looked like to the policy."""
        decision = self.decisions[number]
        return self.playback.scene(
            decision.now,
            rows=decision.rows,
            question=decision.question,
            last_choice=self.decisions[number - 1].answer if number else "",
        )


def watched_log(
    log: Schedule, workload: Workload, cluster: Cluster, *, knowledge: str, title: str
) -> WatchedRun:
    """Return a log, ready to be looked at."""
    return WatchedRun(Playback(workload, cluster, log, knowledge=knowledge, title=title))


def watch_run(
    scheduler: Scheduler | Learned,
    workload: Workload,
    cluster: Cluster,
    *,
    knowledge: str,
    seed: int,
    title: str,
    progress: Callable[[int], None] | None = None,
) -> WatchedRun:
    """Run a scheduler, and return the run, ready to be looked at.

    Args:
        scheduler: a rule, or a learned policy, whose every decision is kept.
        workload: the jobs.
        cluster: the nodes.
        knowledge: what is known about run times.
        seed: as in `simulate`.
        title: whose run it is.
        progress: as in `simulate`.
    """
    if isinstance(scheduler, Learned) and scheduler.bandit is not None:
        scheduler = Scheduler.parse(scheduler.name)  # it has no scores to show
    if not isinstance(scheduler, Learned):
        result = simulate(
            workload, cluster, scheduler, knowledge=knowledge, seed=seed, progress=progress
        )
        return watched_log(
            result.log, result.workload, result.cluster, knowledge=knowledge, title=title
        )
    environment = environment_of(scheduler, cluster, knowledge)
    plan = environment.plan
    running = PolicyRun(inputs_of(plan, workload, seed=seed), environment.arguments)
    policy: Any = load_policy(scheduler, environment.layout)
    is_by_value = read_policy(scheduler).facts["algorithm"] in _BY_VALUE
    decisions = []
    while running.has_question:
        asked = running.question()
        mask = running.mask.copy()
        action = policy.choose(running.observation, mask)
        chances = _chances(policy.scores(running.observation), mask, is_by_value=is_by_value)
        share, node = float(chances[action]), 0
        rows = len(running.log())
        if plan.seat == "pickplace":
            action, node = divmod(action, cluster.num_nodes)
            mask = of_rows_and_nodes(plan, mask, is_mask=True).astype(np.bool_)
            chances = of_rows_and_nodes(plan, chances, is_mask=False)
        words = action_words(plan, asked, action, node)
        decisions.append(
            WatchedDecision(
                now=float(asked["now"]),
                rows=rows,
                question=shown_question(plan, asked, mask, chances),
                answer=words if is_by_value else f"{words} ({share_text(share)})",
            )
        )
        running.act(action * cluster.num_nodes + node if plan.seat == "pickplace" else action)
        if progress is not None:
            progress(int(np.searchsorted(workload.submit, asked["now"], side="right")))
    playback = Playback(workload, cluster, running.log(), knowledge=knowledge, title=title)
    return WatchedRun(playback, tuple(decisions))


def _chances(
    scores: npt.NDArray[np.float32], mask: npt.NDArray[np.bool_], *, is_by_value: bool
) -> npt.NDArray[np.float64]:
    """Return the probability that a policy gives each action; by value, it takes the best."""
    allowed = np.where(mask, scores.astype(np.float64), -np.inf)
    if is_by_value:
        best: npt.NDArray[np.float64] = (np.arange(len(mask)) == allowed.argmax()).astype(float)
        return best
    weights = np.exp(allowed - allowed.max())
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares
