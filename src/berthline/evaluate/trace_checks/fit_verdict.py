"""The overall verdict on a fitted generator: as good as the worst of what schedulers react to."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from berthline.evaluate.trace_checks.closeness import Closeness

GRADES = ("good", "fair", "poor")

FACTORS: dict[str, tuple[float, float]] = {"mean wait": (1.25, 2.0), "demand": (1.1, 1.25)}
"""By what factor a figure may be off, up or down, to be good, and to be fair."""

DISTANCES = (0.05, 0.15)
"""How large a distance may be to be good, and to be fair."""

NO_WAITS = "no job of the trace waits on the cluster of the check, so waits cannot be judged"


class FitVerdict(NamedTuple):
    """How far a fitted generator can stand in for its trace.

    Attributes:
        grade: good, fair or poor.
        because: what gives it this grade; empty if all is good.
        not_judged: what cannot be judged; empty = nothing.
    """

    grade: str
    because: list[str]
    not_judged: str

    def __str__(self) -> str:
        """Return the verdict as text."""
        told = self.grade + (f": {'; '.join(self.because)}" if self.because else "")
        return f"{told}; but {self.not_judged}" if self.not_judged else told


def fit_verdict(found: Closeness) -> FitVerdict:
    """Return the verdict: the worst grade of mean wait, demand, sizes, run times, work and gaps.

    Without simulated waits, or if no job of the trace waits, waits do not count, and the verdict
    says so.
    """
    judged: list[tuple[int, str]] = []
    ratio = None if found.waits is None else found.waits.ratio
    if ratio is not None:
        judged.append(_by_factor("mean wait", ratio))
    if found.demand[0] > 0:
        judged.append(_by_factor("demand", found.demand[1] / found.demand[0]))
    for what, far in (
        ("GPUs per job", found.gpu_mix_distance),
        ("run time", found.run_distance),
        ("work per job", found.work_distance),
        ("gaps", found.gap_distance),
    ):
        judged.append((_rank(far, DISTANCES), f"{what}: distance {far:.2f}"))
    worst = max(rank for rank, _ in judged)
    because = [text for rank, text in judged if rank == worst and worst > 0]
    return FitVerdict(GRADES[worst], because, NO_WAITS if ratio is None else "")


def _by_factor(what: str, ratio: float) -> tuple[int, str]:
    off = max(ratio, 1 / ratio) if ratio > 0 else math.inf
    return _rank(off, FACTORS[what]), f"the {what} is {ratio:.2f} times that of the trace"


def _rank(value: float, limits: tuple[float, float]) -> int:
    return sum(value > limit for limit in limits)
