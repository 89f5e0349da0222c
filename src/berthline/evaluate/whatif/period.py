"""Which part of a log `whatif` is about: `begin` and `end`, `week`, or `last`, on its clock."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import re
import zoneinfo
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.time_text import FORM, seconds_in

if TYPE_CHECKING:
    from berthline.model.workload import Workload

DAY = 86_400.0
WEEK = 7 * DAY
_DATES = "a date such as 2024-03-04 or 2024-03-04T08:00, or a time since the log began such as 3d"


@dataclasses.dataclass(frozen=True)
class LogClock:
    """The clock of a log, whose zero is its first submission.

    Attributes:
        origin: Unix time of that zero, or, if `zone` is None, its local time as seconds since 1970
            as if in UTC; None = not known.
        zone: the time zone; None = not known, and `origin` is local time.
    """

    origin: float | None
    zone: str | None

    @classmethod
    def of(cls, workload: Workload) -> LogClock:
        """Return the clock of a log."""
        provenance = workload.provenance
        if provenance.get("origin_local_time") is not None:
            return cls(float(provenance["origin_local_time"]), None)
        unix, zone = provenance.get("origin_unix_time"), provenance.get("time_zone")
        return cls(None if unix is None else float(unix), zone or ("UTC" if unix else None))

    def read(self, name: str, text: str) -> float:
        """Return the time in the log, in seconds, of a date or of a time since the log began.

        Raises:
            ConfigError: the text is neither, or the log has no dates.
        """
        # Digits alone may be a date: 20240304.
        span = seconds_in(text) if text[-1:].isalpha() else None
        if span is not None:
            return span
        try:
            date = dt.datetime.fromisoformat(text)
        except ValueError:
            raise ConfigError(f"`{name}` is {text!r}", expected=_DATES) from None
        if self.origin is None:
            raise ConfigError(
                f"`{name}` is a date, but the log has no dates",
                expected="a time since the log began, such as 3d or 36h",
            )
        if date.tzinfo is None:
            date = date.replace(tzinfo=self._zone())
        return date.timestamp() - self.origin

    def show(self, time: float) -> str:
        """Return a time of the log as text."""
        if self.origin is None:
            return f"day {time / DAY:.3g}"
        moment = dt.datetime.fromtimestamp(round(self.origin + time), self._zone())
        return moment.strftime("%Y-%m-%d %H:%M")

    def _zone(self) -> dt.tzinfo:
        offset = re.fullmatch(r"UTC([-+])(\d\d):?(\d\d)", self.zone or "")
        if offset:
            minutes = int(offset[2]) * 60 + int(offset[3])
            return dt.timezone(dt.timedelta(minutes=-minutes if offset[1] == "-" else minutes))
        try:
            return zoneinfo.ZoneInfo(self.zone) if self.zone else dt.UTC
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            return dt.UTC  # SWF headers may contain any zone name


def read_period(
    clock: LogClock,
    length: float,
    *,
    begin: float | str | None,
    end: float | str | None,
    week: int | None,
    last: str | None,
) -> tuple[float, float]:
    """Return the period, in seconds of the log; the last 7 days by default.

    Args:
        clock: of the log.
        length: time of its last submission.
        begin: its start, in seconds or as text; see `LogClock.read`.
        end: its end.
        week: the number of a week; 1 is the first 7 days.
        last: the length of the last part of the log, such as `7d`.

    Raises:
        ConfigError: the parameters conflict, are invalid, or name a period without jobs.
    """
    by_dates = begin is not None or end is not None
    if by_dates + (week is not None) + (last is not None) > 1:
        raise ConfigError(
            "the period is given twice", expected="`begin` and `end`, or `week`, or `last`"
        )
    after_all = length + 1.0
    if by_dates:
        low = 0.0 if begin is None else _time(clock, "begin", begin)
        high = low + WEEK if end is None else _time(clock, "end", end)
    elif week is not None:
        if not 1 <= week <= length / WEEK + 1:
            raise ConfigError(f"`week` is {week}", expected=f"1 to {math.ceil(after_all / WEEK)}")
        low, high = (week - 1) * WEEK, week * WEEK
    else:
        span = seconds_in(last or "7d")
        if span is None:
            raise ConfigError(f"`last` is {last!r}", expected=FORM)
        low, high = after_all - span, after_all
    if not low < high:
        raise ConfigError(
            "the period ends before it begins",
            expected="`end` later than `begin`",
            where=f"{clock.show(low)} to {clock.show(high)}",
        )
    low, high = max(low, 0.0), min(high, after_all)
    if not low < high:
        raise ConfigError(
            "no job of the log is in this period",
            expected=f"a time between {clock.show(0.0)} and {clock.show(length)}",
        )
    return low, high


def _time(clock: LogClock, name: str, given: float | str) -> float:
    return clock.read(name, given) if isinstance(given, str) else float(given)
