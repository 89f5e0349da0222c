"""FittedTables: the data of a fitted generator as arrays, made once for all its episodes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.model.workload import WHOLE_GPU
from berthline.traces.generators.draws import Lists, normal_quantile
from berthline.traces.generators.fitted.fitted_arrivals import (
    HOURS_OF_WEEK,
    burst_work,
    gap_quantiles,
    heavy_variance,
    hourly_rates,
    normal_share,
)
from berthline.traces.generators.gpu_mix import limits_of

if TYPE_CHECKING:
    from berthline.traces.generators.fitted.fitted_generator import FittedGenerator, UserHabits

SERIES_LEVELS = np.concatenate(
    (np.linspace(0.0, 0.9, 19), 1.0 - np.geomspace(0.07, 0.002, 8), [1.0])
)
"""Probabilities at which quantiles of the length of series are kept."""

_REQUEST_FIELDS: dict[str, tuple[type[np.generic], float]] = {
    "pool": (np.int32, -1),
    "gpu_types": (np.int32, -1),
    "priority": (np.float64, 0),
    "cpus": (np.float64, 0),
    "memory_mib": (np.float64, 0),
    "deadline": (np.float64, -1),
    "gpu_milli": (np.int32, WHOLE_GPU),
}
"""Types of a request's fields, and the values that mean none."""

_FARTHEST = 8.0  # normal points


class FittedTables:
    """The data that a fitted generator draws from.

    Attributes:
        fitted: the generator.
        gaps: gaps in mean gaps, by normal rank.
        profile: rate in each hour of a week from time 0 on.
        week_rate: rate of each week.
        week_work: how much heavier jobs are in each week.
        burst_work: how heavy jobs are outside and in bursts.
        heavy_variance: variance of how heavy jobs are due to their submission times.
        with_bursts: maps the mixture of jobs in bursts and other jobs to standard normal numbers;
            None = it is standard normal.
        habits: limits of the habits' shares of series.
        first_user: the first user of each of the habits.
        num_users: the number of users of each of the habits.
        series: lengths of series by probability, for each of the habits.
        class_limits: for each of the habits, limits of the shares of size classes.
        level: mean rank of run times, for each of the habits.
        spread: standard deviation of the ranks of run times, for each of the habits.
        run: for each size class, logarithms of run times by normal rank.
        size_limits: for each size class, limits of the shares of its sizes.
        sizes: sizes of all classes, one class after another.
        first_size: where the sizes of each class begin.
        stated_bounds: limits between ranges of run times with different estimates.
        stated_missing: share of jobs without an estimate, for each range of run times.
        stated: the estimates, all ranges one after another.
        first_stated: where the estimates of each range begin.
        num_stated: the number of estimates of each range.
        request_first: for habits and size classes, where the numbers of their requests begin.
        request_count: for habits and size classes, how many requests there are.
        request_numbers: the numbers of requests.
        requests: by field, the value of every request; without the fields that no request has.
    """

    def __init__(self, fitted: FittedGenerator) -> None:
        self.fitted = fitted
        self.gaps = gap_quantiles(fitted.gaps)
        self.profile = hourly_rates(fitted.hourly, fitted.daily, fitted.hour_of_week, HOURS_OF_WEEK)
        self.week_rate = np.array([week.rate for week in fitted.weeks])
        self.week_work = np.array([week.work for week in fitted.weeks])
        self.burst_work = burst_work(fitted.bursts)
        self.heavy_variance = heavy_variance(fitted)
        self.with_bursts = _with_bursts(fitted)
        self._set_users(fitted)
        self._set_classes(fitted)
        self._set_limits(fitted)
        self._set_requests(fitted)

    def _set_users(self, fitted: FittedGenerator) -> None:
        users = fitted.users
        self.habits, _ = limits_of(series_shares(users))
        self.num_users = np.array([person.count for person in users])
        self.first_user = np.concatenate(([0], np.cumsum(self.num_users)[:-1]))
        self.series = Lists([SERIES_LEVELS] * len(users), [person.series for person in users])
        mix = np.zeros((len(users), len(fitted.classes)))
        for number, person in enumerate(users):
            for which, share in person.classes.items():
                mix[number, which] = share
        limits = np.cumsum(mix / mix.sum(axis=1, keepdims=True), axis=1)[:, :-1]
        self.class_limits = Lists(list(limits))
        self.level = np.array([person.level for person in users])
        self.spread = np.array([person.spread for person in users])

    def _set_classes(self, fitted: FittedGenerator) -> None:
        classes = fitted.classes
        self.run = Lists([kind.ranks for kind in classes], [np.log(kind.run) for kind in classes])
        self.size_limits = Lists([limits_of(np.array(kind.shares))[0] for kind in classes])
        self.sizes = np.array([size for kind in classes for size in kind.sizes], np.int32)
        self.first_size = _begins([len(kind.sizes) for kind in classes])

    def _set_limits(self, fitted: FittedGenerator) -> None:
        entries = fitted.limits
        # A run time equal to a bound counts as below it.
        bounds = np.array([entry.run_up_to for entry in entries[:-1]])
        self.stated_bounds = np.nextafter(bounds, math.inf)
        self.stated_missing = np.array(
            [entry.missing if entry.values else 1.0 for entry in entries]
        )
        self.num_stated = np.array([max(1, len(entry.values)) for entry in entries])
        self.stated = np.array(
            [value for entry in entries for value in (entry.values or [math.nan])]
        )
        self.first_stated = _begins(self.num_stated.tolist())

    def _set_requests(self, fitted: FittedGenerator) -> None:
        shape = (len(fitted.users), len(fitted.classes))
        self.request_first = np.zeros(shape, np.intp)
        self.request_count = np.zeros(shape, np.intp)
        numbers: list[int] = []
        for row, person in enumerate(fitted.users):
            for column, own in person.requests.items():
                self.request_first[row, column] = len(numbers)
                self.request_count[row, column] = len(own)
                numbers += own
        self.request_numbers = np.array(numbers, np.intp)
        self.requests: dict[str, npt.NDArray[Any]] = {}
        for name, (dtype, nothing) in _REQUEST_FIELDS.items():
            values = np.array([getattr(request, name) for request in fitted.requests], dtype)
            if (values != nothing).any():
                self.requests[name] = values


def series_shares(users: list[UserHabits]) -> npt.NDArray[np.float64]:
    """Return each user's share of all series; `UserHabits.share` is the share of jobs."""
    shares = np.array([person.share for person in users])
    even = (np.arange(4096) + 0.5) / 4096
    mean = np.array([np.interp(even, SERIES_LEVELS, person.series).mean() for person in users])
    return np.asarray(shares / mean / (shares / mean).sum())


def _with_bursts(fitted: FittedGenerator) -> Lists | None:
    if fitted.bursts.work == 0:
        return None
    # Jobs in bursts and other jobs are a mixture of two normal distributions.
    grid = np.linspace(-_FARTHEST, _FARTHEST, 1201)
    scale = math.sqrt(1.0 - fitted.bursts.work**2)
    alone, together = (normal_share((grid - mean) / scale) for mean in burst_work(fitted.bursts))
    share = (1.0 - fitted.bursts.share) * alone + fitted.bursts.share * together
    return Lists([grid], [normal_quantile(share)])


def _begins(sizes: list[int]) -> npt.NDArray[np.intp]:
    return np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)
