"""Rivals of a tuned policy: every named heuristic, the best of them in hindsight, and the best
express lane under the same limits."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

import berthline as bl
from berthline.learn.tuning.search_goal import WindowOutcome
from berthline.learn.tuning.search_rivals import usable_rivals
from berthline.learn.tuning.search_workers import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from berthline.learn.tuning.search_goal import Goal

_ORDERS = (
    *("fcfs", "lcfs", "sjf", "smallest-first", "largest-first", "smallest-area", "sqrt-area"),
    *("srf", "hrrn", "wfp3", "unicep", "f1", "f2", "f3", "f4", "random"),
)
HEURISTICS = (
    *(f"{order}{rule}" for order in _ORDERS for rule in ("", "+skip", "+easy")),
    *(f"{order}+easy@best-fit" for order in ("sjf", "smallest-area", "sqrt-area", "wfp3")),
)
LANES = tuple(
    f"{order}+easy@{placement}?express-lane:T={threshold}:r={share}"
    for order in ("smallest-area", "sjf")
    for placement in ("first-fit", "best-fit")
    for threshold in (900, 3600, 14400, 43200)
    for share in (0.025, 0.05, 0.1, 0.15, 0.2, 0.3)
)
METRICS = WindowOutcome._fields


@dataclasses.dataclass(frozen=True)
class Place:
    """Where schedulers run: the cluster, and what they know of run times."""

    cluster: bl.Cluster
    knowledge: str

    def run(self, scheduler: str, windows: Iterable[bl.Workload]) -> list[WindowOutcome]:
        """Return a scheduler's outcome on each window.

        Raises:
            BerthlineError: it cannot be run.
        """
        found = []
        for window in windows:
            outcome = outcome_of(window, self.cluster, scheduler, self.knowledge)
            if isinstance(outcome, Exception):
                raise outcome
            found.append(outcome)
        return found

    def named(self) -> list[str]:
        """Return the heuristics that need no more knowledge."""
        return usable_rivals(HEURISTICS, self.knowledge, preemptive=False)


def column(outcomes: Sequence[WindowOutcome], metric: str) -> list[float]:
    """Return one metric of each window."""
    return [getattr(one, metric) for one in outcomes]


def best_by(found: dict[str, list[WindowOutcome]], metric: str) -> str:
    """Return the scheduler with the lowest geometric mean of a metric; of equals the first."""
    return min(found, key=lambda name: float(np.log(column(found[name], metric)).mean()))


def best_lane(
    found: dict[str, list[WindowOutcome]], goal: Goal, reference: Sequence[WindowOutcome]
) -> str:
    """Return the lane with the lowest loss: slowdown under the policy's limits."""
    return min(found, key=lambda name: goal.loss(found[name], reference))
