"""The part of a fitted generator about submissions: the cycle, the drift, and the gaps."""

from __future__ import annotations

import contextlib
import datetime as dt
import zoneinfo
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from berthline.traces.generators.arrivals import HOUR
from berthline.traces.generators.draws import Lattice, normal_quantile
from berthline.traces.generators.fitted.fitted_arrivals import (
    GAP_LEVELS,
    HOURS_OF_DAY,
    HOURS_OF_WEEK,
    gap_at,
    hourly_rates,
)
from berthline.traces.generators.fitted.fitted_generator import Bursts, Level, Week

if TYPE_CHECKING:
    from berthline.model.workload import Workload

_LOWEST_RATE = 0.02  # of the mean; an hour without jobs in the trace may have jobs elsewhere
_HOURS_FOR_DAILY, _HOURS_FOR_WEEKLY = 48, 336


def fit_arrivals(workload: Workload) -> dict[str, Any]:
    """Return the fields of a FittedGenerator that determine when jobs are submitted."""
    submit = workload.submit - workload.submit[0]
    start = local_hour_of_week(workload)
    per_hour = np.bincount((submit / HOUR).astype(np.intp))
    hour_of_week = (np.arange(len(per_hour)) + int(start)) % HOURS_OF_WEEK
    hourly = _profile(per_hour, hour_of_week % 24, 24, _HOURS_FOR_DAILY)
    daily = _profile(per_hour, hour_of_week // 24, 7, _HOURS_FOR_WEEKLY)
    rates = hourly_rates(hourly, daily, start, len(per_hour))
    week = (np.arange(len(per_hour)) + int(start)) // HOURS_OF_WEEK
    rates = rates * _levels(per_hour, rates, week)
    day = (np.arange(len(per_hour)) + int(start)) // HOURS_OF_DAY
    gaps = np.diff(_without_cycle(submit, rates * _levels(per_hour, rates, day)))
    gaps /= gaps.mean()
    quantiles = np.quantile(gaps, GAP_LEVELS)
    mean = float(gap_at(Lattice().normal("gap")[0], quantiles.tolist()).mean())
    return {
        "hour_of_week": float(start),
        "hourly": hourly,
        "daily": daily,
        "day": Level(0.3, 0.1, 0.0),
        "weeks": [Week(1.0, 0.0)],
        "bursts": Bursts(0.7, 10.0, 0.0),
        "gaps": (quantiles / mean).tolist(),
    }


def local_hour_of_week(workload: Workload) -> float:
    """Return the local time of time 0 in hours after Monday 00:00, or 0 if it is not known."""
    origin = workload.provenance.get("origin_unix_time")
    if origin is None:
        return 0.0
    zone: dt.tzinfo = dt.UTC  # an unknown zone shifts the hours, not the shape
    with contextlib.suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        zone = zoneinfo.ZoneInfo(str(workload.provenance.get("time_zone")))
    moment = dt.datetime.fromtimestamp(float(origin) + float(workload.submit[0]), zone)
    return moment.weekday() * 24 + moment.hour + moment.minute / 60


def series_of(
    user: npt.NDArray[np.int32],
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Return for each job whether it begins a series of one user's jobs, and the series' length."""
    is_first = np.ones(len(user), np.bool_)
    is_first[1:] = user[1:] != user[:-1]
    number = np.cumsum(is_first) - 1
    return is_first, np.bincount(number)[number]


def _profile(
    per_hour: npt.NDArray[np.intp], slot: npt.NDArray[np.intp], slots: int, fewest_hours: int
) -> list[float]:
    """Return the rate in each slot as a multiple of the mean; all 1 if there are too few hours."""
    if len(per_hour) < fewest_hours:
        return [1.0] * slots
    jobs = np.bincount(slot, weights=per_hour, minlength=slots)
    rates = jobs / np.bincount(slot, minlength=slots)
    rates = np.maximum(rates / rates.mean(), _LOWEST_RATE)
    return list((rates / rates.mean()).tolist())


def _levels(
    per_hour: npt.NDArray[np.intp],
    rates: npt.NDArray[np.float64],
    group: npt.NDArray[np.intp],
) -> npt.NDArray[np.float64]:
    """Return, for each hour, the level of its group of hours: jobs / jobs expected by the rates."""
    group = group - group[0]
    jobs = np.bincount(group, weights=per_hour)
    expected = np.bincount(group, weights=rates)
    levels = jobs / expected * (expected.sum() / jobs.sum())
    return np.asarray(np.maximum(levels, _LOWEST_RATE)[group])


def _without_cycle(
    submit: npt.NDArray[np.float64], rates: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return submission times on a clock that runs faster where the rate is high."""
    passed = np.concatenate(([0.0], np.cumsum(rates)))
    return np.interp(submit / HOUR, np.arange(len(passed), dtype=np.float64), passed)


def normal_ranks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the ranks of the values as normal quantiles."""
    places = np.empty(len(values))
    places[np.argsort(values, kind="stable")] = (np.arange(len(values)) + 0.5) / max(len(values), 1)
    return normal_quantile(places)
