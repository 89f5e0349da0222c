"""Goals of a search: the loss to minimise, from the results of a scheduler on some windows.

    slowdown  bounded slowdown, with a penalty if mean JCT, p99 JCT or makespan exceeds its limit
    jct       mean JCT
    mix       half of each, without limits

Each metric is the mean over windows of log(value / value of a reference on the same window). So
hard windows count no more than easy ones, and a loss of -0.1 is about 10 % better. Idle GPUs can
lower slowdown at the expense of all other metrics; the limits prevent that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

GOALS = ("slowdown", "jct", "mix")
FAILED = 100.0
"""Loss of a candidate that could not be run, above all other losses."""


class WindowOutcome(NamedTuple):
    """Results of a scheduler on one window."""

    mean_jct: float
    p99_jct: float
    mean_bounded_slowdown: float
    makespan: float


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """The loss to minimise.

    Attributes:
        name: one of GOALS.
        jct_tolerance: share by which mean JCT may exceed the reference's without a penalty.
        p99_tolerance: the same for p99 JCT.
        makespan_tolerance: the same for makespan.
        penalty: cost of each further percent, in percent of slowdown.
    """

    name: str = "slowdown"
    jct_tolerance: float = 0.02
    p99_tolerance: float = 0.10
    makespan_tolerance: float = 1.0
    penalty: float = 20.0

    def loss(
        self, ours: Sequence[WindowOutcome | Exception], reference: Sequence[WindowOutcome]
    ) -> float:
        """Return the loss of a scheduler, relative to the reference on the same windows."""
        if any(isinstance(one, Exception) for one in ours):
            return FAILED
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(np.array(ours, float) / np.array(reference, float)).mean(axis=0)
        if not np.isfinite(logs).all():
            return FAILED
        jct, p99, slowdown, makespan = logs.tolist()
        if self.name == "jct":
            return float(jct)
        if self.name == "mix":
            return float(jct + slowdown) / 2
        excess = max(jct - math.log1p(self.jct_tolerance), 0.0)
        excess += max(p99 - math.log1p(self.p99_tolerance), 0.0)
        excess += max(makespan - math.log1p(self.makespan_tolerance), 0.0)
        return float(slowdown + self.penalty * excess)
