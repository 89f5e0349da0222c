"""Running mean and deviation of numbers, to learn in units of about 1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
