"""Names of the rules for each seat: disciplines, placements, gates, preemptions.

What each rule does is defined by `sim/reference.py` and described in docs/concepts/semantics.md.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping

DISCIPLINES: dict[str, str] = {
    "strict": "the first job in order blocks all others until it can be placed",
    "skip": "the first job in order that can be placed starts",
    "easy": "the blocked first job gets a reservation; others may pass if they cannot delay it",
    "conservative": "every job gets a reservation in order; no job delays an earlier one",
    "rounds": "every T seconds the first jobs in order, running or waiting, get the GPUs",
}
NEEDS_RUN_TIMES = frozenset({"easy", "conservative"})
ROUND_SECONDS = 360.0
"""Default of the option T of `rounds`: a round of Gavel (Narayanan et al., OSDI 2020)."""

PLACEMENTS: dict[str, str] = {
    "first-fit": "fewest nodes possible; lowest node id first",
    "best-fit": "fewest nodes possible; node with the fewest free GPUs first",
    "worst-fit": "fewest nodes possible; node with the most free GPUs first",
    "random": "fewest nodes possible; nodes drawn at random, fixed by the seed",
    "scatter": "any number of nodes; walks the nodes by id and takes what is free",
    "first-available": "the first node by id that can take the job: LSF's name for first-fit",
    "least-loaded": "fewest nodes possible; node with the largest free share of its GPUs first",
    "fastest-type": "fewest nodes possible; fastest GPU type first, then fewest free GPUs",
    "dot-product": "fewest nodes possible; node whose free GPUs, CPUs and memory match best first",
    "rack-aware": "fewest nodes possible, in the rack with the fewest free GPUs that holds the job",
    "defrag": "fewest nodes possible, or one more; fewest partly used nodes left, then least waste",
    "balance": "fewest nodes possible, or one more; most even use of the nodes",
    "milp-candidates": "best of four: defrag and balance, on the fewest nodes and on one more",
    "fgd": "fewest nodes possible; least growth of free GPUs that typical jobs cannot use",
    "fgd-gangs": "as fgd; but a gang larger than a node can use a node whose GPUs are all free",
    "milp": "a mixed-integer program places the first jobs in order together",
}

PLACEMENT_FORMULAS: dict[str, str] = {
    "least-loaded": "-(node_free_gpus / node_total_gpus)",
    "fastest-type": "node_free_gpus - 1000000 * node_speed",
    "dot-product": "-(gpus * node_free_gpus / max_node_gpus ** 2"
    " + cpus * node_free_cpus / max(max_node_cpus, 1) ** 2"
    " + memory_mib * node_free_memory_mib / max(max_node_memory_mib, 1) ** 2)",
}
"""Placements that take nodes one after another by a formula; the smallest value goes first."""

PLACEMENTS_BY_JOB_MIX = ("fgd", "fgd-gangs")
"""Placements that weigh the kinds of jobs that a workload has."""


PLAN_OPTIONS: dict[str, float] = {"k": 8.0, "limit": 1.0}
"""Options of `milp`: how many jobs it places together, and the solver's time limit in seconds."""


@dataclasses.dataclass(frozen=True)
class Gate:
    """A named gate: a job may start while the formula is at least 0.

    Attributes:
        name: its name.
        formula: the formula, with its options as names.
        options: the options' default values.
        meaning: what it does.
        ranges: lowest and highest value of each option.
    """

    name: str
    formula: str
    options: Mapping[str, float]
    meaning: str
    ranges: Mapping[str, tuple[float, float]]


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate(
            "express-lane",
            "where(estimate > T, pool_free_gpus - gpus - r * pool_total_gpus, 0)",
            {"T": 3600.0, "r": 0.1},
            "a job longer than T seconds must leave a share r of the GPUs it may use free",
            {"T": (0.0, math.inf), "r": (0.0, 1.0)},
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class Preemption:
    """A named preemption rule: a waiting job may take GPUs from jobs with a larger index.

    Attributes:
        name: its name.
        index: a formula of running and waiting jobs, with its options as names; empty = the rule
            is not an index.
        options: the options' default values; those of COMMON_OPTIONS may be among them.
        meaning: what it does.
    """

    name: str
    index: str
    options: Mapping[str, float]
    meaning: str


NO_LIMIT = 1e9
COMMON_OPTIONS: dict[str, float] = {
    "margin": 0.0,
    "min_run": 0.0,
    "max_restarts": NO_LIMIT,
    "every": 0.0,
}
"""Options that every preemption rule has: by how much the index of a running job must be larger
than that of the job it yields to; how long a job runs before it may be preempted (SAVES_FIRST =
long enough to save something); how often one may be preempted; seconds between decisions while jobs
wait, besides those at events (0 = none)."""

SAVES_FIRST = -1.0
"""As `min_run`: start_delay + restart + checkpoint. Rules that let jobs take turns need it: jobs
that yield before they have saved anything would cycle without end."""
_TURNS = {"every": 60.0, "min_run": SAVES_FIRST}

LAS_QUEUE = (
    "where(promote * (wait > promote * (attained - q1 * running) / gpus), 0,"
    " (attained >= q1) + (attained >= q2))"
)
"""A promoted job that runs stays in the first queue for another q1 GPU-seconds, as in Tiresias,
which resets its counters. Otherwise it would yield as soon as it has run at all."""
LAS_OPTIONS = {"q1": 3250.0, "q2": 18000.0, "promote": 8.0}


def with_options(formula: str, options: Mapping[str, float]) -> str:
    """Return a rule's formula with the values of its options written out."""
    for name, value in options.items():
        formula = re.sub(rf"\b{name}\b", f"{value:g}", formula)
    return formula


PREEMPTIONS: dict[str, Preemption] = {
    rule.name: rule
    for rule in (
        Preemption("srpt", "remaining", {}, "the shortest remaining run time goes first"),
        Preemption("priority", "-priority", {}, "the highest priority goes first"),
        Preemption(
            "las",
            LAS_QUEUE,
            {**LAS_OPTIONS, **_TURNS},
            "least attained service: three queues by GPU-seconds received (Tiresias' 2D-LAS); a job"
            " that has waited promote times as long as it has run is in the first queue, for"
            " another q1 GPU-seconds",
        ),
        Preemption(
            "gittins",
            "-gittins",
            _TURNS,
            "highest Gittins index, from the GPU-seconds of the jobs that have finished",
        ),
        Preemption(
            "index",
            "a * log2(attained + c) + s * log2(gpus + 1) - w * log2(wait + 60)",
            {"a": 1.0, "c": 60.0, "s": 0.0, "w": 0.5, "margin": 2.0, **_TURNS},
            "attained service, size and wait, weighted; the margin keeps preemptions rare; jobs "
            "that have attained less than c have similar indices",
        ),
        Preemption(
            "fair-share",
            "user_gpus + where(running, -gpus, gpus)",
            _TURNS,
            "a user who holds fewer GPUs takes them from one who would still hold more",
        ),
        Preemption(
            "reclaim", "borrowed_gpus > 0", {}, "a pool takes its nodes back from borrowers"
        ),
        Preemption(
            "defrag",
            "",
            {"moves": 4.0},
            "moves up to N running jobs to make room for the first job in order, if that"
            " saves it more GPU-seconds of waiting than the moves cost",
        ),
    )
}
