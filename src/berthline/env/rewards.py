"""Rewards: what an agent is told about its decisions, as named sets of formulas.

A reward is a sum of terms. Each term is a formula with an occasion, which says when it is
evaluated (OCCASIONS) and what it may be about (SCOPES). Terms may use true run times: rewards are
for training, not for scheduling.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from berthline.env import option_types
from berthline.errors import ConfigError, unknown_name
from berthline.policies.formulas import Formula
from berthline.registry import Registry, keywords_of

OCCASIONS = {
    "decision": "once for each decision, when it has been carried out",
    "second": "integrated over the time that passes until the next decision",
    "finish": "once for each job that finishes, at that instant",
    "end": "once, when the episode is terminated or truncated",
}
"""When terms are evaluated."""

SCOPES = {
    "decision": frozenset({"cluster", "system", "decision"}),
    "second": frozenset({"cluster", "system"}),
    "finish": frozenset({"job", "cluster", "system", "finish"}),
    "end": frozenset({"cluster", "system", "end"}),
}
"""What the words of a term may be about, by its occasion."""


@dataclasses.dataclass(frozen=True)
class Term:
    """One part of a reward.

    Attributes:
        name: its name in `info["reward_terms"]`.
        occasion: when it is evaluated: a key of SCOPES.
        formula: its value.
        weight: its factor.
    """

    name: str
    occasion: str
    formula: str
    weight: float = 1.0

    def parse(self) -> Formula:
        """Return the weighted, checked formula.

        Raises:
            ConfigError: an unknown occasion.
            PolicyError: the text is not a formula, or has a word without a value on this occasion.
        """
        if self.occasion not in SCOPES:
            what, expected, hint = unknown_name("occasion", self.occasion, SCOPES)
            raise ConfigError(
                what, where=f"reward term {self.name!r}", expected=expected, hint=hint
            )
        text = self.formula if self.weight == 1.0 else f"{self.weight!r} * ({self.formula})"
        return Formula.parse(text, scopes=SCOPES[self.occasion])


@dataclasses.dataclass(frozen=True)
class Reward:
    """A named reward.

    Attributes:
        name: of REWARDS.
        meaning: one line for lists.
        terms: its parts.
        needs_horizon: whether it is undefined for an episode without a horizon.
        metric: what policies trained with it are compared by, one of
            `evaluate.metrics.compared_metrics.METRICS`. Rewards for short waits have mean JCT:
            without preemption and on GPUs of one speed it is the wait and a constant, and its
            ratio exists where no job waits.
    """

    name: str
    meaning: str
    terms: tuple[Term, ...]
    needs_horizon: bool = False
    metric: str = "jct_mean"

    def uses(self, words: frozenset[str]) -> bool:
        """Whether a term uses any of the words."""
        return any(term.parse().words & words for term in self.terms)


def _relative(score: str, *, higher_is_better: bool = False) -> tuple[Term, ...]:
    mine, theirs = f"mean_{score}", f"baseline_{score}"
    gain = f"{mine} - {theirs}" if higher_is_better else f"{theirs} - {mine}"
    # Waits may be 0, and differences of less than 1 s mean nothing; utilizations are below 1.
    least = "1e-9" if higher_is_better else "1"
    largest = f"max({mine}, {theirs}, {least})"
    return (Term(score, "end", f"({gain}) / {largest}"),)


_OWN = {
    reward.name: reward
    for reward in (
        Reward(
            "jct",
            "minus seconds x jobs in the system: sums to minus the total JCT",
            (Term("jct", "second", "-jobs_in_system"),),
        ),
        Reward(
            "mean-jct-hours",
            "the same per job and in hours: minus the mean JCT, if every job runs to its end",
            (Term("jct", "second", "-jobs_in_system / num_jobs / 3600"),),
        ),
        Reward(
            "mean-wait-hours",
            "minus seconds x waiting jobs, per job and in hours, including waits after a "
            "preemption",
            (Term("wait", "second", "-queue_len / num_jobs / 3600"),),
        ),
        Reward(
            "wait-and-slowdown",
            "3 x mean-wait-hours, minus log2(bounded slowdown) / jobs for each finished job",
            (
                Term("wait", "second", "-queue_len / num_jobs / 3600", 3.0),
                Term("slowdown", "finish", "-log2(bounded_slowdown) / num_jobs"),
            ),
        ),
        Reward(
            "slowdown",
            "minus the bounded slowdown of each job that finishes",
            (Term("slowdown", "finish", "-bounded_slowdown"),),
            metric="bounded_slowdown_mean",
        ),
        Reward(
            "relative-bounded-slowdown",
            "at the end, mean bounded slowdown against the baseline's: (theirs - mine) / larger",
            _relative("bounded_slowdown"),
            metric="bounded_slowdown_mean",
        ),
        Reward(
            "relative-slowdown",
            "the same for mean slowdown",
            _relative("slowdown"),
            metric="bounded_slowdown_mean",
        ),
        Reward("relative-wait", "the same for mean wait", _relative("wait"), metric="wait_mean"),
        Reward("relative-jct", "the same for mean JCT (turnaround)", _relative("jct")),
        Reward(
            "relative-utilization",
            "the same for GPU utilization: (mine - theirs) / larger",
            _relative("utilization", higher_is_better=True),
            metric="utilization",
        ),
        Reward(
            "multi-objective",
            "JCT, missed deadlines, energy and fairness, as separate terms",
            (
                Term("jct", "second", "-jobs_in_system / num_jobs / 3600"),
                Term("deadlines", "finish", "-missed / num_jobs"),
                Term("overdue", "end", "-overdue_jobs / num_jobs"),
                Term("energy", "second", "-power_w / 3.6e6 / num_jobs"),
                Term("fairness", "end", "fairness - 1"),
            ),
        ),
        Reward(
            "drl-scheduler",
            "the D3QN and SAC scheduler's: finished priorities, waits, GPUs in use, jobs left",
            (
                Term("finished", "finish", "priority", 50.0),
                Term("waits", "second", "-waiting_seconds / 1000", 0.05),
                Term("use", "second", "utilization", 1.5),
                Term("jobs", "second", "-jobs_in_system", 0.3),
            ),
        ),
        Reward(
            "rlmetadqn",
            "the meta-scheduler's; a second counts as a fifth of its step of 5 s",
            (
                Term("slowdown", "finish", "-min(slowdown, 10) / 10"),
                Term("deadlines", "finish", "-missed", 5.0),
                Term("waits", "finish", "-min(waited, 3600) / 3600", 0.5),
                Term("use", "second", "utilization / 5", 0.1),
                Term("queue", "second", "-min(queue_len, 100) / 100 / 5", 0.1),
                Term("power", "second", "-min(100 + 250 * busy_gpus, 800) / 800 / 5", 0.05),
            ),
            metric="bounded_slowdown_mean",
        ),
        Reward(
            "lsf",
            "the LSF host picker's: minus seconds, and for each start a bonus that grows with "
            "utilization",
            (
                Term("time", "second", "-1"),
                Term("start", "decision", "has_started", 0.02),
                Term("use", "decision", "has_started * utilization", 0.05),
                Term("full", "decision", "has_started * utilization ** 2", 0.02),
            ),
            metric="makespan",
        ),
        Reward(
            "lookahead",
            "the look-ahead system's: work done, minus work left and passed over, and terms at "
            "the end; needs a horizon_factor",
            (
                Term("finished", "finish", "true_work / total_work"),
                Term("backlog", "second", "-backlog_work / total_work / horizon"),
                Term("no-op", "decision", "-is_no_op * startable_work / total_work", 0.05),
                Term("done", "end", "is_done * (1 - now / horizon)"),
                Term("left", "end", "-(1 - is_done) * unfinished_work / total_work"),
            ),
            needs_horizon=True,
        ),
    )
}


def register_reward(
    name: str,
    terms: Mapping[str, str | Sequence[str]],
    *,
    meaning: str = "",
    metric: str | None = None,
    needs_horizon: bool = False,
) -> Reward:
    """Add a reward, usable at once as the option `reward`.

    A package can add one by an entry point in the group `berthline.rewards`: a mapping with these
    parameters.

    Args:
        name: lower-case words joined by hyphens.
        terms: as in the option `reward`: {name: (occasion, formula)}.
        meaning: one line for lists.
        metric: what policies trained with it are compared by; None = what its words are about.
        needs_horizon: whether it is undefined for an episode without a horizon.

    Raises:
        ConfigError: the name is taken or malformed, or an occasion or the metric is unknown.
        PolicyError: a formula cannot be used.

    Example:
        register_reward("queue", {"queue": ("second", "-queue_len / 3600")})
    """
    from berthline.evaluate.metrics.compared_metrics import check_metric

    own = _own_terms(terms)
    for term in own:
        term.parse()
    if metric is not None:
        check_metric(metric)
    reward = Reward(
        name, meaning or "of the user's own", own, needs_horizon, metric or _metric_of(own)
    )
    return REWARDS.add(name, reward)


REWARDS = Registry[Reward](
    "a reward",
    "berthline.rewards",
    _OWN,
    lambda name, value: register_reward(name, **keywords_of("a reward", value, register_reward)),
)
"""Named rewards."""


def _own_terms(terms: Any) -> tuple[Term, ...]:
    return tuple(
        Term(name, *_TERM.take(f"reward, term {name!r},", pair))
        for name, pair in _TERMS.take("reward", terms).items()
    )


def _pair(value: Any) -> tuple[str, str]:
    occasion, formula = option_types.TEXTS.convert(value)
    return occasion, formula


def _some(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = option_types.TABLE.convert(value)
    if not found:
        raise ValueError
    return found


_TERM = option_types.OptionType(
    'an occasion and a formula, such as ("second", "-queue_len")', _pair
)
_TERMS = option_types.OptionType("a name, or terms: {name: (occasion, formula)}", _some)

_WORDS_OF_METRICS = {
    "bounded_slowdown_mean": frozenset(
        {"slowdown", "bounded_slowdown", "mean_slowdown", "mean_bounded_slowdown"}
    ),
    "wait_mean": frozenset({"mean_wait"}),
    "utilization": frozenset({"mean_utilization"}),
}
"""Words that say what a reward of the user's own is about."""


def _metric_of(terms: Sequence[Term]) -> str:
    """Return the metric of terms: that of the first word that names one, else mean JCT."""
    for term in terms:
        words = term.parse().words
        for metric, about in _WORDS_OF_METRICS.items():
            if words & about:
                return metric
    return "jct_mean"


RewardArgument = str | Reward | Mapping[str, str | Sequence[str]]


def resolve_reward(given: RewardArgument, weights: Mapping[str, float] | None = None) -> Reward:
    """Return the reward that the option `reward` means.

    Args:
        given: a name of REWARDS, a Reward, or a mapping of terms to (occasion, formula).
        weights: replace the weights of some terms; 0 removes a term from the sum.

    Raises:
        ConfigError: an unknown reward, term or occasion.
        PolicyError: a formula cannot be used.
    """
    if isinstance(given, str):
        if given not in REWARDS:
            what, expected, hint = unknown_name("reward", given, REWARDS)
            raise ConfigError(what, where="reward", expected=expected, hint=hint)
        reward = REWARDS[given]
    elif isinstance(given, Reward):
        reward = given
    else:
        own = _own_terms(given)
        reward = Reward("own", "given by the user", own, metric=_metric_of(own))
    names = [term.name for term in reward.terms]
    for name in weights or {}:
        if name not in names:
            what, expected, hint = unknown_name("reward term", name, names)
            raise ConfigError(what, where="reward_weights", expected=expected, hint=hint)
    if weights:
        terms = [
            dataclasses.replace(term, weight=float(weights.get(term.name, term.weight)))
            for term in reward.terms
        ]
        reward = dataclasses.replace(reward, terms=tuple(terms))
    for term in reward.terms:
        term.parse()
    return reward
