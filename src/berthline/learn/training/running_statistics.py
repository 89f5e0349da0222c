"""Running mean and deviation of numbers, to learn in units of about 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    from torch import Tensor

_LEAST_DEVIATION = 1e-4


class RunningMoments:
    """Mean and standard deviation of everything seen so far (Chan et al. 1979)."""

    def __init__(self, mean: float = 0.0, variance: float = 1.0, count: float = 0.0) -> None:
        self.mean, self.variance, self.count = mean, variance, count

    def update(self, values: Tensor) -> None:
        """Take more numbers into account."""
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
        """Return what the constructor takes."""
        return {"mean": self.mean, "variance": self.variance, "count": self.count}


class RewardScale:
    """The size of discounted sums of rewards: divided by it, values are of order 1.

    Args:
        num_envs: environments that step together.
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
        """Take a step of all environments into account."""
        sums = discounts * self.sums + rewards
        self.count += len(sums)
        gap = float(np.mean(sums**2)) - self.mean_square
        self.mean_square += gap * len(sums) / self.count
        self.sums = np.where(ended, 0.0, sums)
        self.total += float(rewards.sum())
        self.faded += float(np.where(ended, 1.0, 1 - discounts).sum())

    @property
    def size(self) -> float:
        """The root of the mean square, never 0.

        The sums begin at 0, and are too small at first; so what is usual counts if it is larger.
        """
        usual = abs(for_ever(self.total, self.faded, len(self.sums)))
        return max(math.sqrt(self.mean_square), usual, _LEAST_DEVIATION)

    @property
    def usual(self) -> float:
        """The sum of the mean reward so far, repeated without end, divided by the size."""
        return for_ever(self.total, self.faded, len(self.sums)) / self.size

    def state(self) -> dict[str, Any]:
        """Return what `restore` takes, as JSON."""
        return {
            "sums": self.sums.tolist(),
            "mean_square": self.mean_square,
            "count": self.count,
            "total": self.total,
            "faded": self.faded,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.sums = np.array(state["sums"])
        self.mean_square, self.count = state["mean_square"], state["count"]
        self.total, self.faded = state["total"], state["faded"]


def for_ever(total: float, faded: float, num_envs: int) -> float:
    """Return what rewards that go on as they were would add up to.

    A critic that begins at 0 takes all that follows for free, and blames actions that let time
    pass, such as starting a job, for the costs of that time. So it begins here.

    Args:
        total: sum of the rewards of some steps.
        faded: sum of 1 - discount over them.
        num_envs: environments that they are of.
    """
    # Where next to nothing fades there is no such sum; what those steps brought has to do.
    return total / (faded if faded >= 1 else num_envs)


def fading(
    per_step: float, horizon: float | None, seconds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return what counts of the rest after steps of these durations.

    Args:
        per_step: what counts after any step.
        horizon: seconds after which it is 1 / e of that; None = time does not matter.
        seconds: that each step has taken.
    """
    if horizon is None:
        return np.full(len(seconds), per_step)
    found: npt.NDArray[np.float64] = per_step * np.exp(-seconds / horizon)
    return found
