"""What a fitted generator knows about submissions: the cycle, the drift, and the gaps."""

from __future__ import annotations

import contextlib
import datetime as dt
import zoneinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.traces.arrivals import HOUR
from berthline.traces.draws import Lattice, normal_quantile
from berthline.traces.fitted_draws import (
    BETWEEN,
    GAP_LEVELS,
    HOURS_OF_WEEK,
    LONG,
    LONG_SERIES,
    PACE_ENDS,
    SHORT,
    WEEK,
    gap_at,
    hourly_rates,
)

if TYPE_CHECKING:
    from berthline.model.workload import Workload

_LOWEST_RATE = 0.02  # of the mean; an hour without a job in the trace may have one in others
_DEVIATIONS_PER_MEDIAN = 1.4826  # of a normal distribution
_HOURS_FOR_DAILY, _HOURS_FOR_WEEKLY, _WEEKS_FOR_DRIFT = 48, 336, 4


def fit_arrivals(workload: Workload) -> dict[str, Any]:
    """Return the fields of a FittedGenerator that say when jobs are submitted."""
    submit = workload.submit - workload.submit[0]
    start = local_hour_of_week(workload)
    per_hour = np.bincount((submit / HOUR).astype(np.intp))
    hour_of_week = (np.arange(len(per_hour)) + int(start)) % HOURS_OF_WEEK
    hourly = _profile(per_hour, hour_of_week % 24, 24, _HOURS_FOR_DAILY)
    daily = _profile(per_hour, hour_of_week // 24, 7, _HOURS_FOR_WEEKLY)
    rates = hourly_rates(hourly, daily, start, len(per_hour))
    levels = _weekly_levels(per_hour, rates)
    steady = _without_cycle(submit, rates * levels)
    gaps = np.diff(steady)
    gaps /= gaps.mean()
    is_first, length = series_of(workload.user)
    within = np.where(length < LONG_SERIES, SHORT, LONG)
    kind = np.where(is_first, BETWEEN, within)[1:]
    quantiles = [_gap_quantiles(gaps, kind == number) for number in (BETWEEN, SHORT, LONG)]
    even = Lattice().normal("gap")[0]
    mean = sum(
        float((kind == number).mean()) * float(gap_at(even, values.tolist()).mean())
        for number, values in enumerate(quantiles)
    )
    sigma, correlation = _drift(levels[::HOURS_OF_WEEK], per_hour, gaps)
    return {
        "hour_of_week": float(start),
        "hourly": hourly,
        "daily": daily,
        "week_sigma": sigma,
        "week_correlation": correlation,
        "pace": _pace(gaps, kind),
        "gaps": tuple((values / mean).tolist() for values in quantiles),
    }


def local_hour_of_week(workload: Workload) -> float:
    """Return the local time of time 0 in hours after Monday 00:00, or 0 if it is not known."""
    origin = workload.provenance.get("origin_unix_time")
    if origin is None:
        return 0.0
    zone: dt.tzinfo = dt.UTC  # a zone nobody knows shifts the hours, not the shape
    with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        zone = zoneinfo.ZoneInfo(str(workload.provenance.get("time_zone")))
    moment = dt.datetime.fromtimestamp(float(origin) + float(workload.submit[0]), zone)
    return moment.weekday() * 24 + moment.hour + moment.minute / 60


def series_of(
    user: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Return for each job whether it begins a series of one user's jobs, and how long that is."""
    is_first = np.ones(len(user), np.bool_)
    is_first[1:] = user[1:] != user[:-1]
    number = np.cumsum(is_first) - 1
    return is_first, np.bincount(number)[number]


def _profile(
    per_hour: npt.NDArray[np.intp], slot: npt.NDArray[np.intp], slots: int, fewest_hours: int
) -> list[float]:
    """Return the rate in each slot as a multiple of the mean; all 1 if there is too little."""
    if len(per_hour) < fewest_hours:
        return [1.0] * slots
    jobs = np.bincount(slot, weights=per_hour, minlength=slots)
    rates = jobs / np.bincount(slot, minlength=slots)
    rates = np.maximum(rates / rates.mean(), _LOWEST_RATE)
    return list((rates / rates.mean()).tolist())


def _weekly_levels(
    per_hour: npt.NDArray[np.intp], rates: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return, for each hour, the level of its week: jobs as a multiple of what the cycle expects.

    A last week of less than half joins the one before.
    """
    week = np.arange(len(per_hour)) // HOURS_OF_WEEK
    last = len(per_hour) % HOURS_OF_WEEK
    if 0 < last < HOURS_OF_WEEK // 2 and week[-1] > 0:
        week[-last:] -= 1
    jobs = np.bincount(week, weights=per_hour)
    expected = np.bincount(week, weights=rates)
    levels = jobs / expected * (expected.sum() / jobs.sum())
    return np.asarray(np.maximum(levels, _LOWEST_RATE)[week])


def _without_cycle(
    submit: npt.NDArray[np.float64], rates: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return submission times on a clock that runs faster where the rate is high."""
    passed = np.concatenate(([0.0], np.cumsum(rates)))
    return np.interp(submit / HOUR, np.arange(len(passed), dtype=np.float64), passed)


def _gap_quantiles(
    gaps: npt.NDArray[np.float64], here: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    return np.asarray(np.quantile(gaps[here] if here.any() else gaps, GAP_LEVELS))


def _pace(gaps: npt.NDArray[np.float64], kind: npt.NDArray[np.int64]) -> float:
    """Return the correlation of successive gaps of a series, in normal ranks."""
    ranks = np.zeros(len(gaps))
    for number in (SHORT, LONG):
        here = np.flatnonzero(kind == number)
        ranks[here] = normal_ranks(gaps[here])
    both = (kind[1:] != BETWEEN) & (kind[:-1] != BETWEEN)
    if not both.any():
        return 0.0
    return float(np.clip((ranks[1:] * ranks[:-1])[both].mean() / (1 - PACE_ENDS), 0.0, 0.98))


def normal_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the values' ranks as points of the normal distribution."""
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / max(len(values), 1)
    return normal_quantile(places)


def _drift(
    levels: npt.NDArray[np.float64],
    per_hour: npt.NDArray[np.intp],
    gaps: npt.NDArray[np.float64],
) -> tuple[float, float]:
    """Return the spread of the weekly level's logarithm, and its correlation from week to week."""
    if len(levels) < _WEEKS_FOR_DRIFT:
        return 0.0, 0.0
    log = np.log(levels)
    log -= np.median(log)
    # By the median deviation: weeks in which a log begins, ends or pauses are no drift.
    deviation = _DEVIATIONS_PER_MEDIAN * float(np.median(np.abs(log)))
    log = np.clip(log, -3 * deviation, 3 * deviation)
    variance = deviation**2
    # Gaps alone make weekly counts vary; the drift is what is left.
    by_gaps = float(gaps.var()) / (per_hour.sum() / (len(per_hour) * HOUR / WEEK))
    drift = max(0.0, variance - by_gaps)
    squares = float((log**2).mean())
    correlation = float((log[1:] * log[:-1]).mean()) / squares if squares > 0 else 0.0
    return float(np.sqrt(drift)), float(np.clip(correlation, 0.0, 0.95))
