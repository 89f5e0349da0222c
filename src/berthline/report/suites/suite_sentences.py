"""The verdict of a suite in sentences: the result first, losses before gains."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from berthline.counted import counted
from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.experiments.robustness_measures import EXPLODES, SMALL_QUEUE
from berthline.report.run_results import NotShown
from berthline.report.suites.against_twin import against_twins, recovery_words
from berthline.report.suites.parts_figure import WHOLE, effects
from berthline.report.suites.shown_suite import BEST_ON_VAL
from berthline.runs.run_layout import SEED_PREFIX, SUMMARY, TRAINING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.evaluate.statistics.paired import Ratio
    from berthline.report.suites.shown_suite import ShownSuite

EVEN = 0.0005
"""Ratios nearer to 1 than this are 1 in three digits."""


def suite_sentences(suite: ShownSuite) -> list[str]:
    """Return the verdict, the most important sentence first."""
    told: list[str] = []
    if not suite.rules or len(suite.overall) < 2:
        told.append("There is nothing to compare with: the suite has one scheduler.")
    elif _is_trained_in_parts(suite):
        told += _of_parts(suite)
    else:
        told += _against_rules(suite)
    told += _of_perturbations(suite)
    return told


def cautions(suite: ShownSuite) -> list[str]:
    """Return how far the verdict can be trusted."""
    found = []
    if suite.failures:
        found.append(
            f"{counted(len(suite.failures), 'run')} failed; cells without all of a scheduler's "
            "runs say less about it. The section on failures has the reasons."
        )
    if suite.plan.limit is not None:
        found.append(
            f"Only part of the suite was run: at most {suite.plan.limit:,} runs, of which all "
            "shapes and sizes have about as many."
        )
    if suite.plan.only:
        found.append(f"Only part of the suite was run: {suite.plan.only}.")
    if suite.plan.seeds < 5:
        found.append(f"Only {counted(suite.plan.seeds, 'seed')}: intervals are rough. Use 8.")
    return found


def ratio_words(ratio: Ratio, *, digits: int = 3) -> str:
    """Return a ratio with its interval.

    Example:
        >>> from berthline.evaluate.statistics.paired import Ratio
        >>> ratio_words(Ratio(ratio=1.2345, low=1.1, high=1.3, windows=8))
        '1.234 [1.100, 1.300]'
    """
    if ratio.ratio is None:
        return "unknown"
    text = f"{ratio.ratio:.{digits}f}"
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def _against_rules(suite: ShownSuite) -> list[str]:
    label = METRICS[suite.metric].label
    others = [name for name in suite.ranked if name not in suite.rules]
    told = []
    worse = [name for name in others if _is_worse(suite, name)]
    if worse:
        told.append(
            f"{label[0].upper()}{label[1:]} against the best fixed rule of each cell in hindsight: "
            + "; ".join(f"{_name(name)} {ratio_words(suite.overall[name])}" for name in worse)
            + (". All of these lose to it." if len(worse) > 1 else ". It loses to it.")
        )
    if even := [name for name in others if name not in worse]:
        told.append(
            "Not worse than the best fixed rule of each cell: "
            + "; ".join(f"{_name(name)} {ratio_words(suite.overall[name])}" for name in even)
            + "."
        )
    best = next(name for name in suite.ranked if name in suite.rules)
    worst = suite.worst(best)
    at_worst = "" if worst is None or worst.ratio is None else f", at worst {worst.ratio:.3f}"
    told.append(
        f"Of the rules, {best} is nearest to the best of each cell: {label} "
        f"{ratio_words(suite.overall[best])} times its, over "
        f"{counted(len(suite.clean_cells), 'cell')}{at_worst}."
    )
    told += _in_the_tail(suite, best)
    wins = {name: suite.best_in(name) for name in suite.rules}
    ranked = sorted((pair for pair in wins.items() if pair[1]), key=lambda pair: -pair[1])
    told.append(
        "Rules that no other beats, by cells: "
        + ", ".join(f"{name} in {count}" for name, count in ranked)
        + "."
    )
    return told


def _in_the_tail(suite: ShownSuite, best: str) -> list[str]:
    """Return where the rule that is best by the metric loses in the tail."""
    column = "jct_p99"
    if suite.metric == column or suite.higher:
        return []
    found = {
        name: ratio
        for name in suite.rules
        if name != best and (ratio := suite.compared(best, name, column)).low is not None
    }
    worse = {name: ratio for name, ratio in found.items() if (ratio.low or 0.0) > 1 + EVEN}
    if not worse:
        return []
    most = max(worse, key=lambda name: worse[name].ratio or 0.0)
    return [
        f"In the tail it loses: p99 JCT {ratio_words(worse[most])} times that of {most}"
        + (f", and more than that of {counted(len(worse) - 1, 'other rule')}" * (len(worse) > 1))
        + "."
    ]


def _name(scheduler: str) -> str:
    return "the rule chosen on VAL" if scheduler == BEST_ON_VAL else scheduler


def _is_worse(suite: ShownSuite, name: str) -> bool:
    one = suite.overall[name]
    if one.ratio is None or one.low is None or one.high is None:
        return False
    return one.high < 1 - EVEN if suite.higher else one.low > 1 + EVEN


def _is_trained_in_parts(suite: ShownSuite) -> bool:
    return any(part.name.endswith(f", {WHOLE}") for part in suite.plan.parts)


def _of_parts(suite: ShownSuite) -> list[str]:
    told = []
    label = METRICS[suite.metric].label
    for part in suite.plan.parts:
        group, _, name = part.name.partition(", ")
        if name != WHOLE or part.name not in suite.overall:
            continue
        ratio = suite.overall[part.name]
        if _is_worse(suite, part.name):
            told.append(
                f"{group} as a whole is worse than the best rule: {label} {ratio_words(ratio)} "
                "times its. A part of nothing is worth nothing: what follows says which parts "
                "change it, not which help."
            )
        else:
            told.append(f"{group} as a whole: {label} {ratio_words(ratio)} times the best rule's.")
        told += _in_training(suite, part.name, group)
    try:
        found = effects(suite)
    except NotShown as reason:
        return [*told, f"No part can be judged: {reason}."]
    for group in dict.fromkeys(one.group for one in found):
        mine = [one for one in found if one.group == group]
        clear = [one for one in mine if one.verdict.startswith(("better", "worse", "equal"))]
        clear = [one for one in clear if "not after" not in one.verdict]
        if not clear:
            told.append(f"{group}: no part makes a difference that can be shown.")
        told += [f"{group}, {one.part}: {one.verdict}." for one in clear]
    return told


def _in_training(suite: ShownSuite, part: str, group: str) -> list[str]:
    """Return how many policies of a part beat the rule that was best on VAL in their training."""
    wins: list[bool] = []
    rules: dict[str, None] = {}
    for path in sorted((suite.run.path / TRAINING / part).glob(f"{SEED_PREFIX}*/{SUMMARY}")):
        found = json.loads(path.read_bytes())
        rule, returns = found["best_heuristic"], found["report"]["return"]
        wins.append(returns["policy"] > returns[rule])
        rules[rule] = None
    if not wins:
        return []
    return [
        f"In training, {sum(wins)} of {len(wins)} policies of {group} beat the rule that was best "
        f"on VAL ({', '.join(rules)}), by the return on held-out episodes."
    ]


def _of_perturbations(suite: ShownSuite) -> list[str]:
    try:
        found = against_twins(suite)
    except NotShown:
        return []
    told = []
    exploding: dict[str, list[tuple[float, str]]] = {}
    for one in found:
        if one.exploded > 0:
            exploding.setdefault(one.scheduler, []).append((one.exploded, one.perturbation))
    if exploding:
        texts = []
        for name, cases in sorted(exploding.items(), key=lambda pair: -max(pair[1])[0]):
            share, text = max(cases)
            more = f" and {len(cases) - 1} more" if len(cases) > 1 else ""
            texts.append(f"{name} ({100 * share:.0f} % of runs under {text}{more})")
        told.append(
            f"Queues explode, to more than {EXPLODES:g} times the longest of the clean twin (or of "
            f"{SMALL_QUEUE:g} jobs), under: {'; '.join(texts)}."
        )
    else:
        told.append("No queue explodes.")
    calm = [name for name in suite.schedulers if name not in exploding]
    if exploding and calm:
        told.append(f"None of the queues of {', '.join(calm)} explodes.")
    told += _costliest(suite, found)
    lost = [one for one in found if one.recovery is not None and math.isinf(one.recovery)]
    if lost:
        pairs: dict[str, list[str]] = {}
        for one in lost:
            pairs.setdefault(one.perturbation, []).append(one.scheduler)
        told.append(
            "In most runs the queue does not return to the band of the clean twin while jobs are "
            "submitted: "
            + "; ".join(f"{text} under {_list(names, suite)}" for text, names in pairs.items())
            + "."
        )
    dips = [one for one in found if one.kind == "capacity-dip" and one.recovery]
    if finite := [one for one in dips if one.recovery and math.isfinite(one.recovery)]:
        slow = max(finite, key=lambda one: one.recovery or 0.0)
        told.append(
            f"Recovery from a capacity dip takes longest for {slow.scheduler} under "
            f"{slow.perturbation}: {recovery_words(slow.recovery)} after it begins, by the median."
        )
    return told


def _list(names: Sequence[str], suite: ShownSuite) -> str:
    return "all schedulers" if len(names) == len(suite.schedulers) else ", ".join(names)


def _costliest(suite: ShownSuite, found: Sequence[object]) -> list[str]:
    from berthline.report.suites.against_twin import AgainstTwin

    known = [one for one in found if isinstance(one, AgainstTwin) and one.ratio.ratio is not None]
    if not known:
        return []
    sign = -1.0 if suite.higher else 1.0
    texts = list(dict.fromkeys(one.perturbation for one in known))
    costs = {
        text: [one for one in known if one.perturbation == text]
        for text in texts
    }  # fmt: skip
    worst = max(costs, key=lambda text: max(sign * (one.ratio.ratio or 0.0) for one in costs[text]))
    most = max(costs[worst], key=lambda one: sign * (one.ratio.ratio or 0.0))
    least = min(costs[worst], key=lambda one: sign * (one.ratio.ratio or 0.0))
    label = METRICS[suite.metric].label
    return [
        f"The costliest perturbation is {worst}: {label} {ratio_words(most.ratio, digits=2)} times "
        f"the clean twin's for {most.scheduler}, {ratio_words(least.ratio, digits=2)} times for "
        f"{least.scheduler}."
    ]
