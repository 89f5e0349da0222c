"""When the jobs of a fitted generator come, and whether they come in a light or a heavy time.

Submissions are even at first, with gaps of the trace's own kind; then they are bent to the hours of
the day, the days of the week, and two levels that drift: one from day to day, one from week to
week. Short gaps come in bursts: for some jobs in a row gaps have a part in common, the pace.

Each of the three (pace, day, week) also says whether the jobs that come then bring much work or
little. Where many jobs come at once, each brings less in most traces: that is what keeps the work
offered more even than the jobs, and waits as short as they are.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.traces.arrivals import HOUR
from berthline.traces.draws import Draws, Gap, Table, normal_quantile

if TYPE_CHECKING:
    from berthline.traces.fitted import Bursts, FittedGenerator, Level

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
"""How much of a gap's rank the gaps of a burst have in common."""

_GAP_RANKS = normal_quantile(GAP_LEVELS)
LONG_EPISODE = 2 * WEEK
"""Seconds. So long an episode has its load, and its share of heavy and light times, exactly."""

Indices = npt.NDArray[np.intp]  # (episodes, jobs)


def draw_submissions(fitted: FittedGenerator, draws: Draws, mean_gap: Gap) -> tuple[Table, Table]:
    """Return submission times, and how heavy the time is in which each job comes.

    The second is what to add to a normal number of a variance of 1 - `heavy_variance`; then it is
    near a standard normal one over all jobs of all episodes.
    """
    ranks, is_burst = _gap_ranks(fitted, draws)
    gaps = gap_at(ranks, fitted.gaps)
    gaps[:, 0] = 0.0
    times = np.cumsum(gaps, axis=1) * mean_gap
    start = int(fitted.hour_of_week)
    hours = (int(times[:, -1].max() / WEEK) + 3) * HOURS_OF_WEEK
    profile = hourly_rates(fitted.hourly, fitted.daily, fitted.hour_of_week, hours)
    hour = np.arange(hours) + start
    of_day, of_week = hour // HOURS_OF_DAY, hour // HOURS_OF_WEEK
    day_rate, day_work = _days(draws, fitted.day, int(of_day[-1]) + 1)
    week_rate = np.array([week.rate for week in fitted.weeks])
    week_work = np.array([week.work for week in fitted.weeks])
    first = (draws.uniform_of_episodes("first week", 1) * len(fitted.weeks)).astype(np.intp)[:, 0]
    edges = np.arange(hours + 1, dtype=np.float64) * HOUR
    heavy = burst_work(fitted.bursts)[is_burst.view(np.int8)]
    variance = heavy_variance(fitted)
    for row in range(len(times)):
        weeks = (of_week + first[row]) % len(fitted.weeks)
        rates = profile * day_rate[row][of_day] * week_rate[weeks]
        length = float(times[row, -1])
        used = min(round(length / HOUR), hours)
        if used * HOUR >= LONG_EPISODE:
            # Levels move jobs about, but all of them take as long to come as without.
            rates *= profile[:used].sum() / rates[:used].sum()
        times[row] = _bent(times[row], rates, edges)
        last = np.minimum((times[row] / HOUR).astype(np.intp), hours - 1)
        heavy[row] += fitted.day.work * day_work[row][of_day[last]] + week_work[weeks[last]]
        if used * HOUR >= LONG_EPISODE and (spread := float(heavy[row].std())) > 0:
            heavy[row] -= heavy[row].mean()
            heavy[row] *= math.sqrt(variance) / spread
    return np.rint(times, out=times), heavy


def _bent(times: Hours, rates: Hours, edges: Hours) -> Hours:
    passed = np.concatenate(([0.0], np.cumsum(rates))) * HOUR
    bent = np.interp(times, passed, edges)
    beyond = times > passed[-1]  # a slow time that outlasts the table: at its mean rate
    bent[beyond] = edges[-1] + (times[beyond] - passed[-1]) * (edges[-1] / passed[-1])
    return bent


def heavy_variance(fitted: FittedGenerator) -> float:
    """Return the variance over jobs of how heavy their times are."""
    rate = np.array([week.rate for week in fitted.weeks])
    work = np.array([week.work for week in fitted.weeks])
    return float((rate * work**2).sum() / rate.sum()) + fitted.day.work**2 + fitted.bursts.work**2


def burst_work(bursts: Bursts) -> npt.NDArray[np.float64]:
    """Return how heavy jobs outside bursts and in bursts are: of mean 0 over all jobs."""
    spread = math.sqrt(bursts.share * (1.0 - bursts.share))
    if spread == 0:
        return np.zeros(2)
    return np.array([bursts.share, bursts.share - 1.0]) * (bursts.work / spread)


def _gap_ranks(fitted: FittedGenerator, draws: Draws) -> tuple[Table, npt.NDArray[np.bool_]]:
    """Return each gap's place in their distribution, as a normal point, and what is in bursts.

    A share of jobs comes in bursts, and theirs are the shortest gaps, in a burst of a similar kind;
    the others come one by one.
    """
    bursts = fitted.bursts
    mean = bursts.jobs
    number = draws.normal("burst")
    length = np.floor(mean * np.exp(SPREAD_OF_BURSTS * (number - SPREAD_OF_BURSTS / 2)) + 1.0)
    # Of what begins at a job, this part is bursts.
    part = bursts.share / (bursts.share + (mean + 0.5) * (1.0 - bursts.share))
    is_burst = draws.uniform("burst begins") < part
    start = starts_of(np.where(is_burst, length, 1.0).astype(np.intp))
    is_burst = at_places(is_burst, start)
    common = at_places(draws.normal("pace"), start)
    own = draws.normal("submit")
    within = np.sqrt(PACE) * common + np.sqrt(1 - PACE) * own
    probability = np.where(
        is_burst,
        normal_share(within) * bursts.share,
        bursts.share + normal_share(own) * (1.0 - bursts.share),
    )
    return normal_quantile(probability), is_burst


def _days(draws: Draws, day: Level, count: int) -> tuple[Table, Table]:
    """Return the rate of each of `count` days, and how heavy it is: standard normal over jobs."""
    level = normal_quantile(draws.uniform_of_episodes("day", count))
    work = normal_quantile(draws.uniform_of_episodes("day work", count))
    rate = np.exp(day.sigma * (level - day.sigma / 2))
    # Days with many jobs count more: over jobs, the level's mean is sigma.
    work = day.coupling * (level - day.sigma) + np.sqrt(1 - day.coupling**2) * work
    return rate, work


def gap_at(ranks: npt.NDArray[np.float64], quantiles: list[float]) -> npt.NDArray[np.float64]:
    """Return the gaps at some normal ranks, between the quantiles at GAP_LEVELS."""
    return np.interp(ranks, _GAP_RANKS, quantiles)


def hourly_rates(
    hourly: list[float], daily: list[float], hour_of_week: float, num_hours: int
) -> npt.NDArray[np.float64]:
    """Return the rate in each hour from time 0, as a multiple of its mean over a week."""
    week = np.outer(daily, hourly).ravel()
    return np.asarray(np.resize(np.roll(week, -int(hour_of_week)), num_hours) / week.mean())


def last_start(is_start: npt.NDArray[np.bool_]) -> Indices:
    """Return for each place of a row the last start up to it; the first place is one."""
    places = np.where(is_start, np.arange(is_start.shape[1]), 0)
    return np.maximum.accumulate(places, axis=1)


def at_places(table: npt.NDArray[Any], places: Indices) -> npt.NDArray[Any]:
    """Return the values of each row at these places."""
    return np.take_along_axis(table, places, axis=1)


_SHARES = np.linspace(-6.0, 6.0, 2401)
_NORMAL = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in _SHARES.tolist()])


def normal_share(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of normal numbers below each point."""
    return np.asarray(np.interp(points, _SHARES, _NORMAL))


def starts_of(length: Indices) -> Indices:
    """Return for each job the job with which its series begins.

    Every job has the length of the series that begins there, if one does. The first begins one;
    which others do is found by jumps of 1, 2, 4, ... series.
    """
    rows, jobs = length.shape
    # One more place than jobs: where series end that are longer than what is left.
    jump = np.minimum(np.arange(jobs) + length, jobs)
    jump = np.concatenate((jump, np.full((rows, 1), jobs)), axis=1)
    begins = np.zeros((rows, jobs + 1), np.bool_)
    begins[:, 0] = True
    while (jump[:, 0] < jobs).any():
        row, place = np.nonzero(begins)
        begins[row, jump[row, place]] = True
        jump = at_places(jump, jump)
    return last_start(begins[:, :-1])
