"""Decision latency: how long the scheduler takes to decide. Measured, so it varies between runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


class DecisionLatency(msgspec.Struct, frozen=True, kw_only=True):
    """Wall-clock time per decision point, in seconds.

    Attributes:
        mean: over the whole run, including the time between decisions, so the scheduler itself
            takes less. NaN (JSON null) without decisions.
        p50: median of the decisions alone; None if they were not timed individually.
        p99: 99th percentile, in the same unit.
        max: the longest, in the same unit.
    """

    mean: float
    p50: float | None
    p99: float | None
    max: float | None


def decision_latency(
    wall_seconds: float, decisions: int, each: Sequence[float] | None = None
) -> DecisionLatency:
    """Return the wall-clock time per decision point, in seconds.

    Formula: mean = wall-clock time of the run / decision points; p50, p99 and max over the timed
    decisions. The time covers what the scheduler does at a decision point: ordering, choosing,
    placing, preempting and starting jobs. It excludes the events before it and the changes of speed
    after it.

    Args:
        wall_seconds: wall-clock time of the run.
        decisions: decision points of the run.
        each: seconds of every decision; None = not timed.

    Example:
        >>> decision_latency(0.5, 1000).mean
        0.0005
    """
    p50, p99, longest = np.percentile(each, (50, 99, 100)).tolist() if each else (None,) * 3
    mean = wall_seconds / decisions if decisions else math.nan
    return DecisionLatency(mean=mean, p50=p50, p99=p99, max=longest)
