"""Judge: what is to be gained in an environment.

The share of questions with a choice; the return of random actions, of the first allowed action and
of the best rule, in hindsight; and a bound that no policy exceeds, where there is one. All on the
same evaluation episodes, so that differences are paired.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.env.make_plan import make_plan
from berthline.env.options import resolve_options
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError
from berthline.evaluate.bounds import jct_lower_bound
from berthline.evaluate.statistics.t_distribution import t_quantile
from berthline.policies.scheduler import Scheduler
from berthline.sim.simulate import simulate
from berthline.sim.snapshots.resume import resume
from berthline.sim.snapshots.take import take_jobs
from berthline.tasks.opponents import Opponent, opponents_of, plays_in_meta
from berthline.tasks.play import (
    BATCH,
    EVALUATION_SEED,
    Played,
    as_expert,
    as_policy,
    at_random,
    first_allowed,
    last_allowed,
    play,
    policy_environment,
    rule_environment,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.env.plan import Plan
    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload

    Floats = npt.NDArray[np.float64]

EPISODES = 256
BEGINS = 4
_SURE = 0.975
_HOUR = 3600.0
_JCT, _WAIT = "-jobs_in_system / num_jobs / 3600", "-queue_len / num_jobs / 3600"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """The mean return of a policy over evaluation episodes, with 95 % intervals.

    Attributes:
        name: of the policy.
        value: the mean return.
        low: lower end of its interval.
        high: upper end.
        against: how much better than the best rule, as a share of that rule's mean; below 0 =
            worse. None for the rule itself.
        against_low: lower end of the interval of the paired difference.
        against_high: upper end.
        begins: the returns of the first BEGINS episodes, by which a test checks the rest.
    """

    name: str
    value: float
    low: float
    high: float
    against: float | None = None
    against_low: float | None = None
    against_high: float | None = None
    begins: list[float] = []


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be gained in an environment.

    Attributes:
        name: of the environment or the task.
        seat: of the environment.
        episodes: how many were played.
        seed: of the first one.
        decisions: questions in an episode, with the first allowed action.
        choices: share of them with more than one allowed action.
        random: random allowed actions.
        first: the first allowed action; in Gate, start.
        best: the rule with the highest mean return on these episodes.
        rules: how many rules were tried.
        bound: mean of what no policy exceeds; None = there is no such bound.
        policies: learned policies and other schedulers.
    """

    name: str
    seat: str
    episodes: int
    seed: int
    decisions: float
    choices: float
    random: Row
    first: Row
    best: Row
    rules: int
    bound: float | None
    policies: list[Row] = []


class Judge:
    """Plays the evaluation episodes of one environment.

    Args:
        name: of the environment or the task.
        seat: of the environment.
        options: of the environment.
        episodes: how many.
        seed: of the first.
    """

    def __init__(
        self,
        name: str,
        seat: str,
        options: Mapping[str, Any],
        *,
        episodes: int = EPISODES,
        seed: int = EVALUATION_SEED,
    ) -> None:
        self.name, self.seat, self.episodes, self.seed = name, seat, episodes, seed
        resolved = resolve_options(seat, {**options, "experts": ()})
        # All of them: another seat that plays the same jobs has other defaults.
        self.options = {
            field.name: getattr(resolved, field.name) for field in dataclasses.fields(resolved)
        } | {"preset": None}
        self.plan: Plan = make_plan(seat, resolved)
        self._jobs: list[tuple[Workload, Snapshot | None]] | None = None

    def _play(self, choose: Any, name: str, **changes: Any) -> Played:
        options = {**self.options, **changes}
        return play(self.seat, options, choose, name=name, episodes=self.episodes, seed=self.seed)

    def random(self) -> Played:
        """Play random allowed actions."""
        return self._play(at_random(self.seed), "random")

    def first(self) -> Played:
        """Play the first allowed action; in Gate, start."""
        if self.seat == "gate":
            return self._play(last_allowed, "start")
        return self._play(first_allowed, "first")

    def opponents(self) -> list[Opponent]:
        """Return the rules to compare with, all that can be played with this reward."""
        is_in_log = self._only_formula() in (_JCT, _WAIT)
        return [
            one
            for one in opponents_of(self.plan)
            if is_in_log or not one.scheduler or plays_in_meta(one.scheduler)
        ]

    def opponent(self, one: Opponent) -> Played:
        """Play a rule."""
        if one.expert:
            return self._play(as_expert(one.expert), one.name, experts=[one.expert])
        if one.victims:
            return self._play(first_allowed, one.name, running_order=one.victims)
        if one.is_no_op:
            return self._play(last_allowed, one.name)
        return self.scheduler(one.scheduler)

    def scheduler(self, text: str) -> Played:
        """Play a scheduler or a learned policy, in whatever seat it has.

        Raises:
            ConfigError: it can only run in the simulator, and the reward is not a wait or a JCT.
        """
        rule = Scheduler.parse(text)
        if rule.learned is not None:
            options = policy_environment(rule.learned, self.seat, self.options)
            choose = as_policy(rule.learned, rule.learned.seat, options)
            return play(
                rule.learned.seat,
                options,
                choose,
                name=text,
                episodes=self.episodes,
                seed=self.seed,
            )
        if plays_in_meta(text):
            options = rule_environment(self.options, str(rule))
            return play(
                "meta",
                options,
                first_allowed,
                name=text,
                episodes=self.episodes,
                seed=self.seed,
            )
        return self._simulated(text, rule)

    def _simulated(self, text: str, rule: Scheduler) -> Played:
        """Run a rule that no environment plays; the return follows from the log."""
        formula = self._only_formula()
        if formula not in (_JCT, _WAIT) or (rule.preemption is not None and formula == _WAIT):
            raise ConfigError(
                f"reward {self.plan.reward.name!r} of scheduler {text!r}",
                where=self.name,
                expected="the mean wait or JCT: nothing else follows from a log alone",
            )
        returns = []
        for workload, start in self.beginnings():
            if start is None:
                result = simulate(
                    workload, self.plan.cluster, rule, knowledge=self.plan.options.knowledge
                )
            else:
                arrivals = take_jobs(workload, np.arange(start.num_jobs, len(workload)))
                result = resume(
                    start, rule, arrivals=arrivals, knowledge=self.plan.options.knowledge
                )
            metrics = result.metrics()
            mean = metrics.jct.mean if formula == _JCT else metrics.wait.mean
            returns.append(-mean / _HOUR)
        return Played(name=text, returns=returns, decisions=0, choices=0)

    def _only_formula(self) -> str:
        terms = [term for term in self.plan.reward.terms if term.weight]
        return terms[0].formula if len(terms) == 1 and terms[0].weight == 1 else ""

    def beginnings(self) -> list[tuple[Workload, Snapshot | None]]:
        """Return the jobs of every episode, and the state in which it begins."""
        if self._jobs is None:
            self._jobs = []
            for first in range(0, self.episodes, BATCH):
                count = min(BATCH, self.episodes - first)
                vector = SchedulingVectorEnv(count, self.seat, **self.options)
                vector.reset(seed=[self.seed + first + number for number in range(count)])
                self._jobs += [(vector.workload(i), vector.start(i)) for i in range(count)]
        return self._jobs

    def bound(self) -> float | None:
        """Return the mean over episodes of a return that no policy exceeds, if one is known.

        Of JCTs, see evaluate/bounds.py. Of waits, where a job always takes equally long: all GPUs
        have one speed, nothing delays or slows a job, and none is preempted.
        """
        formula = self._only_formula()
        is_plain = self.plan.options.start in ("empty", None)
        if formula == _WAIT:
            speeds = self.plan.inputs.node_speed
            conditions = self.plan.cluster.conditions.changed()
            is_plain &= self.seat != "preempt" and np.ptp(speeds) == 0 and not conditions
        elif formula != _JCT:
            return None
        if not is_plain:
            return None
        found = []
        for workload, _ in self.beginnings():
            bound = jct_lower_bound(workload, self.plan.cluster)
            rest = float(workload.run.sum()) if formula == _WAIT else 0.0
            if bound.jobs != len(workload):
                return None
            found.append(-max(bound.total - rest, 0.0) / len(workload) / _HOUR)
        return float(np.mean(found))

    def measure(
        self,
        *,
        policies: Mapping[str, str] | None = None,
        rules: list[Opponent] | None = None,
        tell: Callable[[int, int, str], None] = lambda *_: None,
    ) -> Measurement:
        """Play everything, and return the results.

        Args:
            policies: schedulers and learned policies, by the name that they have in tables.
            rules: the rules to compare with; None = all that fit the seat.
            tell: called with (parts done, parts in total, name of the next part).
        """
        rules = self.opponents() if rules is None else rules
        named = dict(policies or {})
        steps = 3 + len(rules) + len(named)
        tell(0, steps, "random")
        random = self.random()
        tell(1, steps, "first")
        first = self.first()
        played: list[Played] = []
        for rule in rules:
            tell(2 + len(played), steps, rule.name)
            played.append(self.opponent(rule))
        best = max(played, key=lambda one: float(np.mean(one.returns)))
        rows: list[Row] = []
        for name, text in named.items():
            tell(2 + len(played) + len(rows), steps, name)
            own = self.scheduler(text)
            rows.append(row_of(msgspec.structs.replace(own, name=name), best))
        tell(steps - 1, steps, "bound")
        return Measurement(
            name=self.name,
            seat=self.seat,
            episodes=self.episodes,
            seed=self.seed,
            decisions=first.decisions / self.episodes,
            choices=first.choices / max(first.decisions, 1),
            random=row_of(random, best),
            first=row_of(first, best),
            best=row_of(best),
            rules=len(rules),
            bound=self.bound(),
            policies=rows,
        )


def row_of(played: Played, best: Played | None = None) -> Row:
    """Return the mean return of a policy, and its paired difference to the best rule."""
    values = np.array(played.returns)
    half = _half_width(values)
    mean = float(values.mean())
    row = Row(
        name=played.name,
        value=mean,
        low=mean - half,
        high=mean + half,
        begins=played.returns[:BEGINS],
    )
    if best is None:
        return row
    theirs = np.array(best.returns)
    scale = abs(float(theirs.mean())) or math.nan
    difference = (values - theirs) / scale
    own, half = float(difference.mean()), _half_width(difference)
    return msgspec.structs.replace(
        row, against=own, against_low=own - half, against_high=own + half
    )


def _half_width(values: Floats) -> float:
    """Return half of the t interval of a mean."""
    if len(values) < 2:
        return math.nan
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return t_quantile(_SURE, len(values) - 1) * error
