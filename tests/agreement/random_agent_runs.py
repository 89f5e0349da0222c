"""Random episodes with an agent in a seat, on which native core and reference must agree.

One number makes one episode. Half of them are on clusters of the full model (speeds, parts of GPUs,
quotas, borrowing, failures, refusals, delays, sleep, ticks), half on plain ones, where the native
core takes shortcuts. Seats, options, columns, rewards and base schedulers are mixed at random.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from tests.agreement.random_formulas import random_formula
from tests.agreement.random_model_runs import (
    NODE_WORDS,
    WORDS,
    random_model_cluster,
    random_model_workload,
)
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

from berthline.env.options import ONLY_OF
from berthline.env.rewards import REWARDS, SCOPES
from berthline.policies.formulas import ALL_WORDS, Formula

SEATS = ("pick", "place", "pickplace", "meta", "backfill", "gate", "preempt")
PLACEMENTS = ("first-fit", "best-fit", "worst-fit", "random", "rack-aware", "[node_free_gpus]")
"""Rules that go from node to node."""
OTHER_PLACEMENTS = ("scatter", "defrag", "balance", "milp-candidates", "first-available")
CLUSTER_WORDS = tuple(word.name for word in ALL_WORDS.values() if word.scope == "cluster")
JOB_WORDS = tuple(word.name for word in ALL_WORDS.values() if word.scope == "job")
ONLY_NODE_WORDS = tuple(word.name for word in ALL_WORDS.values() if word.scope == "node")
# Sums over the queue that the core adds up in another order: no formula may blow up their last bit.
SUMS = frozenset({"waiting_seconds", "backlog_work", "power_w", "unfinished_work", "total_work"})

TERMS: dict[str, tuple[str, ...]] = {
    "decision": (
        "-0.1 * is_no_op",
        "has_started",
        "startable_work / total_work",
        "queue_len - 2 * has_started + now / 100",
        "-jobs_in_system * is_no_op",
    ),
    "second": (
        "-jobs_in_system",
        "-waiting_seconds / num_jobs",
        "-backlog_work",
        "power_w / 1000 - utilization",
        "-queue_len * now",
        "min(horizon, 1e6) * free_gpus",
        "-fragmentation - down_gpus",
    ),
    "finish": (
        "-bounded_slowdown",
        "-slowdown",
        "jct - waited - run_time",
        "true_work / total_work - missed",
        "-wait - attained / 100 - restarts",
        "remaining + running + borrowed_gpus",
        "user_jobs - priority + queue_len",
    ),
    "end": (
        "fairness + mean_utilization",
        "-mean_jct - mean_wait",
        "mean_slowdown - mean_bounded_slowdown",
        "is_done - unfinished_work / total_work",
        "-overdue_jobs / num_jobs",
        "clip(time_left, -1e6, 1e6)",
        "baseline_jct - mean_jct",
        "baseline_bounded_slowdown - baseline_slowdown + baseline_wait",
        "mean_utilization - baseline_utilization",
    ),
}


@dataclasses.dataclass(frozen=True)
class AgentRun:
    """An environment and the seed of its episode."""

    seat: str
    options: dict[str, Any]
    seed: int


def random_columns(rng: np.random.Generator, seat: str) -> dict[str, list[str]]:
    """Return formulas for the tables of an observation."""

    def formulas(words: tuple[str, ...], most: int) -> list[str]:
        return [
            random_formula(rng, words, depth=int(rng.integers(0, 4)))
            for _ in range(int(rng.integers(0, most + 1)))
        ]

    about_nodes = NODE_WORDS if seat == "place" else (*CLUSTER_WORDS, *ONLY_NODE_WORDS)
    return {
        "jobs": [*formulas(WORDS, 4), "gpus"],
        "nodes": formulas(about_nodes + ONLY_NODE_WORDS, 3),
        "running": formulas(WORDS, 3) if rng.random() < 0.5 else [],
        "globals": formulas(CLUSTER_WORDS, 3),
    }


def random_reward(rng: np.random.Generator, knowledge: str) -> Any:
    """Return the name of a reward, or terms for some occasions."""
    if rng.random() < 0.2:
        return str(rng.choice(list(REWARDS)))
    terms: dict[str, tuple[str, str]] = {}
    for occasion, texts in TERMS.items():
        for _ in range(int(rng.integers(0, 3))):
            text = str(rng.choice(texts))
            if rng.random() < 0.25:
                words = tuple(
                    word.name
                    for word in ALL_WORDS.values()
                    if word.scope in SCOPES[occasion] and word.name not in SUMS
                )
                text = random_formula(rng, words, depth=int(rng.integers(1, 3)))
            if knowledge == "none" and Formula.parse(text, scopes=SCOPES[occasion]).uses_estimate:
                continue
            terms[f"{occasion}{len(terms)}"] = (occasion, text)
    return terms or "jct"


def random_base(rng: np.random.Generator, seat: str, knowledge: str) -> dict[str, Any]:
    """Return the options that make the base scheduler."""
    kind = rng.random()
    if kind < 0.5:
        order = str(rng.choice(NAMED_ORDERS))
    elif kind < 0.7:
        order = str(rng.choice(FORMULAS))
    else:
        order = f"[{random_formula(rng, WORDS, depth=int(rng.integers(1, 4)))}]"
    if knowledge == "none" and (
        order.startswith("[") or "estimate" in NEEDS_ESTIMATE.get(order, "estimate")
    ):
        order = "fcfs"
    disciplines = ["strict", "skip"] if knowledge == "none" else ["strict", "skip", "easy"]
    if seat in ("gate", "preempt") and knowledge != "none":
        disciplines.append("conservative")
    placements = PLACEMENTS
    if seat not in ("place", "pickplace"):
        placements += OTHER_PLACEMENTS
    options: dict[str, Any] = {
        "order": order,
        "discipline": None if rng.random() < 0.1 else str(rng.choice(disciplines)),
        "placement": str(rng.choice(placements)),
    }
    if rng.random() < 0.2 and knowledge != "none":
        options["gate"] = str(rng.choice(GATES))
    return options


def needs_estimate(text: str) -> bool:
    """Whether an order by this name or formula needs run times."""
    from berthline.policies.scheduler import Scheduler

    return Scheduler.parse(text).needs_run_times


NEEDS_ESTIMATE = {order: "estimate" if needs_estimate(order) else "" for order in NAMED_ORDERS}


def random_menu(rng: np.random.Generator, knowledge: str) -> list[str]:
    """Return schedulers to choose from."""
    menu = []
    for _ in range(int(rng.integers(1, 5))):
        base = random_base(rng, "gate", knowledge)
        placement = base["placement"]
        if placement in ("scatter", "milp-candidates"):
            placement = "worst-fit"
        gate = f"?{base['gate']}" if "gate" in base else ""
        menu.append(f"{base['order']}+{base['discipline'] or 'strict'}@{placement}{gate}")
    return menu


def random_seat_options(rng: np.random.Generator, seat: str, knowledge: str) -> dict[str, Any]:
    """Return the options that only one seat has."""
    if seat == "pick":
        semantics = str(rng.choice(["mask", "wait", "rank"], p=[0.3, 0.3, 0.4]))
        rerank = rng.choice(np.array([None, False, True], object)) if semantics == "rank" else None
        return {"semantics": semantics, "rerank": rerank}
    if seat == "place" and rng.random() < 0.4:
        rules = [*PLACEMENTS, "defrag", "balance", "first-available"]
        return {"placements": [str(rng.choice(rules)) for _ in range(int(rng.integers(1, 5)))]}
    if seat == "meta":
        return {
            "schedulers": random_menu(rng, knowledge),
            "every_events": int(rng.choice([1, 1, 2, 5])),
            "every_seconds": float(rng.choice([0, 0, 7, 50])),
        }
    if seat == "backfill":
        protects = bool(rng.integers(2))
        if protects and knowledge == "none":
            return {}  # the default, which cannot protect it
        return {"protect_head": protects}
    if seat == "gate":
        return {
            "max_holds": int(rng.choice([0, 1, 3, 32])),
            "hold_seconds": float(rng.choice([0, 0, 20, 300.5])),
            "recheck": float(rng.choice([0, 0, 5, 30.5])),
        }
    if seat == "preempt":
        return {
            "min_run": float(rng.choice([0, 0, 10])),
            "max_restarts": float(rng.choice([1, 3, np.inf], p=[0.4, 0.5, 0.1])),
        }
    return {}


def random_credit(rng: np.random.Generator, options: dict[str, Any], seat: str) -> str | None:
    """Return the scheduler that rewards are credited against; None = there cannot be one."""
    if seat in ("meta", "place"):
        menu = options.get("schedulers") or [f"fcfs@{r}" for r in options.get("placements", ())]
        return str(rng.choice(menu)) if menu else None
    if seat not in ("pick", "backfill", "gate") or options.get("semantics") == "mask":
        return None
    orders = ["fcfs", "smallest-first", "[gpus - wait]"]
    if options["knowledge"] != "none":
        orders += ["sjf", "[estimate - 2 * wait]"]
    gates = ["", "?express-lane:T=100:r=0.2"] if options["knowledge"] != "none" else [""]
    return f"{rng.choice(orders)}+skip{rng.choice(gates)}"


def random_agent_run(number: int) -> AgentRun:
    """Return episode `number`; the same number always gives the same episode."""
    rng = np.random.default_rng([number, 0xA6])
    seat = SEATS[number % len(SEATS)]
    if rng.random() < 0.5:
        cluster = random_model_cluster(rng)
        cluster = cluster.with_conditions({"sleep_w": float(rng.choice([0, 75]))})
        workload = random_model_workload(rng, cluster)
    else:
        shape = int(rng.choice([SMALL, WIDE, LARGE_NODES], p=[0.85, 0.08, 0.07]))
        cluster = random_cluster(rng, shape)
        workload = random_workload(rng, cluster, shape)
    knowledge = str(rng.choice(["estimate", "predicted", "exact", "none"], p=[0.4, 0.2, 0.3, 0.1]))
    options: dict[str, Any] = {
        "workload": workload,
        "cluster": cluster,
        "episode_jobs": None,
        "knowledge": knowledge,
        **random_base(rng, seat, knowledge),
        **random_seat_options(rng, seat, knowledge),
        "window": int(rng.integers(1, 9)),
        "window_policy": str(rng.choice(["head", "head+tail", "top"])),
        "running_window": int(rng.integers(1, 6)),
        "reward": random_reward(rng, knowledge),
        "baseline": str(rng.choice(["fcfs+skip", "lcfs+skip@random", "random+strict"])),
        "max_steps": int(rng.integers(1, 60)) if rng.random() < 0.2 else None,
    }
    if options.get("semantics") == "wait":
        options.pop("gate", None)
    if knowledge == "none":
        options["features"] = None if rng.random() < 0.5 else {"running": []}
    else:
        options["features"] = random_columns(rng, seat)
        options["lookahead"] = rng.choice(
            np.array([None, "off", "sorted", "cdf", "per_gpu"], object)
        )
        if options["lookahead"] == "per_gpu":
            options["lookahead_size"] = cluster.total_gpus
        options["lookahead_seconds"] = float(rng.choice([50, 10_000]))
        if rng.random() < 0.5:
            options["window_formulas"] = [
                random_formula(rng, WORDS, depth=int(rng.integers(0, 3))) for _ in range(2)
            ]
        if rng.random() < 0.3:
            options["running_order"] = random_formula(rng, WORDS, depth=int(rng.integers(0, 3)))
    if options.get("semantics") == "rank" and knowledge != "none" and rng.random() < 0.3:
        options["discipline"] = "conservative"
    # Of its own, so that other options do not depend on whether the seat has it.
    own = np.random.default_rng([number, 0xB7])
    if seat in ONLY_OF["no_op"] and options.get("semantics") != "rank":
        options["no_op"] = str(own.choice(["never", "when_blocked", "always"], p=[0.2, 0.3, 0.5]))
    if own.random() < 0.25:
        options["credit"] = random_credit(own, options, seat)
    # Jobs that are preempted before they save anything would run forever.
    endless = seat == "preempt" or cluster.conditions.mtbf < np.inf
    if endless or options["reward"] == "lookahead" or rng.random() < 0.2:
        options["horizon_factor"] = float(rng.choice([0, 0.1, 0.5, 1, 3]))
    return AgentRun(seat, options, int(rng.integers(2**20)))
