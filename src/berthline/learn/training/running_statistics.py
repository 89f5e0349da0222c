"""Running mean and deviation of numbers, to scale them to order 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

_LEAST_DEVIATION = 1e-4


class RunningMoments:
    """Mean and standard deviation of all numbers so far (Chan et al. 1979)."""

    def __init__(self, mean: float = 0.0, variance: float = 1.0, count: float = 0.0) -> None:
        self.mean, self.variance, self.count = mean, variance, count

    def update(self, values: Tensor) -> None:
        """Add numbers."""
        mean, number = float(values.mean()), values.numel()
        variance = float(values.var(correction=0))
        total = self.count + number
        gap = mean - self.mean
        self.variance = (
            self.variance * self.count + variance * number + gap**2 * self.count * number / total
        ) / total
        self.mean += gap * number / total
        self.count = total

    @property
    def deviation(self) -> float:
        """The standard deviation, never 0."""
        return max(math.sqrt(self.variance), _LEAST_DEVIATION)

    def scale(self, values: Tensor) -> Tensor:
        """Return values in standard deviations from the mean."""
        return (values - self.mean) / self.deviation

    def unscale(self, values: Tensor) -> Tensor:
        """Undo `scale`."""
        return values * self.deviation + self.mean

    def state(self) -> dict[str, float]:
        """Return the arguments of the constructor."""
        return {"mean": self.mean, "variance": self.variance, "count": self.count}


class RewardScale:
    """The size of discounted sums of rewards; values divided by it are of order 1.

    Args:
        num_envs: number of environments that step together.
    """

    def __init__(self, num_envs: int) -> None:
        self.sums: npt.NDArray[np.float64] = np.zeros(num_envs)
        self.mean_square, self.count = 0.0, 0
        self.total, self.faded = 0.0, 0.0

    def update(
        self,
        rewards: npt.NDArray[np.float64],
        discounts: npt.NDArray[np.float64],
        ended: npt.NDArray[np.bool_],
    ) -> None:
        """Add a step of all environments."""
        sums = discounts * self.sums + rewards
        self.count += len(sums)
        gap = float(np.mean(sums**2)) - self.mean_square
        self.mean_square += gap * len(sums) / self.count
        self.sums = np.where(ended, 0.0, sums)
        self.total += float(rewards.sum())
        self.faded += float(np.where(ended, 1.0, 1 - discounts).sum())

    @property
    def size(self) -> float:
        """The root mean square of the sums, or |`for_ever`| if that is larger; never 0.

        The sums begin at 0, so they are too small at first.
        """
        usual = abs(for_ever(self.total, self.faded, len(self.sums)))
        return max(math.sqrt(self.mean_square), usual, _LEAST_DEVIATION)

    @property
    def usual(self) -> float:
        """The discounted sum of the mean reward so far, repeated without end, / size."""
        return for_ever(self.total, self.faded, len(self.sums)) / self.size

    def state(self) -> dict[str, Any]:
        """Return the argument of `restore`, as JSON."""
        return {
            "sums": self.sums.tolist(),
            "mean_square": self.mean_square,
            "count": self.count,
            "total": self.total,
            "faded": self.faded,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.sums = np.array(state["sums"])
        self.mean_square, self.count = state["mean_square"], state["count"]
        self.total, self.faded = state["total"], state["faded"]


def for_ever(total: float, faded: float, num_envs: int) -> float:
    """Return the discounted sum of rewards that continue without end: total / faded.

    Critics begin at this value. A critic that begins at 0 assumes that the future costs nothing,
    and blames actions after which time passes, such as starting a job, for the costs of that time.

    Args:
        total: sum of the rewards of some steps.
        faded: sum of 1 - discount over these steps.
        num_envs: number of environments that made these steps.
    """
    # Almost without discount the sum has no limit; then it is the sum so far per environment.
    return total / (faded if faded >= 1 else num_envs)


def fading(
    per_step: float, horizon: float | None, seconds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the discount of each step: per_step * exp(-seconds / horizon).

    Args:
        per_step: discount per step.
        horizon: seconds after which the discount is another 1 / e; None = time does not matter.
        seconds: duration of each step.
    """
    if horizon is None:
        return np.full(len(seconds), per_step)
    found: npt.NDArray[np.float64] = per_step * np.exp(-seconds / horizon)
    return found
