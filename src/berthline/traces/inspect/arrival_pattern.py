"""When jobs are submitted, in the local time of the cluster if the trace contains it."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.model.workload import Workload

DAY = 86_400.0
HOUR = 3_600.0
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

_OFFSET = re.compile(r"(?:UTC)?([+-])(\d{2}):?(\d{2})")
_MONDAY = 4 * DAY  # 1970-01-01 was a Thursday, so this is the first Monday


class LocalClock(NamedTuple):
    """Submissions in local wall-clock time.

    Attributes:
        seconds: since 1970 in local time; if the trace has no dates, since the first job.
        has_dates: whether the trace has dates.
        zone: the time zone; empty = UTC, or none because there are no dates.
    """

    seconds: npt.NDArray[np.float64]  # (num_jobs,)
    has_dates: bool
    zone: str

    def date(self, job: int) -> str:
        """Return when a job was submitted, such as `2017-10-03 13:05:59`; empty without dates."""
        if not self.has_dates:
            return ""
        try:
            moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=float(self.seconds[job]))
        except OverflowError:  # after the year 9999: a number, but a damaged time
            return ""
        return moment.isoformat(" ", timespec="seconds")


def local_clock(workload: Workload) -> LocalClock:
    """Return the submissions in the cluster's local time, including daylight saving."""
    origin = workload.provenance.get("origin_unix_time")
    if origin is None:
        return LocalClock(workload.submit, has_dates=False, zone="")
    unix = origin + workload.submit
    zone = workload.provenance.get("time_zone") or ""
    if fixed := _OFFSET.fullmatch(zone):
        sign, hours, minutes = fixed.groups()
        offset = (int(hours) * 3600 + int(minutes) * 60) * (-1 if sign == "-" else 1)
        return LocalClock(unix + offset, has_dates=True, zone=zone)
    if zone and zone != "UTC":
        import polars as pl

        moments = pl.from_epoch(pl.Series(np.floor(unix).astype(np.int64)), time_unit="s")
        try:
            # Polars has the rules of all zones built in; Python needs them from the system.
            local = moments.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        except pl.exceptions.PolarsError:
            return LocalClock(unix, has_dates=True, zone="")  # unknown zone: UTC
        wall = local.dt.replace_time_zone(None).dt.epoch("s").to_numpy().astype(np.float64)
        return LocalClock(wall, has_dates=True, zone=zone)
    return LocalClock(unix, has_dates=True, zone="")


def by_hour_of_week(clock: LocalClock) -> npt.NDArray[np.int64]:
    """Return how many jobs are submitted in each hour of the week, Monday first.

    Without dates, the first day of the trace counts as Monday.
    """
    since = clock.seconds - (_MONDAY if clock.has_dates else 0.0)
    hour = np.floor(since / HOUR).astype(np.int64) % (7 * 24)
    counts: npt.NDArray[np.int64] = np.bincount(hour, minlength=7 * 24).reshape(7, 24)
    return counts


def by_day(clock: LocalClock) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the days with submissions, counted from the clock's zero, and the jobs on each."""
    # Days without jobs are left out: one damaged date must not create millions of them.
    days, counts = np.unique(np.floor(clock.seconds / DAY).astype(np.int64), return_counts=True)
    return days, counts
