"""Prediction error: what a predictor would have predicted for a log's jobs, and its error.

The log is replayed in time order: a job is predicted when it is submitted, and the predictor learns
from it when it has finished, as recorded. If the log has no starts, jobs start when submitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.model.workload import Workload

LEAST_SECONDS = 1.0


class Predictor(Protocol):
    """Predicts run times and learns from finished jobs."""

    def finished(self, *, user: int, pool: int, gpus: float, run: float) -> None:
        """Learn from a job that has finished."""

    def predict(self, *, user: int, pool: int, gpus: float) -> float:
        """Return the seconds that a job is expected to run."""


class PredictionError(msgspec.Struct, frozen=True, kw_only=True):
    """The errors of predictions.

    Attributes:
        mean_factor: 2 to the mean of |log2(predicted / run)|: the typical factor.
        median_factor: the same with the median.
        within_two: share of the jobs that were predicted within a factor of 2.
        rank_correlation: Spearman's, of predicted and real run times; it matters for orders.
        too_short: share of the jobs that outlived their prediction; it matters for reservations.
        jobs: number of jobs.
    """

    mean_factor: float
    median_factor: float
    within_two: float
    rank_correlation: float
    too_short: float
    jobs: int


class LastTwo:
    """The rule of the simulators (docs/decisions/0006): mean of the user's last two runs.

    Args:
        by_pool: treat a user's jobs in different pools as those of different users.
    """

    def __init__(self, *, by_pool: bool = False) -> None:
        self._by_pool = by_pool
        self._runs: dict[tuple[int, int] | None, tuple[float, float]] = {}

    def finished(self, *, user: int, pool: int, gpus: float, run: float) -> None:  # noqa: ARG002
        """Learn from a job that has finished."""
        for key in (self._key(user, pool), None):
            self._runs[key] = (self._runs.get(key, (run, run))[1], run)

    def _key(self, user: int, pool: int) -> tuple[int, int]:
        return user, pool if self._by_pool else 0

    def predict(self, *, user: int, pool: int, gpus: float) -> float:  # noqa: ARG002
        """Return the seconds that a job is expected to run."""
        from berthline.sim.inputs import FIRST_PREDICTION

        runs = self._runs.get(self._key(user, pool)) or self._runs.get(None)
        return FIRST_PREDICTION if runs is None else (runs[0] + runs[1]) / 2


def replay_predictions(workload: Workload, predictor: Predictor) -> npt.NDArray[np.float64]:
    """Return what a predictor would have predicted for each job at its submission."""
    start = workload.submit
    if workload.history is not None:
        recorded = workload.history.start
        start = np.where(np.isfinite(recorded), recorded, workload.submit)
    finish = start + workload.run
    order = np.argsort(finish, kind="stable").tolist()
    ends, submits = finish[order].tolist(), workload.submit.tolist()
    user, pool = workload.user.tolist(), workload.pool.tolist()
    gpus, run = workload.gpus.tolist(), workload.run.tolist()
    found = np.empty(len(workload))
    known = 0
    for job, now in enumerate(submits):
        while known < len(order) and ends[known] <= now:
            done = order[known]
            predictor.finished(user=user[done], pool=pool[done], gpus=gpus[done], run=run[done])
            known += 1
        found[job] = predictor.predict(user=user[job], pool=pool[job], gpus=gpus[job])
    return found


def prediction_error(
    predicted: npt.NDArray[np.float64], run: npt.NDArray[np.float64]
) -> PredictionError:
    """Return the errors of predictions; times below a second count as one second."""
    ours, real = np.maximum(predicted, LEAST_SECONDS), np.maximum(run, LEAST_SECONDS)
    factors = np.abs(np.log2(ours / real))
    return PredictionError(
        mean_factor=float(2 ** factors.mean()),
        median_factor=float(2 ** np.median(factors)),
        within_two=float((factors <= 1).mean()),
        rank_correlation=float(np.corrcoef(_ranks(ours), _ranks(real))[0, 1]),
        too_short=float((ours < real).mean()),
        jobs=len(real),
    )


def _ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return ranks; equal values share their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: npt.NDArray[np.float64] = (last - (counts - 1) / 2)[place]
    return ranks
