"""Opponents: the rules that an agent in a seat is compared with.

They know what the agent knows. The best of them is found in hindsight, on the episodes that the
agent is evaluated on: a harder opponent than a rule that was chosen beforehand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from berthline.env.plan import Plan

ORDERS = (
    *("fcfs", "lcfs", "sjf", "smallest-first", "largest-first", "smallest-area", "sqrt-area"),
    *("wfp3", "unicep", "f1", "f2", "f3", "f4", "static-priority"),
)
DEADLINE_ORDERS = ("edf", "dynamic-heuristic", "[slack]", "[where(slack < 0, 1e9, deadline)]")
"""Only where deadlines count: those of generated jobs tell run times better than estimates do."""
_DEADLINES = frozenset({"missed", "overdue_jobs"})
BLIND_ORDERS = ("fcfs", "lcfs", "smallest-first", "largest-first", "las", "static-priority")
PLACEMENTS = (
    *("first-fit", "best-fit", "worst-fit", "random", "fastest-type", "dot-product", "defrag"),
    *("fgd", "fgd-gangs"),
)
TYPE_PLACEMENTS = (
    "[node_speed]",
    "[where(gpus > 1, node_speed, -node_speed)]",
    *(f"[where(estimate > {t}, -node_speed, node_speed)]" for t in (600, 1200, 3600)),
)
"""Where GPU types differ: slowest first; wide jobs, or short ones, on the slowest."""
GATES = (
    *("express-lane:T=3600:r=0.1", "express-lane:T=3600:r=0.2", "express-lane:T=1200:r=0.1"),
    *("express-lane:T=1200:r=0.2", "express-lane:T=7200:r=0.1", "express-lane:T=7200:r=0.3"),
)
PREEMPTIONS = ("las", "index", "gittins", "srpt")
BLIND_PREEMPTIONS = ("las", "index", "gittins")
VICTIMS = ("attained", "-attained", "gpus", "-gpus", "restarts")
"""For Preempt: the job of this order, smallest first, always yields."""


class Opponent(NamedTuple):
    """A rule, and how it plays.

    Attributes:
        name: what it is called in tables.
        scheduler: fills all seats; empty = it sits in the agent's seat.
        expert: of the environment, whose answers it gives.
        victims: for Preempt: the option `running_order`, whose first job always yields.
        is_no_op: it takes the last action, the no-op.
    """

    name: str
    scheduler: str = ""
    expert: str = ""
    victims: str = ""
    is_no_op: bool = False


def opponents_of(plan: Plan) -> list[Opponent]:
    """Return the rules that an agent in an environment is compared with, each once."""
    found = {one.name: one for one in _OF_SEAT[plan.seat](plan)}
    return list(found.values())


def _orders(plan: Plan) -> list[str]:
    orders = BLIND_ORDERS if plan.options.knowledge == "none" else ORDERS
    return [*orders, *(DEADLINE_ORDERS if plan.reward.uses(_DEADLINES) else ())]


def _queues(plan: Plan, placements: tuple[str, ...]) -> list[Opponent]:
    """Return every order under the usual disciplines, with each of some placements."""
    blind = plan.options.knowledge == "none"
    disciplines = ("skip",) if blind else ("easy", "skip")
    gate = f"?{plan.options.gate}" if plan.options.gate else ""
    texts = [
        f"{order}+{discipline}@{placement}{gate}"
        for placement in placements
        for discipline in disciplines
        for order in _orders(plan)
    ]
    return [Opponent(text, scheduler=text) for text in texts]


def _pick(plan: Plan) -> list[Opponent]:
    return _queues(plan, (plan.options.placement,))


def _pick_and_place(plan: Plan) -> list[Opponent]:
    placements = (plan.options.placement, "best-fit", "fastest-type", *_of_types(plan))
    return _queues(plan, tuple(dict.fromkeys(placements)))


def _of_types(plan: Plan) -> tuple[str, ...]:
    if np.ptp(plan.inputs.node_speed) == 0 or plan.options.knowledge == "none":
        return ()
    return TYPE_PLACEMENTS


def _place(plan: Plan) -> list[Opponent]:
    queue, _, rest = str(plan.scheduler).partition("@")
    _, mark, gate = rest.partition("?")
    placements = [str(rule).partition("@")[2] for rule in plan.menu]
    placements = placements or [*PLACEMENTS, *_of_types(plan)]
    texts = [f"{queue}@{placement}{mark}{gate}" for placement in placements]
    return [Opponent(text, scheduler=text) for text in texts]


def _meta(plan: Plan) -> list[Opponent]:
    return [Opponent(str(rule), scheduler=str(rule)) for rule in plan.menu]


def _gate(plan: Plan) -> list[Opponent]:
    base = str(plan.scheduler)
    gates = () if "?" in base or plan.options.knowledge == "none" else GATES
    texts = [base, *(f"{base}?{gate}" for gate in gates)]
    return [Opponent(text, scheduler=text) for text in texts]


def _backfill(plan: Plan) -> list[Opponent]:
    strict = str(plan.scheduler).replace(f"+{plan.scheduler.discipline}@", "+strict@")
    return [
        Opponent(strict, scheduler=strict),
        *(Opponent(f"{order} passes first", expert=order) for order in _orders(plan)),
    ]


def _preempt(plan: Plan) -> list[Opponent]:
    blind = plan.options.knowledge == "none"
    base = str(plan.scheduler)
    victims = VICTIMS if blind else (*VICTIMS, "remaining", "-remaining")
    rules = [f"{base}!{rule}" for rule in (BLIND_PREEMPTIONS if blind else PREEMPTIONS)]
    return [
        Opponent("never", is_no_op=True),
        *(Opponent(f"least {order} yields", victims=order) for order in victims),
        *(Opponent(text, scheduler=text) for text in rules),
    ]


_OF_SEAT = {
    "pick": _pick,
    "pickplace": _pick_and_place,
    "place": _place,
    "meta": _meta,
    "gate": _gate,
    "backfill": _backfill,
    "preempt": _preempt,
}


def plays_in_meta(text: str) -> bool:
    """Return whether Meta can play a scheduler; the others run in the simulator."""
    from berthline.env.experts import NOT_JOB_BY_JOB

    rule = Scheduler.parse(text)
    return (
        rule.learned is None
        and rule.preemption is None
        and rule.discipline != "rounds"
        and rule.placement not in NOT_JOB_BY_JOB
    )
