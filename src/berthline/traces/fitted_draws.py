"""How a fitted generator draws its jobs: users, then sizes and run times, then submissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.traces.arrivals import HOUR
from berthline.traces.draws import Draws, Table, normal_quantile
from berthline.traces.gpu_mix import limits_of

if TYPE_CHECKING:
    from berthline.traces.episodes import Columns
    from berthline.traces.fitted import FittedGenerator

HOURS_OF_WEEK = 168
WEEK = HOURS_OF_WEEK * HOUR
JITTER = 0.15
"""Standard deviation of a repeated run time about the one it repeats, in normal ranks."""

GAP_LEVELS = np.concatenate(
    (np.linspace(0.0, 0.95, 96), 1.0 - np.geomspace(0.045, 1e-5, 40), [1.0])
)
"""Probabilities at which quantiles of gaps are kept: dense where gaps are long."""

_GAP_RANKS = normal_quantile(GAP_LEVELS)

SERIES_LEVELS = np.concatenate(
    (np.linspace(0.0, 0.9, 19), 1.0 - np.geomspace(0.07, 0.002, 8), [1.0])
)
"""Probabilities at which quantiles of the length of series are kept."""

BETWEEN, SHORT, LONG = range(3)
LONG_SERIES = 10
"""Jobs. Gaps within series of this length are drawn apart: they are the shortest."""

PACE_ENDS = 0.02
"""Probability, at each job of a series, that the pace of submission changes."""

_LONGEST_RUN = 1e9
_HOURS_FOR_DRIFT = 2 * HOURS_OF_WEEK

Indices = npt.NDArray[np.intp]  # (episodes, jobs)


def draw_columns(fitted: FittedGenerator, draws: Draws, mean_gap: float) -> Columns:
    """Return the columns of some episodes."""
    habit, user, length, series = draw_users(fitted, draws)
    size_class, ranks, steady = draw_ranks(fitted, draws, habit, user)
    run = _run_times(fitted, size_class, ranks)
    return {
        "submit": _submissions(fitted, draws, length, series, mean_gap),
        "run": run,
        "gpus": _gpus(fitted, draws, size_class, steady),
        "estimate": _stated(fitted, draws, run, steady),
        "user": user.astype(np.int32),
    }


def draw_users(fitted: FittedGenerator, draws: Draws) -> tuple[Indices, Indices, Table, Indices]:
    """Return each job's habits and user, and the length and the number of its series."""
    shares = np.array([person.share for person in fitted.users])
    counts = np.array([person.count for person in fitted.users])
    lengths = np.array([person.series for person in fitted.users])
    first = np.concatenate(([0], np.cumsum(counts)[:-1]))
    # What is drawn are series; a user's share is one of jobs.
    even = (np.arange(4096) + 0.5) / 4096
    mean = np.array([_series(np.interp(even, SERIES_LEVELS, row)).mean() for row in lengths])
    of_series = shares / mean / (shares / mean).sum()
    # A series ends when another user comes, so a user drawn twice in a row is drawn once more;
    # the weights make up for what that costs users with many series.
    limits, _ = limits_of(of_series / np.maximum(1.0 - of_series / counts, 0.05))
    habit = np.searchsorted(limits, draws.uniform("user"), side="right")
    again = np.searchsorted(limits, draws.uniform("user again"), side="right")
    is_twice = (habit[:, 1:] == habit[:, :-1]) & (counts[habit[:, 1:]] == 1)
    habit[:, 1:] = np.where(is_twice, again[:, 1:], habit[:, 1:])
    user = first[habit] + (draws.uniform("user of many") * counts[habit]).astype(np.intp)
    length = _series(_interpolated(lengths, habit, draws.uniform("series")))
    # There are at least as many draws as series: each job draws one, and only some are needed.
    ends = np.cumsum(length, axis=1).astype(np.intp)
    is_first = np.zeros(user.shape, np.bool_)
    is_first[:, 0] = True
    rows, columns = np.nonzero(ends < draws.jobs)
    is_first[rows, ends[rows, columns]] = True
    series = np.cumsum(is_first, axis=1) - 1
    return _at(habit, series), _at(user, series), _at(length, series), series


def _series(length: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(1.0, np.rint(length))


def _interpolated(tables: npt.NDArray[np.float64], which: Indices, u: Table) -> Table:
    """Return quantiles at `u` of one of several distributions for each place."""
    place = np.clip(np.searchsorted(SERIES_LEVELS, u, side="right") - 1, 0, len(SERIES_LEVELS) - 2)
    low, high = SERIES_LEVELS[place], SERIES_LEVELS[place + 1]
    start, end = tables[which, place], tables[which, place + 1]
    return np.asarray(start + (end - start) * (u - low) / (high - low))


def draw_ranks(
    fitted: FittedGenerator, draws: Draws, habit: Indices, user: Indices
) -> tuple[Indices, Table, Indices]:
    """Return each job's size class, its run time's normal rank, and the job whose it repeats."""
    mix = np.zeros((len(fitted.users), len(fitted.classes)))
    for number, person in enumerate(fitted.users):
        for which, share in person.classes.items():
            mix[number, which] = share
    limits = np.cumsum(mix / mix.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    u = draws.uniform("gpus")
    size_class = np.zeros(u.shape, np.intp)
    for column in limits.T:
        size_class += u >= column[habit]
    # In the order of (user, job), what a user repeats comes just before.
    order = np.argsort(user, axis=1, kind="stable")
    back = np.argsort(order, axis=1, kind="stable")
    in_order = _at(user, order)
    is_first = np.ones(user.shape, np.bool_)
    is_first[:, 1:] = in_order[:, 1:] != in_order[:, :-1]
    chance = _at(draws.uniform("repeat"), order)
    size_origin = _at(_at(order, _last(is_first | (chance >= fitted.repeat_size))), back)
    steady = _at(_at(order, _last(is_first | (chance >= fitted.repeat_run))), back)
    own = np.sqrt(1 - JITTER**2) * _at(draws.normal("run"), steady)
    own += JITTER * draws.normal("jitter")
    level = np.array([person.level for person in fitted.users])
    spread = np.array([person.spread for person in fitted.users])
    return _at(size_class, size_origin), level[habit] + spread[habit] * own, steady


def _run_times(fitted: FittedGenerator, size_class: Indices, ranks: Table) -> Table:
    run = np.empty(ranks.shape)
    for number, kind in enumerate(fitted.classes):
        here = size_class == number
        run[here] = np.exp(np.interp(ranks[here], kind.ranks, np.log(kind.run)))
    return np.clip(np.rint(run), 1.0, _LONGEST_RUN)


def _gpus(
    fitted: FittedGenerator, draws: Draws, size_class: Indices, steady: Indices
) -> npt.NDArray[np.int32]:
    u = _at(draws.uniform("size"), steady)
    gpus = np.empty(u.shape, np.int32)
    for number, kind in enumerate(fitted.classes):
        here = size_class == number
        limits = limits_of(np.array(kind.shares))[0]
        gpus[here] = np.array(kind.sizes)[np.searchsorted(limits, u[here], side="right")]
    return gpus


def _stated(fitted: FittedGenerator, draws: Draws, run: Table, steady: Indices) -> Table:
    u = _at(draws.uniform("estimate"), steady)
    bounds = np.array([entry.run_up_to for entry in fitted.limits[:-1]])
    which = np.searchsorted(bounds, run, side="left")
    estimate = np.full(run.shape, np.nan)
    for number, entry in enumerate(fitted.limits):
        here = (which == number) & (u >= entry.missing)
        if entry.values and here.any():
            values = np.array(entry.values)
            place = (u[here] - entry.missing) / (1 - entry.missing) * len(values)
            estimate[here] = values[np.minimum(place.astype(np.intp), len(values) - 1)]
    return estimate


def _submissions(
    fitted: FittedGenerator, draws: Draws, length: Table, series: Indices, mean_gap: float
) -> Table:
    is_first = np.ones(series.shape, np.bool_)
    is_first[:, 1:] = series[:, 1:] != series[:, :-1]
    kind = np.where(is_first, BETWEEN, np.where(length < LONG_SERIES, SHORT, LONG))
    # Whoever submits quickly goes on quickly, for a while: such gaps have a part in common.
    common = np.where(is_first, 0.0, np.sqrt(fitted.pace))
    renewed = _last(is_first | (draws.uniform("pace ends") < PACE_ENDS))
    ranks = common * _at(draws.normal("pace"), renewed)
    ranks += np.sqrt(1 - common**2) * draws.normal("submit")
    gaps = np.empty_like(ranks)
    for number, quantiles in enumerate(fitted.gaps):
        here = kind == number
        gaps[here] = gap_at(ranks[here], quantiles)
    gaps[:, 0] = 0.0
    times = np.cumsum(gaps, axis=1) * mean_gap
    weeks = int(times[:, -1].max() / WEEK) + 3
    profile = hourly_rates(fitted.hourly, fitted.daily, fitted.hour_of_week, weeks * HOURS_OF_WEEK)
    edges = np.arange(len(profile) + 1) * HOUR
    levels = _weekly_levels(fitted, draws, weeks)
    for row, level in enumerate(np.repeat(levels, HOURS_OF_WEEK, axis=1)):
        rates = profile.copy()
        used = round(float(times[row, -1]) / HOUR)
        if used >= _HOURS_FOR_DRIFT:
            # The drift moves jobs about, but all of them take as long to come as without it.
            rates[:used] *= level[:used]
            rates[:used] *= float(times[row, -1]) / HOUR / rates[:used].sum()
        passed = np.concatenate(([0.0], np.cumsum(rates))) * HOUR
        times[row] = np.interp(times[row], passed, edges)
    return np.rint(times, out=times)


def gap_at(ranks: npt.NDArray[np.float64], quantiles: list[float]) -> npt.NDArray[np.float64]:
    """Return the gaps at some normal ranks, between the quantiles at GAP_LEVELS."""
    return np.interp(ranks, _GAP_RANKS, quantiles)


def hourly_rates(
    hourly: list[float], daily: list[float], hour_of_week: float, num_hours: int
) -> npt.NDArray[np.float64]:
    """Return the rate in each hour from time 0, as a multiple of its mean over a week."""
    week = np.outer(daily, hourly).ravel()
    return np.asarray(np.resize(np.roll(week, -int(hour_of_week)), num_hours) / week.mean())


def _weekly_levels(fitted: FittedGenerator, draws: Draws, weeks: int) -> Table:
    fresh = normal_quantile(draws.uniform_of_episodes("week", weeks))
    keep = fitted.week_correlation
    for week in range(1, weeks):
        fresh[:, week] = keep * fresh[:, week - 1] + np.sqrt(1 - keep**2) * fresh[:, week]
    return np.asarray(np.exp(fitted.week_sigma * fresh))


def _last(is_start: npt.NDArray[np.bool_]) -> Indices:
    """Return for each place of a row the last start up to it; the first place is one."""
    places = np.where(is_start, np.arange(is_start.shape[1]), 0)
    return np.maximum.accumulate(places, axis=1)


def _at(table: npt.NDArray[Any], places: Indices) -> npt.NDArray[Any]:
    """Return the values of each row at these places."""
    return np.take_along_axis(table, places, axis=1)
