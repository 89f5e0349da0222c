"""Experts: what a scheduler would do in the agent's place. Targets for imitation.

What an expert answers, by environment:

    Pick       the job it would start now, of all waiting jobs; the no-op if none. With
               `semantics="rank"` or `"wait"`, the first allowed job in its order
    PickPlace  the same, and the first node of its placement
    Place      the node, or the rule, that it would choose for the job at hand
    Backfill   the first allowed job in its order
    Gate       start, if its gate is open for the job at hand; else hold
    Meta       its own number in the menu

A scheduler written without a discipline means its order alone: the first job in order that can
start, starts. Where the window does not show the job it wants, an expert takes the first allowed
one in its order. In Pick the environment's own rule places the job: a scheduler that keeps a
reservation free might put a job that passes the head on other nodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from berthline.errors import ConfigError, PolicyError
from berthline.policies.rules import PLACEMENTS_BY_JOB_MIX
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.env.single import SchedulingEnv
    from berthline.env.vector import SchedulingVectorEnv

NOT_JOB_BY_JOB = ("milp", *PLACEMENTS_BY_JOB_MIX, "milp-candidates", "scatter")
"""Placements that look at more than the job to be placed."""


def expert_scheduler(seat: str, text: str, menu: Sequence[Scheduler]) -> Scheduler:
    """Return the scheduler that an entry of the option `experts` means.

    Args:
        seat: the seat it fills.
        text: a scheduler.
        menu: its choices, in Meta and Place.

    Raises:
        PolicyError: it is not a scheduler, or cannot answer the questions of this seat.
    """
    where = f"expert {text!r}"
    if seat == "preempt":
        raise PolicyError(
            "there are no experts for Preempt",
            where=where,
            hint="record your own policy, as a function",
        )
    scheduler = Scheduler.parse(text)
    if menu:
        _number_in(menu, seat, scheduler)
        return scheduler
    # Outside of formulas a plus sign is followed by a discipline.
    if "+" not in re.sub(r"\[[^\]]*\]", "", text):
        scheduler = Scheduler.parse(re.sub(r"^(\[[^\]]*\]|[^@?!]+)", r"\1+skip", text.strip()))
    if scheduler.discipline == "rounds" or scheduler.preemption is not None:
        raise PolicyError(
            f"scheduler {str(scheduler)!r}",
            where=where,
            expected="a scheduler without rounds and preemption",
        )
    if seat in ("place", "pickplace") and scheduler.placement in NOT_JOB_BY_JOB:
        raise PolicyError(
            f"placement {scheduler.placement!r}",
            where=where,
            expected="a rule that places jobs one by one, on as few nodes as possible",
        )
    return scheduler


def credit_expert(
    seat: str, text: str, menu: Sequence[Scheduler], semantics: str
) -> tuple[Scheduler, int | None]:
    """Return the scheduler that the option `credit` means, and its answer if it has only one.

    Raises:
        ConfigError: credit is not defined for this seat.
        PolicyError: it is not a scheduler, or cannot answer the questions of this seat.
    """
    follows_order = seat == "backfill" or (seat == "pick" and semantics != "mask")
    if not (follows_order or seat == "gate" or menu):
        raise ConfigError(
            f"credit is {text!r}",
            where=f"environment {seat!r}",
            expected="None: credit is for Backfill, Gate, Meta, Place with a menu of rules, and "
            "Pick with ranks or waits",
        )
    scheduler = expert_scheduler(seat, text, menu)
    return scheduler, _number_in(menu, seat, scheduler) if menu else None


def expert_actions(env: SchedulingEnv | SchedulingVectorEnv | Any, expert: str) -> Any:
    """Return what a scheduler would do now: an action, or those of all environments of a batch.

    The call changes nothing. Environments that wait for their next episode get the no-op.

    Args:
        env: one environment or a batch, made with the scheduler among its `experts`.
        expert: a scheduler.

    Raises:
        ConfigError: the scheduler is not among the environment's experts.

    Example:
        >>> import berthline, gymnasium as gym
        >>> env = gym.make("berthline/Pick-v0", episode_jobs=64, experts=["sjf"])
        >>> observation, info = env.reset(seed=1)
        >>> action = expert_actions(env, "sjf")
        >>> bool(info["action_mask"][action])
        True
    """
    inner: Any = env.unwrapped
    plan, envs = inner.plan, inner._envs
    texts = list(plan.options.experts)
    if expert not in texts:
        raise ConfigError(
            f"{expert!r} is not among the environment's experts",
            where="expert_actions",
            expected=f"one of {', '.join(map(repr, texts))}" if texts else "",
            hint=f"make it with experts=[{expert!r}]",
        )
    number = texts.index(expert)
    if plan.menu:
        actions = np.full(envs.num_envs, _number_in(plan.menu, plan.seat, plan.experts[number]))
    else:
        actions = np.array([envs.advice(i, number) for i in range(envs.num_envs)], np.int64)
        if plan.seat != "pickplace":
            actions = actions[:, 0]
    if hasattr(inner, "num_envs"):
        return actions
    return actions[0] if plan.seat == "pickplace" else int(actions[0])


def _number_in(menu: Sequence[Scheduler], seat: str, expert: Scheduler) -> int:
    """Return the number of the expert's own scheduler or placement among the choices."""
    for number, choice in enumerate(menu):
        if seat == "meta":
            is_own = choice.name == expert.name
        else:
            is_own = (choice.placement, choice.node_order) == (expert.placement, expert.node_order)
        if is_own:
            return number
    names = [choice.name if seat == "meta" else choice.name.partition("@")[2] for choice in menu]
    raise PolicyError(
        f"{expert.name!r} is not among the choices",
        where="experts",
        expected="one of " + ", ".join(names),
    )
