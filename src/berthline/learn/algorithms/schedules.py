"""Schedules of learning rates and other settings: a factor that depends on the progress."""

from __future__ import annotations

import math
from typing import Protocol

from berthline.errors import ConfigError

SCHEDULES = ("constant", "linear", "exponential", "cosine", "warmup_cosine")
_LEAST = 0.05
"""Final factor of exponential and cosine schedules."""
_WARMUP = 0.05
"""Share of the steps over which `warmup_cosine` rises, unless its steps are given."""


class RateConfig(Protocol):
    """The settings of a learning rate; see `settings.py`."""

    @property
    def learning_rate_schedule(self) -> str:
        """One of SCHEDULES."""

    @property
    def learning_rate_warmup(self) -> int | None:
        """Steps over which the rate rises from 0; None = none."""


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


def rate_factor(config: RateConfig, progress: float, steps: int) -> float:
    """Return the factor of the learning rate.

    Args:
        config: the settings of the learning rate.
        progress: share of all steps done so far, 0 to 1.
        steps: environment steps that will be done when the rate is used. They are 1 or more, so
            that no iteration is made at a rate of 0.

    Example:
        >>> from berthline.learn.algorithms.configs import PPOConfig
        >>> slow = PPOConfig(learning_rate_schedule="constant", learning_rate_warmup=1000)
        >>> [rate_factor(slow, 0.0, steps) for steps in (250, 1000, 5000)]
        [0.25, 1.0, 1.0]
    """
    warmup = config.learning_rate_warmup
    if not warmup:
        return factor(config.learning_rate_schedule, progress)
    # After its own rise, `warmup_cosine` is a cosine.
    after = config.learning_rate_schedule.removeprefix("warmup_")
    return min(1.0, steps / warmup) * factor(after, progress)


def _cosine(progress: float) -> float:
    return _LEAST + (1 - _LEAST) * (1 + math.cos(math.pi * progress)) / 2
