"""When the jobs of a fitted generator are submitted, and whether jobs are then light or heavy.

Submissions are first drawn at a constant rate, with the gap distribution of the trace. Then they
are transformed to the hours of the day, the days of the week, and two levels that drift: one from
day to day, one from week to week. Short gaps come in bursts: the gaps of some successive jobs have
a part in common, the pace.

Each of the three (pace, day, week) also determines whether the jobs submitted then bring much work
or little. In most traces, when many jobs are submitted at once, each brings less work. Therefore
the offered work varies less than the number of jobs, and waits are shorter.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline import _native
from berthline.traces.generators.arrivals import HOUR
from berthline.traces.generators.draws import (
    Draws,
    Gap,
    Lists,
    Table,
    exp,
    normal_quantile,
    running_sums,
)

if TYPE_CHECKING:
    from berthline.traces.generators.fitted.fitted_generator import Bursts, FittedGenerator, Level
    from berthline.traces.generators.fitted.fitted_tables import FittedTables

    Hours = npt.NDArray[np.float64]  # (num_hours,)

HOURS_OF_DAY, HOURS_OF_WEEK = 24, 168
WEEK = HOURS_OF_WEEK * HOUR

GAP_LEVELS = np.concatenate(
    (np.linspace(0.0, 0.95, 96), 1.0 - np.geomspace(0.045, 1e-5, 40), [1.0])
)
"""Probabilities at which quantiles of gaps are kept: dense where gaps are long."""

SPREAD_OF_BURSTS = 1.0
"""Standard deviation of the logarithm of the number of jobs in a burst."""

PACE = 0.5
"""The share of the variance of a gap's rank that the gaps of a burst have in common."""

_GAP_RANKS = normal_quantile(GAP_LEVELS)
LONG_EPISODE = 2 * WEEK
"""Seconds. In an episode this long, the load and the share of heavy and light times are exact."""

Indices = npt.NDArray[np.intp]  # (episodes, jobs)


@dataclasses.dataclass(frozen=True)
class EvenTimes:
    """Submissions before any transformation.

    Attributes:
        times: in mean gaps, the first at 0.
        is_burst: whether a job belongs to a burst.
    """

    times: Table
    is_burst: npt.NDArray[np.bool_]  # (episodes, jobs)


def draw_even_times(tables: FittedTables, draws: Draws) -> EvenTimes:
    """Return submissions with the gap distribution of the trace, some of them in bursts."""
    ranks, is_burst = _gap_ranks(tables.fitted.bursts, draws)
    gaps = tables.gaps.at(ranks)
    gaps[:, 0] = 0.0
    return EvenTimes(running_sums(gaps, 1.0), is_burst)


def bend_times(
    tables: FittedTables, draws: Draws, even: EvenTimes, mean_gap: Gap
) -> tuple[Table, Table]:
    """Return submission times, and how heavy jobs are at each of them.

    The second value plus a normal number with variance 1 - `heavy_variance` is approximately
    standard normal over all jobs of all episodes.
    """
    fitted = tables.fitted
    times = even.times * mean_gap
    start = int(fitted.hour_of_week)
    hours = (int(times[:, -1].max() / WEEK) + 3) * HOURS_OF_WEEK
    day_rate, day_work = _days(draws, fitted.day, (hours - 1 + start) // HOURS_OF_DAY + 1)
    first = draws.uniform_of_episodes("first week", 1)[:, 0] * len(fitted.weeks)
    heavy = tables.burst_work.take(even.is_burst.view(np.int8))
    _native.bend_to_levels(
        times=times,
        heavy=heavy,
        profile=tables.profile,
        start=start,
        day_rate=day_rate,
        day_work=fitted.day.work * day_work,
        week_rate=tables.week_rate,
        week_work=tables.week_work,
        first_week=first.astype(np.int64),
        long_episode=LONG_EPISODE,
        spread=math.sqrt(tables.heavy_variance),
    )
    return np.rint(times, out=times), heavy


def heavy_variance(fitted: FittedGenerator) -> float:
    """Return the variance over jobs of how heavy they are due to their submission times."""
    rate = np.array([week.rate for week in fitted.weeks])
    work = np.array([week.work for week in fitted.weeks])
    return float((rate * work**2).sum() / rate.sum()) + fitted.day.work**2 + fitted.bursts.work**2


def burst_work(bursts: Bursts) -> npt.NDArray[np.float64]:
    """Return how heavy jobs are outside and in bursts, with mean 0 over all jobs."""
    spread = math.sqrt(bursts.share * (1.0 - bursts.share))
    if spread == 0:
        return np.zeros(2)
    return np.array([bursts.share, bursts.share - 1.0]) * (bursts.work / spread)


def _gap_ranks(bursts: Bursts, draws: Draws) -> tuple[Table, npt.NDArray[np.bool_]]:
    """Return the rank of each gap as a normal quantile, and which jobs are in bursts.

    A share of jobs belongs to bursts and has the shortest gaps, which are similar within a burst;
    the other jobs are submitted one by one.
    """
    # The share of bursts among bursts and single jobs.
    part = bursts.share / (bursts.share + (bursts.jobs + 0.5) * (1.0 - bursts.share))
    begins = draws.uniform("burst begins") < part
    places = np.flatnonzero(begins)  # few; the remaining work is only for them
    number = normal_quantile(draws.uniform("burst").ravel().take(places))
    length = np.ones(begins.shape, np.intp)
    length.ravel()[places] = np.floor(
        bursts.jobs * exp(SPREAD_OF_BURSTS * (number - SPREAD_OF_BURSTS / 2)) + 1.0
    )
    start = flat_places(starts_of(length))
    is_burst = begins.ravel().take(start)
    ranks = draws.normal("submit")
    inside = np.flatnonzero(is_burst)
    pace = normal_quantile(draws.uniform("pace").ravel().take(start.ravel().take(inside)))
    own = ranks.ravel().take(inside)
    ranks.ravel()[inside] = np.sqrt(PACE) * pace + np.sqrt(1 - PACE) * own
    probability = normal_share(ranks)
    kind = is_burst.view(np.int8)
    probability *= np.array([1.0 - bursts.share, bursts.share]).take(kind)
    probability += np.array([bursts.share, 0.0]).take(kind)
    return normal_quantile(probability), is_burst


def _days(draws: Draws, day: Level, count: int) -> tuple[Table, Table]:
    """Return the rate of `count` days, and how heavy jobs are then: standard normal over jobs."""
    level = normal_quantile(draws.uniform_of_episodes("day", count))
    work = normal_quantile(draws.uniform_of_episodes("day work", count))
    rate = exp(day.sigma * (level - day.sigma / 2))
    # Days with many jobs count more: the mean of the level over jobs is sigma.
    work = day.coupling * (level - day.sigma) + np.sqrt(1 - day.coupling**2) * work
    return rate, work


def gap_at(ranks: npt.NDArray[np.float64], quantiles: list[float]) -> npt.NDArray[np.float64]:
    """Return the gaps at some normal ranks, interpolated between the quantiles at GAP_LEVELS."""
    return gap_quantiles(quantiles).at(ranks)


def gap_quantiles(quantiles: list[float]) -> Lists:
    """Return gaps by normal ranks, from their quantiles at GAP_LEVELS."""
    return Lists([_GAP_RANKS], [quantiles])


def hourly_rates(
    hourly: list[float], daily: list[float], hour_of_week: float, num_hours: int
) -> npt.NDArray[np.float64]:
    """Return the rate in each hour from time 0, as a multiple of its mean over a week."""
    week = np.outer(daily, hourly).ravel()
    return np.asarray(np.resize(np.roll(week, -int(hour_of_week)), num_hours) / week.mean())


def flat_places(places: Indices) -> Indices:
    """Return positions in the flattened table, from positions in its rows."""
    rows, jobs = places.shape
    return np.asarray(places + (np.arange(rows) * jobs)[:, None])


_SHARES = np.linspace(-6.0, 6.0, 2401)
_NORMAL = Lists(
    [_SHARES], [np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in _SHARES.tolist()])]
)


def normal_share(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the standard normal distribution function at each point."""
    return _NORMAL.at(np.ascontiguousarray(points))


def starts_of(length: Indices) -> Indices:
    """Return for each job the first job of its series.

    `length` has, for every job, the length of a series that would begin there. The first job begins
    one.
    """
    starts = np.empty(length.shape, np.intp)
    _native.series_starts(length, starts)
    return starts
