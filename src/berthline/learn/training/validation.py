"""Validation: evaluate a policy on held-out episodes.

There are two sets of episodes: VAL, on which checkpoints are compared with each other, and REPORT,
on which the chosen one is evaluated once. They share no seed with each other or with training. For
a trace, VAL is cut from the validation part and REPORT from the test part. Every policy and
heuristic gets the same episodes.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch

from berthline.env.presets import PRESETS
from berthline.errors import BerthlineError
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.learn.networks.masked_actions import MaskedCategorical
from berthline.learn.training.environments import Environments
from berthline.learn.training.episode_metrics import EPISODE_METRICS
from berthline.learn.training.episode_seeds import REPORT_SEED, VAL_SEED, test_seed
from berthline.model.cluster import Cluster
from berthline.model.snapshot import Snapshot
from berthline.model.workload import Workload
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from berthline.env.plan import Plan
    from berthline.learn.networks.networks import Network

HEURISTICS = (
    "random+skip",
    "fcfs",
    "fcfs+easy",
    "sjf+easy",
    "smallest-first+easy",
    "smallest-area+easy",
    "wfp3+easy",
    "f1+easy",
)
PLACE_RIVALS = (
    "first-fit",
    "best-fit",
    "worst-fit",
    "random",
    "least-loaded",
    "fastest-type",
    "dot-product",
)
"""Placements to compare an agent in the place seat with."""

BLIND_HEURISTICS = ("random+skip", "fcfs", "fcfs+skip", "smallest-first+skip", "lcfs+skip")
"""Heuristics that need no run times."""

LANES = ("express-lane:T=3600:r=0.1", "express-lane:T=3600:r=0.2")
"""Gates to compare an agent in the gate seat with, on the base scheduler."""

_KNOWN: dict[tuple[str, str, str, int], dict[str, Scores]] = {}


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """Scores of a set of episodes, one number each.

    Attributes:
        name: of the policy or scheduler.
        episode_return: sums of rewards; empty if a scheduler ran outside the environment.
        metrics: by name, see EPISODE_METRICS.
    """

    name: str
    episode_return: list[float]
    metrics: dict[str, list[float]]

    def mean(self, metric: str) -> float:
        """Return the mean over episodes."""
        return float(np.mean(self.metrics[metric]))

    @property
    def mean_return(self) -> float | None:
        """The mean return; None = a scheduler ran outside the environment."""
        return float(np.mean(self.episode_return)) if self.episode_return else None


class StopRequestedError(Exception):
    """An evaluation ended because it was asked to; nothing has changed by it."""


class EpisodeSet:
    """One of the two sets of episodes.

    Args:
        seat: of the environments.
        options: of the environments.
        part: `val` or `report`.
        episodes: number of episodes.
        test_seeds: the episodes of REPORT, instead of the first ones; empty = the first ones.
        must_stop: asked between steps and between runs.

    Raises:
        StopRequestedError: by all methods that run episodes, when `must_stop` says so.
    """

    def __init__(
        self,
        seat: str,
        options: Mapping[str, Any],
        *,
        part: str,
        episodes: int,
        must_stop: Callable[[], bool] = lambda: False,
        test_seeds: Sequence[int] = (),
    ) -> None:
        given = {**options, "credit": None}  # returns are those of the task
        if given.get("split") is not None:
            given["split"] = "validation" if part == "val" else "test"
        self._seat, self._options, self.episodes = seat, given, episodes
        self._seed = VAL_SEED if part == "val" else REPORT_SEED
        self._must_stop = must_stop
        self._seeds: int | list[int] = self._seed
        if test_seeds and part == "report":
            self._seeds, self.episodes = [test_seed(seed) for seed in test_seeds], len(test_seeds)

    def _environments(self) -> Environments:
        return Environments(self._seat, num=self.episodes, seed=self._seeds, options=self._options)

    def run(self, name: str, choose: Callable[[Environments], npt.NDArray[np.int64]]) -> Scores:
        """Run every episode to its end with the actions of a function."""
        envs = self._environments()
        left = np.ones(self.episodes, np.bool_)
        returns: npt.NDArray[np.float64] = np.zeros(self.episodes)
        metrics = {metric: np.zeros(self.episodes) for metric in EPISODE_METRICS}
        while left.any():
            self._check()
            _, terminated, truncated = envs.step(choose(envs))
            over = np.flatnonzero((terminated | truncated) & left)
            if not over.size:
                continue
            left[over] = False
            scores = envs.scores(over)
            returns[over] = scores["return"]
            for metric, values in metrics.items():
                values[over] = scores[metric]
        return Scores(
            name=name,
            episode_return=returns.tolist(),
            metrics={metric: values.tolist() for metric, values in metrics.items()},
        )

    def _check(self) -> None:
        if self._must_stop():
            raise StopRequestedError

    def policy(self, name: str, network: Network) -> Scores:
        """Return the scores of a policy that takes the action with the highest score."""

        @torch.no_grad()
        def choose(envs: Environments) -> npt.NDArray[np.int64]:
            scores, _ = network(torch.from_numpy(envs.observations))
            mask = torch.from_numpy(envs.masks)
            chosen: npt.NDArray[np.int64] = MaskedCategorical(scores[..., 0], mask).mode().numpy()
            return chosen

        return self.run(name, choose)

    def random(self) -> Scores:
        """Return the scores of random allowed actions."""
        draws = np.random.Generator(np.random.Philox(self._seed))

        def choose(envs: Environments) -> npt.NDArray[np.int64]:
            noise = draws.random(envs.masks.shape)
            chosen: npt.NDArray[np.int64] = np.where(envs.masks, noise, -1.0).argmax(axis=1)
            return chosen

        return self.run("random action", choose)

    def workloads(self) -> list[Workload]:
        """Return the jobs of every episode."""
        return [workload for workload, _ in self._beginnings()]

    def _beginnings(self) -> list[tuple[Workload, Snapshot | None]]:
        """Return the jobs of every episode, and the state in which it begins."""
        envs = self._environments()
        return [(envs.workload(env), envs.start(env)) for env in range(self.episodes)]

    def heuristics(self, schedulers: Sequence[str] = ()) -> list[Scores]:
        """Return the scores of schedulers on the same episodes, with the same knowledge.

        A scheduler without a placement gets that of the environment. Training runs with several
        seeds have the same episodes, so results are cached.

        Args:
            schedulers: empty = those of the preset, or of the seat.
        """
        plan = self._environments().plan
        schedulers = schedulers or rivals_of(plan)
        if any(
            isinstance(value, Workload | Cluster | Snapshot) for value in self._options.values()
        ):
            return self._simulated(plan, schedulers)
        key = (self._seat, repr(sorted(self._options.items())), str(self._seeds), self.episodes)
        known = _KNOWN.setdefault(key, {})
        new = [scheduler for scheduler in schedulers if scheduler not in known]
        known |= {scores.name: scores for scores in self._simulated(plan, new)}
        return [known[scheduler] for scheduler in schedulers]

    def _simulated(self, plan: Plan, schedulers: Sequence[str]) -> list[Scores]:
        beginnings = self._beginnings() if schedulers else []
        found = []
        for scheduler in schedulers:
            metrics: dict[str, list[float]] = {metric: [] for metric in EPISODE_METRICS}
            rule = _placed(scheduler, plan.options.placement)
            for workload, start in beginnings:
                self._check()
                run = _metrics_of(rule, workload, start, plan)
                for metric, value in run.items():
                    metrics[metric].append(value)
            found.append(Scores(name=scheduler, episode_return=[], metrics=metrics))
        return found

    def with_return(self, scores: Scores) -> Scores:
        """Return a scheduler's scores with the returns of an agent that chooses as it does.

        Such an agent sees the jobs in its window. Where more jobs wait, it is another scheduler
        than the one that the metrics are of. Without returns, it cannot be asked in this seat.
        """
        plan = self._environments().plan
        if plan.seat == "preempt" or scores.episode_return:
            return scores
        rule = scores.name if plan.menu else _placed(scores.name, plan.options.placement)
        driven = copy.copy(self)
        driven._options = {**self._options, "experts": (rule,)}
        try:
            found = driven.run(scores.name, lambda envs: envs.expert_actions(rule))
        except BerthlineError:
            return scores
        return msgspec.structs.replace(scores, episode_return=found.episode_return)


def _metrics_of(
    rule: str, workload: Workload, start: Snapshot | None, plan: Plan
) -> dict[str, float]:
    """Return the scores of a rule in an episode, by the names that environments give them."""
    from berthline.sim.simulate import simulate
    from berthline.sim.snapshots.resume import resume
    from berthline.sim.snapshots.take import take_jobs

    knowledge = plan.options.knowledge
    if start is None:
        result = simulate(workload, plan.cluster, rule, knowledge=knowledge)
    else:
        to_come = take_jobs(workload, np.arange(start.num_jobs, len(workload)))
        result = resume(start, rule, arrivals=to_come, knowledge=knowledge)
    run = result.metrics()
    return {metric: METRICS[name].of(run) for metric, name in EPISODE_METRICS.items()}


def rivals_of(plan: Plan) -> list[str]:
    """Return the schedulers that policies are compared with, unless others are named.

    A preset may name what fits its environment. What a policy chooses from is what it must beat:
    Meta's schedulers, each alone, and Place's rules behind the same queue.
    """
    preset = plan.options.preset
    if preset is not None and PRESETS[preset].rivals:
        return _with_knowledge(PRESETS[preset].rivals, plan.options.knowledge)
    if plan.seat == "meta":
        return [str(scheduler) for scheduler in plan.menu]
    if plan.seat == "place":
        queue, _, rest = str(plan.scheduler).partition("@")
        own, mark, gate = rest.partition("?")
        rules = [str(rule).partition("@")[2] for rule in plan.menu]
        if not rules:
            same = ("first-fit", "first-available")  # two names of one rule
            rules = [own, *(rule for rule in PLACE_RIVALS if rule != own)]
            rules = [rule for rule in rules if own not in same or rule == own or rule not in same]
        return [f"{queue}@{rule}{mark}{gate}" for rule in rules]
    if plan.options.knowledge == "none":
        return list(BLIND_HEURISTICS)
    rivals = list(HEURISTICS)
    if plan.seat == "gate" and not plan.options.gate:
        base = str(plan.scheduler)
        rivals += [base, *(f"{base}?{lane}" for lane in LANES)]
    return rivals


def _with_knowledge(schedulers: Sequence[str], knowledge: str) -> list[str]:
    """Return the schedulers that need no run times, if there are none; else all."""
    if knowledge != "none":
        return list(schedulers)
    return [one for one in schedulers if not Scheduler.parse(one).needs_run_times]


def _placed(scheduler: str, placement: str) -> str:
    """Return a scheduler with a placement, unless it has one."""
    rule, mark, gate = scheduler.partition("?")
    return scheduler if "@" in rule else f"{rule}@{placement}{mark}{gate}"
