"""Names of the native rules: disciplines (backfill seat), placements (place seat), gates.

What each rule does is defined by `sim/reference.py` and described in docs/concepts/semantics.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

DISCIPLINES: dict[str, str] = {
    "strict": "the first job in order blocks all others until it can be placed",
    "skip": "the first job in order that can be placed starts",
    "easy": "the blocked first job gets a reservation; others may pass if they cannot delay it",
    "conservative": "every job gets a reservation in order; nobody delays an earlier one",
}
NEEDS_RUN_TIMES = frozenset({"easy", "conservative"})

PLACEMENTS: dict[str, str] = {
    "first-fit": "fewest nodes possible; lowest node id first",
    "best-fit": "fewest nodes possible; node with the fewest free GPUs first",
    "worst-fit": "fewest nodes possible; node with the most free GPUs first",
    "random": "fewest nodes possible; nodes drawn at random, fixed by the seed",
    "scatter": "any number of nodes; walks the nodes by id and takes what is free",
}


@dataclasses.dataclass(frozen=True)
class Gate:
    """A named gate: a job may start while the formula is at least 0."""

    name: str
    formula: str
    options: Mapping[str, float]
    meaning: str


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate(
            "express-lane",
            "where(estimate > T, pool_free_gpus - gpus - r * pool_total_gpus, 0)",
            {"T": 3600.0, "r": 0.1},
            "a job longer than T seconds must leave a share r of the GPUs it may use free",
        ),
    )
}
