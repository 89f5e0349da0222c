"""A seat contains its opponents: driven by a rule's own choice, it gives the rule's schedule.

Every registered order meets every discipline and many placements, with gates, quotas, failures and
GPUs in parts. The log is that of `simulate`, event for event.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.agreement.random_agent_runs import OTHER_PLACEMENTS, PLACEMENTS, needs_estimate
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

import berthline as bl
from berthline.env.episode_supply import episode_seed
from berthline.env.experts import expert_actions
from berthline.env.single import SchedulingEnv
from berthline.policies.scheduler import Scheduler

DISCIPLINES = ("strict", "skip", "easy", "conservative")


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


def schedule_of_followed(seat: str, rule: RandomRule, expert: str, **options: object) -> None:
    """Follow an expert for an episode; the log must be that of `simulate`."""
    env = SchedulingEnv(
        seat,
        workload=rule.workload,
        cluster=rule.cluster,
        episode_jobs=None,
        knowledge=rule.knowledge,
        experts=[expert],
        features=["gpus"],
        **options,
    )
    env.reset(seed=rule.seed)
    is_over = False
    while not is_over:
        *_, terminated, truncated, info = env.step(expert_actions(env, expert))
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


def rank_a_rule(number: int) -> None:
    """The base order is the rule's own: any window."""
    rule = RandomRule(number)
    schedule_of_followed(
        "pick",
        rule,
        rule.text(),
        semantics="rank",
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


RUNS = len(DISCIPLINES) * (len(NAMED_ORDERS) + len(FORMULAS))


@pytest.mark.parametrize("block", range(4))
def test_a_ranked_rule_gives_its_schedule(block: int) -> None:
    for number in range(block, RUNS, 4):
        rank_a_rule(number)


@pytest.mark.parametrize("block", range(4))
def test_a_rule_ranked_in_another_order_gives_its_schedule(block: int) -> None:
    for number in range(RUNS + block, 2 * RUNS, 4):
        rank_another_rule(number)
