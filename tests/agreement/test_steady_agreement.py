"""Agreement on rules whose values stay the same for some time.

The native core works out until when, and does not evaluate them before; the reference simulator
evaluates everything at every decision. The formulas below compare quantities that grow or shrink
with the clock, while jobs wait, run, wait for their start, stop and slow each other down.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.agreement.random_model_runs import random_model_cluster, random_model_run
from tests.agreement.random_runs import POOLS, Run
from tests.agreement.test_agreement import assert_agreement

from berthline.model.cluster import Cluster, NodeGroup

RUNS_PER_FORMULA = 6
FORMULAS = (
    "attained >= 60",
    "(attained >= 30) + (attained >= 90) + (attained >= 200)",
    "where(8 * (wait > 8 * attained / gpus), 0, (attained >= 20) + (attained >= 90))",
    "where(wait > 25, -1, attained > 40)",
    "(remaining < 40) - (remaining < 15)",
    "remaining <= 0",
    "2 * (slack < 30) - (slack < -20) - running",
    "(now - submit) / 3 > 9",
    "priority * (wait > 20) - (wait > 50)",
    "max(wait - 30, 0) < attained",
    "min(attained, remaining) > 20",
    "where(running, attained / 2 < wait, -(-wait < -12))",
    "(estimate - remaining == 0) + restarts",
    "where(max(remaining, 10) == 10, gpus, where(wait != 0, -gpus, gpus))",
    "gpus + (0 * wait > attained - 35)",
)


def steady_run(formula: str, number: int) -> Run:
    """Return a random run with that rule for preemption, and for half of them for the order."""
    rng = np.random.default_rng([number, 0x57])
    run = random_model_run(int(rng.integers(1_000_000)))
    order = f"[{formula}]" if rng.random() < 0.6 else "fcfs"
    discipline = rng.choice(["skip", "skip", "strict", "easy"])
    placement = rng.choice(["first-fit", "best-fit", "random", "scatter", "defrag"])
    options = str(rng.choice(["", ":every=9", ":every=7:min_run=6", ":min_run=0:max_restarts=2"]))
    rule = "" if rng.random() < 0.1 else f"![{formula}]{options}"
    cluster = run.cluster
    if rng.random() < 0.4:
        cluster = many_nodes(rng)
    scheduler = f"{order}+{discipline}@{placement}{rule}"
    knowledge = "exact" if run.knowledge == "none" else run.knowledge
    return Run(run.workload, cluster, scheduler, knowledge, run.seed, horizon=400.0)


def many_nodes(rng: np.random.Generator) -> Cluster:
    """Return a cluster with enough nodes for bitmaps, in pools, some of them with few GPUs."""
    conditions = random_model_cluster(rng).conditions
    groups = [
        NodeGroup(count=int(rng.integers(6, 12)), gpus=int(rng.integers(1, 4)), pool=pool)
        for pool in rng.choice(["", *POOLS], 3).tolist()
    ]
    return dataclasses.replace(Cluster.from_groups(groups, name="many"), conditions=conditions)


@pytest.mark.parametrize("formula", FORMULAS)
def test_steady_agreement(formula: str) -> None:
    for number in range(RUNS_PER_FORMULA):
        assert assert_agreement(steady_run(formula, number)), number
