"""Schedules of learning rates and other settings: a factor that depends on the progress."""

from __future__ import annotations

import math

from berthline.errors import ConfigError

SCHEDULES = ("constant", "linear", "exponential", "cosine", "warmup_cosine")
_LEAST = 0.05
"""Final factor of exponential and cosine schedules."""
_WARMUP = 0.05


def factor(schedule: str, progress: float) -> float:
    """Return the factor of a value.

    Args:
        schedule: one of SCHEDULES.
        progress: share of all steps done so far, 0 to 1.

    Raises:
        ConfigError: no such schedule.

    Example:
        >>> [factor("linear", share) for share in (0.0, 0.5, 1.0)]
        [1.0, 0.5, 0.0]
    """
    progress = min(max(progress, 0.0), 1.0)
    match schedule:
        case "constant":
            return 1.0
        case "linear":
            return 1.0 - progress
        case "exponential":
            return float(_LEAST**progress)
        case "cosine":
            return _cosine(progress)
        case "warmup_cosine":
            if progress < _WARMUP:
                return progress / _WARMUP
            return _cosine((progress - _WARMUP) / (1 - _WARMUP))
    raise ConfigError(f"no schedule {schedule!r}", expected="one of " + ", ".join(SCHEDULES))


def _cosine(progress: float) -> float:
    return _LEAST + (1 - _LEAST) * (1 + math.cos(math.pi * progress)) / 2
