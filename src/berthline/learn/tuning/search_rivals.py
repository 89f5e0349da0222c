"""Rivals of a search, chosen on VAL like the tuned scheduler.

The reference is the scheduler with the lowest mean JCT; limits are relative to it. The rival is the
one with the lowest loss. The lane is the best of some express lanes, a rule with two parameters: a
tuned gate has shown nothing unless it beats this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.compare.protocol import RIVALS
from berthline.learn.tuning.search_goal import WindowOutcome
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.learn.tuning.search_goal import Goal
    from berthline.learn.tuning.search_windows import Key
    from berthline.learn.tuning.search_workers import SearchWorkers

HEURISTICS = (
    *RIVALS,
    "smallest-area+easy",
    "sqrt-area+easy",
    "smallest-area",
    "lcfs+skip",
    "fcfs+skip!index",
)
LANES = tuple(
    f"smallest-area+easy?express-lane:T={threshold}:r={share}"
    for threshold in (900, 3600, 14400)
    for share in (0.05, 0.1, 0.2, 0.4)
)


class Rivals(msgspec.Struct, frozen=True, kw_only=True):
    """The schedulers that a tuned scheduler is compared with.

    Attributes:
        reference: lowest mean JCT on VAL.
        rival: lowest loss on VAL.
        lane: lowest loss of the express lanes on VAL; None = lanes cannot be used.
        losses: of all rivals on VAL.
        outcomes: of all rivals on VAL.
    """

    reference: str
    rival: str
    lane: str | None
    losses: dict[str, float]
    outcomes: dict[str, list[WindowOutcome]]


def usable_rivals(names: Sequence[str], knowledge: str, *, preemptive: bool) -> list[str]:
    """Return the schedulers that use no more knowledge or preemption than the tuned scheduler may.

    Args:
        names: schedulers.
        knowledge: what is known about run times.
        preemptive: whether jobs may be preempted.
    """
    found = {name: Scheduler.parse(name) for name in names}
    return [
        name
        for name, scheduler in found.items()
        if (knowledge != "none" or not scheduler.needs_run_times)
        and (preemptive or scheduler.preemption is None)
    ]


def choose_rivals(
    names: Sequence[str], keys: list[Key], workers: SearchWorkers, goal: Goal
) -> Rivals:
    """Run all rivals on VAL and choose.

    Args:
        names: the rivals; the lane is chosen from those in LANES, the rest from the others.
        keys: the windows of VAL.
        workers: run the rivals.
        goal: defines the loss.

    Raises:
        BerthlineError: a rival cannot be run.
    """
    found = workers.run([(key, name) for name in names for key in keys])
    outcomes: dict[str, list[WindowOutcome]] = {}
    for number, name in enumerate(names):
        for one in found[number * len(keys) : (number + 1) * len(keys)]:
            if isinstance(one, Exception):
                raise one
            outcomes.setdefault(name, []).append(one)
    others = [name for name in names if name not in LANES]
    reference = min(others, key=lambda name: float(np.mean([o.mean_jct for o in outcomes[name]])))
    losses = {name: goal.loss(outcomes[name], outcomes[reference]) for name in names}
    return Rivals(
        reference=reference,
        rival=min(others, key=losses.__getitem__),
        lane=min((name for name in names if name in LANES), key=losses.__getitem__, default=None),
        losses=losses,
        outcomes=outcomes,
    )
