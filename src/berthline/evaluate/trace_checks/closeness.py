"""How close one workload is to another: the quality of a `fit`, measured."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.evaluate.trace_checks.wait_check import WaitCheck
from berthline.traces.generators.arrivals import DAY, HOUR
from berthline.traces.generators.fitted.successive_jobs import (
    correlation,
    successive,
    user_run_correlation,
)

if TYPE_CHECKING:
    from berthline.model.workload import Workload

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Closeness:
    """Figures of an original and of a workload modelled on it, side by side.

    Distances are between 0 (the same) and 1 (nothing in common). `pairs` have the original first.

    Attributes:
        jobs_per_day: pair.
        demand: pair: GPUs busy on average if no job ever waited; the ratio is that of the loads.
        gpu_mix_distance: total variation distance of GPUs per job.
        run_quantile_ratios: made / original, by level.
        run_distance: Kolmogorov-Smirnov distance of run times.
        work_distance: the same for GPU-seconds per job.
        gap_distance: the same for gaps between submissions.
        gap_variation: pair: standard deviation of gaps / their mean.
        hourly_dispersion: pair: variance of jobs per hour / their mean; 1 = Poisson.
        daily_dispersion: pair: the same for jobs per day.
        hour_of_day_correlation: of jobs per hour of the day.
        same_user: pair: share of jobs that follow one of the same user.
        top_user: pair: share of the user with the most jobs.
        user_run_correlation: pair: of log run times of a user's successive jobs.
        user_gpus_repeated: pair: share of a user's successive jobs with equal GPUs.
        accuracy_distance: Kolmogorov-Smirnov distance of run time / estimate; None = no estimates.
        accuracy_median: pair: median of run time / estimate; None = no estimates.
        requests: distances of other requests of the original's jobs, by name: shares of pools, GPU
            types and priorities, alone and together with GPUs, and distributions of CPUs, memory
            and deadlines.
        waits: mean waits on one cluster; None = not simulated.
    """

    jobs_per_day: tuple[float, float]
    demand: tuple[float, float]
    gpu_mix_distance: float
    run_quantile_ratios: dict[str, float]
    run_distance: float
    work_distance: float
    gap_distance: float
    gap_variation: tuple[float, float]
    hourly_dispersion: tuple[float, float]
    daily_dispersion: tuple[float, float]
    hour_of_day_correlation: float
    same_user: tuple[float, float]
    top_user: tuple[float, float]
    user_run_correlation: tuple[float, float]
    user_gpus_repeated: tuple[float, float]
    accuracy_distance: float | None
    accuracy_median: tuple[float, float] | None
    requests: dict[str, float]
    waits: WaitCheck | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        plain = dataclasses.asdict(self)
        plain["waits"] = None if self.waits is None else self.waits.as_dict()
        return plain

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return a table: what, original, made, how close."""
        rows = [
            _pair("jobs per day", self.jobs_per_day),
            _pair("demand, GPUs (ratio of loads)", self.demand),
            ("GPUs per job", "", "", f"distance {self.gpu_mix_distance:.3f}"),
            ("run time", "", "", f"distance {self.run_distance:.3f}"),
            *(
                (f"run time p{level}", "", "", f"ratio {ratio:.2f}")
                for level, ratio in self.run_quantile_ratios.items()
            ),
            ("work per job", "", "", f"distance {self.work_distance:.3f}"),
            ("gaps", "", "", f"distance {self.gap_distance:.3f}"),
            _pair("variation of gaps", self.gap_variation),
            _pair("dispersion of jobs per hour", self.hourly_dispersion),
            _pair("dispersion of jobs per day", self.daily_dispersion),
            ("jobs by hour of the day", "", "", f"correlation {self.hour_of_day_correlation:.3f}"),
            _pair("follows a job of the same user", self.same_user),
            _pair("share of the busiest user", self.top_user),
            _pair("a user's next run time, correlation", self.user_run_correlation),
            _pair("a user's next job has the same GPUs", self.user_gpus_repeated),
        ]
        if self.accuracy_distance is not None and self.accuracy_median is not None:
            rows.append(_pair("run time / estimate, median", self.accuracy_median))
            rows.append(("run time / estimate", "", "", f"distance {self.accuracy_distance:.3f}"))
        rows += [(what, "", "", f"distance {far:.3f}") for what, far in self.requests.items()]
        if self.waits is not None:
            rows += self.waits.rows()
        return rows


def report(original: Workload, made: Workload, waits: WaitCheck | None = None) -> Closeness:
    """Return how close `made` is to `original`.

    Args:
        original: the workload to compare with.
        made: the workload modelled on it.
        waits: their waits, if they were simulated; see wait_check.py.
    """
    levels = np.array(QUANTILES)
    ratios = np.quantile(made.run, levels) / np.quantile(original.run, levels)
    gaps = np.diff(original.submit), np.diff(made.submit)
    accuracy = _accuracy(original), _accuracy(made)
    has_estimates = bool(accuracy[0].size and accuracy[1].size)
    return Closeness(
        jobs_per_day=(_per_day(original), _per_day(made)),
        demand=(_demand(original), _demand(made)),
        gpu_mix_distance=_mix_distance(original.gpus, made.gpus),
        run_quantile_ratios={
            f"{100 * level:g}": float(ratio) for level, ratio in zip(QUANTILES, ratios, strict=True)
        },
        run_distance=distance(original.run, made.run),
        work_distance=distance(original.run * original.gpu_amount, made.run * made.gpu_amount),
        gap_distance=distance(*gaps),
        gap_variation=(_variation(gaps[0]), _variation(gaps[1])),
        hourly_dispersion=(_dispersion(original, HOUR), _dispersion(made, HOUR)),
        daily_dispersion=(_dispersion(original, DAY), _dispersion(made, DAY)),
        hour_of_day_correlation=correlation(_by_hour(original), _by_hour(made)),
        same_user=(_same_user(original), _same_user(made)),
        top_user=(_top_user(original), _top_user(made)),
        user_run_correlation=(
            user_run_correlation(original.user, original.run),
            user_run_correlation(made.user, made.run),
        ),
        user_gpus_repeated=(_user_gpus_repeated(original), _user_gpus_repeated(made)),
        accuracy_distance=distance(*accuracy) if has_estimates else None,
        accuracy_median=(
            (float(np.median(accuracy[0])), float(np.median(accuracy[1])))
            if has_estimates
            else None
        ),
        requests=_requests(original, made),
        waits=waits,
    )


def distance(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the Kolmogorov-Smirnov distance: the largest gap between cumulative shares."""
    one, two = np.sort(np.asarray(first)), np.sort(np.asarray(second))
    values = np.concatenate((one, two))
    shares = np.searchsorted(one, values, side="right") / len(one) - np.searchsorted(
        two, values, side="right"
    ) / len(two)
    return float(np.abs(shares).max())


def _requests(original: Workload, made: Workload) -> dict[str, float]:
    """Return distances of what jobs request, for requests that the original's jobs make."""
    found: dict[str, float] = {}
    for what, column in (("pool", "pool"), ("GPU types", "gpu_types"), ("priority", "priority")):
        values = getattr(original, column), getattr(made, column)
        if (values[0] != values[0][0]).any():
            found[what] = _shares_distance(values[0], values[1])
            found[f"{what}, with GPUs"] = _shares_distance(
                np.stack((values[0], original.gpus)), np.stack((values[1], made.gpus))
            )
    for what, column in (("CPUs", "cpus"), ("memory", "memory_mib")):
        if getattr(original, column).any():
            found[what] = distance(getattr(original, column), getattr(made, column))
    if (original.gpu_milli != original.gpu_milli[0]).any():
        found["part of a GPU"] = distance(original.gpu_milli, made.gpu_milli)
    slack = _slack(original), _slack(made)
    if np.isfinite(slack[0]).any():
        found["deadline, in run times"] = distance(*slack)
    return found


def _slack(workload: Workload) -> npt.NDArray[np.float64]:
    return np.asarray((workload.deadline - workload.submit) / workload.run)


def _shares_distance(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Return the total variation distance of shares; columns are values."""
    one, two = np.atleast_2d(first), np.atleast_2d(second)
    both = np.concatenate((one, two), axis=1)
    _, number = np.unique(both, axis=1, return_inverse=True)
    number = number.ravel()
    size = int(number.max()) + 1
    shares = (
        np.bincount(part, minlength=size) / len(part)
        for part in (number[: one.shape[1]], number[one.shape[1] :])
    )
    return float(np.abs(next(shares) - next(shares)).sum() / 2)


def _pair(what: str, values: tuple[float, float]) -> tuple[str, str, str, str]:
    ratio = f"ratio {values[1] / values[0]:.2f}" if values[0] else ""
    return what, f"{values[0]:.4g}", f"{values[1]:.4g}", ratio


def _span(workload: Workload) -> float:
    return float(workload.submit[-1] - workload.submit[0])


def _per_day(workload: Workload) -> float:
    return len(workload) / max(_span(workload), 1.0) * 86_400


def _demand(workload: Workload) -> float:
    return workload.work / max(_span(workload), 1.0)


def _mix_distance(first: npt.NDArray[np.int32], second: npt.NDArray[np.int32]) -> float:
    size = int(max(first.max(), second.max())) + 1
    one = np.bincount(first, minlength=size) / len(first)
    two = np.bincount(second, minlength=size) / len(second)
    return float(np.abs(one - two).sum() / 2)


def _variation(gaps: npt.NDArray[np.float64]) -> float:
    return float(gaps.std() / gaps.mean()) if gaps.size and gaps.mean() > 0 else 0.0


def _counts(workload: Workload, seconds: float) -> npt.NDArray[np.intp]:
    return np.bincount(((workload.submit - workload.submit[0]) / seconds).astype(np.intp))


def _dispersion(workload: Workload, seconds: float) -> float:
    counts = _counts(workload, seconds)
    return float(counts.var() / counts.mean())


def _by_hour(workload: Workload) -> npt.NDArray[np.float64]:
    counts = _counts(workload, HOUR)
    hour = np.arange(len(counts)) % 24
    hours = np.maximum(np.bincount(hour, minlength=24), 1)
    return np.asarray(np.bincount(hour, weights=counts, minlength=24) / hours)


def _same_user(workload: Workload) -> float:
    return float((workload.user[1:] == workload.user[:-1]).mean()) if len(workload) > 1 else 0.0


def _top_user(workload: Workload) -> float:
    return float(np.bincount(workload.user).max() / len(workload))


def _user_gpus_repeated(workload: Workload) -> float:
    before, after = successive(workload.user)
    return float((workload.gpus[before] == workload.gpus[after]).mean()) if before.size else 0.0


def _accuracy(workload: Workload) -> npt.NDArray[np.float64]:
    known = ~np.isnan(workload.estimate)
    return np.asarray(workload.run[known] / workload.estimate[known])
