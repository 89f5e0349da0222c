"""Run-time predictor: learns online, from finished jobs only, and gives its uncertainty.

A user's run times repeat, sizes distinguish kinds of jobs, and habits change. So the logarithm of
the run time is averaged with weights that fade as more jobs finish: for each user and size, for
each user, and for all jobs. A group with little data relies on the group above it. Pools count as
part of the user: in logs without users they are the best substitute.

The simulators use a simpler rule for `predicted`: docs/decisions/0006.
"""

from __future__ import annotations

import math
from statistics import NormalDist

FIRST = math.log(3600.0)
"""Prediction before any job has finished, as a logarithm of seconds."""
FIRST_DEVIATION = 2.0
"""Its standard deviation, also in logarithms: a factor of 7 in either direction."""
LEAST_SECONDS = 1.0


class _Group:
    """Weighted mean and variance of logarithms."""

    __slots__ = ("mean", "square", "weight")

    def __init__(self) -> None:
        self.weight = self.mean = self.square = 0.0

    def add(self, value: float, fading: float) -> None:
        self.weight = fading * self.weight + 1.0
        gap = value - self.mean
        self.mean += gap / self.weight
        # Old squares fade too (West 1979 with weights).
        self.square += (gap * (value - self.mean) - self.square) / self.weight


class RunTimePredictor:
    """Predicts run times of jobs when they are submitted.

    Args:
        fading: weight of an observation when the next one of its group arrives.
        leaning: number of observations that the group above counts as.

    Example:
        >>> predictor = RunTimePredictor()
        >>> round(predictor.predict(user=0, pool=0, gpus=1))
        3600
        >>> predictor.finished(user=0, pool=0, gpus=1, run=60)
        >>> predictor.predict(user=0, pool=0, gpus=1) < 1000
        True
    """

    def __init__(self, *, fading: float = 0.7, leaning: float = 0.5) -> None:
        self._fading, self._leaning = fading, leaning
        self._groups: dict[tuple[float, ...], _Group] = {}

    def finished(self, *, user: int, pool: int, gpus: float, run: float) -> None:
        """Learn from a job that has finished.

        Args:
            user: its user.
            pool: its pool.
            gpus: GPUs of its gang.
            run: how long it ran, in seconds.
        """
        value = math.log(max(run, LEAST_SECONDS))
        for key in _keys(user, pool, gpus):
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = _Group()
            # The group of all jobs fades slowly.
            group.add(value, self._fading if key else 1.0 - (1.0 - self._fading) / 50)

    def predict(self, *, user: int, pool: int, gpus: float, quantile: float = 0.5) -> float:
        """Return a quantile of a job's run time, in seconds.

        Args:
            user: its user.
            pool: its pool.
            gpus: GPUs of its gang.
            quantile: 0.5 = the median; larger = on the safe side.
        """
        mean, deviation = self._believed(user, pool, gpus)
        if quantile != 0.5:
            mean += NormalDist().inv_cdf(quantile) * deviation
        return max(math.exp(mean), LEAST_SECONDS)

    def doubt(self, *, user: int, pool: int, gpus: float) -> float:
        """Return the standard deviation of a prediction, in doublings of the run time.

        Args:
            user: its user.
            pool: its pool.
            gpus: GPUs of its gang.
        """
        return self._believed(user, pool, gpus)[1] / math.log(2)

    def _believed(self, user: int, pool: int, gpus: float) -> tuple[float, float]:
        """Return mean and deviation of the logarithm of a run time."""
        mean, deviation = FIRST, FIRST_DEVIATION
        for key in _keys(user, pool, gpus):
            group = self._groups.get(key)
            if group is None:
                break
            share = group.weight / (group.weight + self._leaning)
            own = group.square + (1 - share) * (group.mean - mean) ** 2
            deviation = math.sqrt(share * own + (1 - share) * deviation**2)
            mean += share * (group.mean - mean)
        return mean, deviation


def _keys(user: int, pool: int, gpus: float) -> tuple[tuple[float, ...], ...]:
    """Return the groups of a job, the widest first."""
    return (), (user, pool), (user, pool, gpus)
