"""A seat contains its opponents: driven by a rule's own choice, it gives the rule's schedule.

Every registered order meets every discipline and many placements, with gates, quotas, failures and
GPUs in parts. The log is that of `simulate`, event for event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.agreement.random_agent_runs import OTHER_PLACEMENTS, PLACEMENTS
from tests.agreement.random_model_runs import random_model_cluster, random_model_workload
from tests.agreement.random_runs import (
    FORMULAS,
    GATES,
    LARGE_NODES,
    NAMED_ORDERS,
    SMALL,
    WIDE,
    random_cluster,
    random_workload,
)
from tests.env.agents import plain

import berthline as bl
from berthline.env.episode_supply import episode_seed
from berthline.env.experts import NOT_JOB_BY_JOB, expert_actions
from berthline.env.single import SchedulingEnv
from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable

DISCIPLINES = ("strict", "skip", "easy", "conservative")
STEADY_GATES = (
    "[wait - 5]",
    "[wait - 0.1 * estimate]",
    "[gpus - 2]",
    "[where(now > 40, 1, 2 - gpus)]",
)
RERANKED = (610, 648, 2397, 4385)
"""Numbers where a start changes who comes first."""


class RandomRule:
    """A rule, a workload and a cluster; the same number always gives the same."""

    def __init__(self, number: int) -> None:
        self.rng = rng = np.random.default_rng([number, 0xC8])
        orders = (*NAMED_ORDERS, *FORMULAS)
        self.order = orders[number % len(orders)]
        self.discipline = DISCIPLINES[number // len(orders) % len(DISCIPLINES)]
        self.placement = str(rng.choice((*PLACEMENTS, *OTHER_PLACEMENTS)))
        self.gate = str(rng.choice(GATES)) if rng.random() < 0.25 else None
        if rng.random() < 0.5:
            self.cluster = random_model_cluster(rng)
            self.workload = random_model_workload(rng, self.cluster)
        else:
            shape = int(rng.choice([SMALL, WIDE, LARGE_NODES], p=[0.85, 0.08, 0.07]))
            self.cluster = random_cluster(rng, shape)
            self.workload = random_workload(rng, self.cluster, shape)
        self.knowledge = str(rng.choice(["estimate", "predicted", "exact"]))
        self.seed = int(rng.integers(2**20))

    def text(self, order: str = "") -> str:
        """Return it, or a rule with another order, as a scheduler."""
        gate = "" if self.gate is None else f"?{self.gate}"
        return f"{order or self.order}+{self.discipline}@{self.placement}{gate}"

    @property
    def reads_state(self) -> bool:
        """Whether a start may change its order or gate."""
        rule = Scheduler.parse(self.text())
        return any(f is not None and f.changes == "state" for f in (rule.order, rule.gate))


def schedule_of_followed(
    seat: str, rule: RandomRule, expert: str | None, **options: object
) -> None:
    """Follow an expert, or take the no-op, for an episode; the log must be that of `simulate`."""
    task = {
        "workload": rule.workload,
        "cluster": rule.cluster,
        "episode_jobs": None,
        "knowledge": rule.knowledge,
        "experts": [] if expert is None else [expert],
        "features": ["gpus"],
        **options,
    }
    env = SchedulingEnv(seat, **{**plain(seat), **task})
    env.reset(seed=rule.seed)
    is_over = False
    while not is_over:
        action = env.plan.num_actions - 1 if expert is None else expert_actions(env, expert)
        *_, terminated, truncated, info = env.step(action)
        assert "illegal" not in info
        is_over = terminated or truncated
    result = bl.simulate(
        rule.workload,
        rule.cluster,
        rule.text(),
        knowledge=rule.knowledge,
        seed=episode_seed(*env._envs.episode(0)),
    )
    for column in ("time", "kind", "job", "detail", "alloc_node", "alloc_gpus", "alloc_slot"):
        np.testing.assert_array_equal(
            getattr(env.log(), column), getattr(result.log, column), err_msg=f"{column} {options}"
        )


def rank_a_rule(number: int, rerank: bool | None = None) -> None:
    """The base order is the rule's own: any window."""
    rule = RandomRule(number)
    schedule_of_followed(
        "pick",
        rule,
        rule.text(),
        semantics="rank",
        rerank=rerank,
        order=rule.order,
        discipline=rule.discipline,
        placement=rule.placement,
        gate=rule.gate,
        window=int(rule.rng.integers(1, 9)),
    )


def rank_another_rule(number: int) -> None:
    """The base order is another: the window shows all jobs."""
    rule = RandomRule(number)
    schedule_of_followed(
        "pick",
        rule,
        rule.text(),
        semantics="rank",
        rerank=rule.reads_state,
        order=str(rule.rng.choice(["fcfs", "lcfs", "random"])),
        discipline=rule.discipline,
        placement=rule.placement,
        gate=rule.gate,
        window=len(rule.workload),
    )


def pick_a_rule(number: int) -> None:
    """Without reservations, what a rule starts next; the no-op where it starts nothing."""
    rule = RandomRule(number)
    rule.discipline = "strict" if number % 2 else "skip"
    schedule_of_followed(
        "pick",
        rule,
        rule.text(),
        semantics="mask",
        no_op="always",
        order="fcfs",
        placement=rule.placement,
        gate=rule.gate,
        window=len(rule.workload),
    )


def place_a_rule(number: int) -> None:
    """The agent names the nodes that the base placement would use."""
    rule = RandomRule(number)
    if rule.placement not in PLACEMENTS or rule.discipline == "conservative":
        return
    schedule_of_followed(
        "place",
        rule,
        rule.text(),
        order=rule.order,
        discipline=rule.discipline,
        placement=rule.placement,
        gate=rule.gate,
        window=4,
    )


def place_by_menu(number: int) -> None:
    """The agent names the base placement in a list of rules."""
    rule = RandomRule(number)
    if rule.placement in NOT_JOB_BY_JOB or rule.discipline == "conservative":
        return
    schedule_of_followed(
        "place",
        rule,
        rule.text(),
        order=rule.order,
        discipline=rule.discipline,
        placement=rule.placement,
        placements=["worst-fit", rule.placement],
        gate=rule.gate,
        window=4,
    )


def backfill_a_rule(number: int) -> None:
    """Which job passes the head: the first in order, as under `easy` and under `skip`."""
    rule = RandomRule(number)
    rule.discipline = "easy" if number % 2 else "skip"
    schedule_of_followed(
        "backfill",
        rule,
        rule.order,
        order=rule.order,
        placement=rule.placement,
        gate=rule.gate,
        protect_head=rule.discipline == "easy",
        window=len(rule.workload),
    )


def rule_by_rule(number: int) -> None:
    """Meta's choice is always the same rule."""
    rule = RandomRule(number)
    if rule.placement in NOT_JOB_BY_JOB:
        return
    schedule_of_followed(
        "meta", rule, rule.text(), schedulers=["lcfs+easy@worst-fit", rule.text()], window=4
    )


def pick_and_place_a_rule(number: int) -> None:
    """Without reservations, a rule's next job and its first node are those of `skip`.

    For a gang the rule places what the first node leaves: at random, or in a rack, elsewhere.
    """
    rule = RandomRule(number)
    if rule.placement not in ("first-fit", "best-fit", "worst-fit", "[node_free_gpus]"):
        return
    rule.discipline = "skip"
    schedule_of_followed(
        "pickplace",
        rule,
        rule.text(),
        order="fcfs",
        placement=rule.placement,
        gate=rule.gate,
        window=len(rule.workload),
    )


def gate_a_rule(number: int) -> None:
    """A gate that reads nothing that a start changes, under `skip`."""
    rule = RandomRule(number)
    rule.discipline, rule.gate = "skip", str(rule.rng.choice(STEADY_GATES))
    schedule_of_followed(
        "gate",
        rule,
        rule.text(),
        order=rule.order,
        discipline="skip",
        placement=rule.placement,
        max_holds=10**6,
        window=4,
    )


def nobody_yields(number: int) -> None:
    """In Preempt, the no-op everywhere is the base scheduler."""
    rule = RandomRule(number)
    options = {
        "order": rule.order,
        "discipline": rule.discipline,
        "placement": rule.placement,
        "gate": rule.gate,
        "running_window": 4,
    }
    schedule_of_followed("preempt", rule, None, **options)


RUNS = len(DISCIPLINES) * (len(NAMED_ORDERS) + len(FORMULAS))


@pytest.mark.parametrize("block", range(4))
def test_a_ranked_rule_gives_its_schedule(block: int) -> None:
    for number in range(block, RUNS, 4):
        rank_a_rule(number)


@pytest.mark.parametrize("block", range(4))
def test_a_rule_ranked_in_another_order_gives_its_schedule(block: int) -> None:
    for number in range(RUNS + block, 2 * RUNS, 4):
        rank_another_rule(number)


@pytest.mark.parametrize("number", RERANKED)
def test_a_rule_that_reads_what_a_start_changes_is_asked_again(number: int) -> None:
    rank_a_rule(number)
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        rank_a_rule(number, rerank=False)


@pytest.mark.parametrize(
    "follow",
    [
        pick_a_rule,
        place_a_rule,
        place_by_menu,
        backfill_a_rule,
        rule_by_rule,
        pick_and_place_a_rule,
        gate_a_rule,
        nobody_yields,
    ],
)
def test_a_rule_in_another_seat_gives_its_schedule(follow: Callable[[int], None]) -> None:
    for number in range(RUNS):
        follow(number)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_many_ranked_rules_give_their_schedules(block: int) -> None:
    for number in range((2 + block) * RUNS, (3 + block) * RUNS):
        rank_a_rule(number)
        rank_another_rule(number)
