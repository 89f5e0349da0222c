"""REPORT of a search: the chosen scheduler against its rivals on held-out windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.evaluate.statistics.change_in_words import is_factor, size_in_words
from berthline.evaluate.statistics.paired import paired_ratio, verdict
from berthline.learn.tuning.search_goal import WindowOutcome
from berthline.number_text import signed_percent

if TYPE_CHECKING:
    from berthline.learn.tuning.search_goal import Goal
    from berthline.learn.tuning.search_rivals import Rivals
    from berthline.learn.tuning.search_windows import Key
    from berthline.learn.tuning.search_workers import SearchWorkers


def report_of(
    best: str, start: str, rivals: Rivals, keys: list[Key], workers: SearchWorkers, goal: Goal
) -> dict[str, Any]:
    """Run the chosen scheduler and its rivals on REPORT.

    Args:
        best: the chosen scheduler.
        start: the scheduler that the search began with.
        rivals: as chosen on VAL.
        keys: the windows.
        workers: run the schedulers.
        goal: for the limits.

    Raises:
        BerthlineError: a scheduler cannot be run.
    """
    roles = {
        "rival": rivals.rival,
        "lane": rivals.lane,
        "reference": rivals.reference,
        "start": start,
    }
    named = {role: name for role, name in roles.items() if name is not None}
    names = list(dict.fromkeys([best, *named.values()]))
    found = workers.run([(key, name) for name in names for key in keys])
    outcomes: dict[str, list[WindowOutcome]] = {}
    for number, name in enumerate(names):
        for one in found[number * len(keys) : (number + 1) * len(keys)]:
            if isinstance(one, Exception):
                raise one
            outcomes.setdefault(name, []).append(one)
    against = {role: _against(outcomes, best, name) for role, name in named.items()}
    reference = outcomes[rivals.reference]
    return {
        "windows": len(keys),
        "policy": {m: float(np.mean(_column(outcomes[best], m))) for m in WindowOutcome._fields},
        "loss": goal.loss(outcomes[best], reference),
        "rival_loss": goal.loss(outcomes[rivals.rival], reference),
        "lane_loss": None if rivals.lane is None else goal.loss(outcomes[rivals.lane], reference),
        "against": against,
        "joint": {role: joint_reading(found, goal) for role, found in against.items()},
    }


def joint_reading(found: dict[str, Any], goal: Goal) -> str:
    """Return the verdicts on slowdown and JCT together, since one can be traded for the other.

    Args:
        found: the comparison with one rival, from `report_of`.
        goal: for the limits.
    """
    slowdown, jct = found["mean_bounded_slowdown"], found["mean_jct"]
    parts = [f"slowdown {slowdown['verdict']}", f"mean JCT {jct['verdict']}"]
    limits = (("mean_jct", goal.jct_tolerance), ("p99_jct", goal.p99_tolerance))
    names = {"mean_jct": "mean JCT", "p99_jct": "p99 JCT"}
    broken = [
        f"{names[metric]} is {_size(found[metric]['ratio'])} (limit {signed_percent(limit, 0)}%)"
        for metric, limit in limits
        if found[metric]["ratio"] is not None and found[metric]["ratio"] > 1 + limit
    ]
    judged = "a trade: " + ", ".join(broken) if broken else "within the limits of JCT"
    return "; ".join([*parts, judged])


def _size(ratio: float) -> str:
    return size_in_words(ratio) if is_factor(ratio) else f"{signed_percent(ratio - 1, 1)} %"


def _against(outcomes: dict[str, list[WindowOutcome]], best: str, name: str) -> dict[str, Any]:
    judged: dict[str, Any] = {"scheduler": name}
    for metric in WindowOutcome._fields:
        theirs = _column(outcomes[name], metric)
        ratio = paired_ratio(_column(outcomes[best], metric), theirs)
        judged[metric] = {
            "mean": float(np.mean(theirs)),
            **msgspec.to_builtins(ratio),
            "verdict": verdict(ratio),
        }
    return judged


def _column(outcomes: list[WindowOutcome], metric: str) -> list[float]:
    return [getattr(one, metric) for one in outcomes]
