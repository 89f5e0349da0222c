"""Dates as text, converted to seconds since 1970, from any time zone."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import numpy as np

from berthline.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

ZONE_OPTION = {
    "time_zone": "zone of the cluster's clock, such as Europe/Berlin; default: not known"
}
"""The option of formats whose dates are local time in a zone that is not in the file."""

_MICROSECONDS = 1e6  # in a second
_ZONE_FORMS = ("%#z", "%:z", "%z")
_OFFSET = re.compile(r"(?P<sign>[-+])(?P<hours>\d\d):?(?P<minutes>\d\d)$")
_SLOT = 900.0  # seconds; since 1973 clocks have changed only at quarters of an hour, in all zones
_SLOTS_SINCE = 94_694_400 / _SLOT  # the beginning of 1973


def unix_seconds(text: pl.Series, pattern: str, zone: str | None = None) -> pl.Series:
    """Return dates as seconds since 1970; null if the text is missing or not such a date.

    A time in the hour that clocks repeat in autumn is interpreted as its first occurrence; a time
    that they skip in spring is interpreted with the offset before the change.

    Args:
        text: the dates.
        pattern: their format, in strftime notation.
        zone: the time zone of the dates, such as `"Asia/Shanghai"`; None = the dates contain it
            (`%z`), or it is not known and they are read as UTC.
    """
    seconds = clock_seconds(text, pattern)
    return seconds if zone is None or has_zone(pattern) else from_local(seconds, zone)


def has_zone(pattern: str) -> bool:
    """Return whether dates of this format contain their time zone."""
    return pattern.endswith(_ZONE_FORMS)


def clock_seconds(text: pl.Series, pattern: str) -> pl.Series:
    """Return dates as seconds since 1970; dates without a zone are read as UTC.

    Args:
        text: the dates.
        pattern: their format, in strftime notation.
    """
    moments, seconds_east = _moments(text, pattern)
    if moments.dtype.time_zone:  # type: ignore[attr-defined]  # a Datetime by construction
        moments = moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    seconds = _seconds(moments.to_physical())
    return seconds - seconds_east if seconds_east else seconds


def _moments(text: pl.Series, pattern: str) -> tuple[pl.Series, float]:
    """Return dates without a zone, and the seconds to subtract for UTC; or dates with one, and 0.

    Polars reads plain dates many times as fast as dates with a fraction of a second or a zone.
    Usually there are no fractions, and the zone is the same in all rows.
    """
    plain = pattern.replace("%.f", "")
    base, zoned = next(
        ((plain.removesuffix(form), form) for form in _ZONE_FORMS if plain.endswith(form)),
        (plain, ""),
    )
    ending, seconds_east = _common_ending(text) if zoned else ("", 0.0)
    if ending or not zoned:
        bare = text.str.strip_suffix(ending) if ending else text
        moments = bare.str.to_datetime(base, strict=False, time_unit="us", cache=False)
        if moments.null_count() == text.null_count():
            return moments, seconds_east
    return text.str.to_datetime(pattern, strict=False, time_unit="us"), 0.0


def _common_ending(text: pl.Series) -> tuple[str, float]:
    """Return the common zone at the end of all texts, such as `+08:00`, and its seconds; or 0."""
    first = text.drop_nulls().head(1)
    match = _OFFSET.search(first.item()) if len(first) else None
    if match is None or not text.str.ends_with(match[0]).all():
        return "", 0.0
    seconds = 3600.0 * int(match["hours"]) + 60.0 * int(match["minutes"])
    return match[0], -seconds if match["sign"] == "-" else seconds


def from_local(local: pl.Series, zone: str) -> pl.Series:
    """Return local times in seconds as seconds since 1970; see `unix_seconds`.

    Args:
        local: as `clock_seconds` returns them.
        zone: the time zone of the local times.
    """
    import polars as pl

    values = local.to_numpy()  # NaN for null
    slots = np.floor(values / _SLOT)
    first, last = np.fmin.reduce(slots, initial=np.inf), np.fmax.reduce(slots, initial=-np.inf)
    if not (_SLOTS_SINCE <= first <= last < first + len(local)):
        return _offsets(local, zone) + local
    # There are fewer quarters of an hour than rows, and clocks change only between them.
    starts = pl.Series(np.arange(first, last + 1) * _SLOT)
    offsets = _offsets(starts, zone).to_numpy()
    if local.null_count():
        slots[np.isnan(slots)] = first
    slots -= first
    seconds = pl.Series(values + offsets[slots.astype(np.int64)])
    return seconds if local.null_count() + np.isnan(offsets).sum() == 0 else seconds.fill_nan(None)


def _offsets(local: pl.Series, zone: str) -> pl.Series:
    """Return the seconds to add to local times to get UTC."""
    import polars as pl

    moments = (local * _MICROSECONDS).round().cast(pl.Int64).cast(pl.Datetime("us"))
    utc = _to_utc(moments, zone)
    if utc.null_count() > moments.null_count():
        hour = dt.timedelta(hours=1)
        utc = utc.zip_with(utc.is_not_null(), _to_utc(moments - hour, zone) + hour)
    return _seconds((utc - moments).dt.total_microseconds())


def _seconds(microseconds: pl.Series) -> pl.Series:
    import polars as pl

    # Not with polars, which multiplies by a rounded 1/1e6 and does not give the nearest number.
    values = microseconds.cast(pl.Float64).to_numpy() / _MICROSECONDS  # NaN for null
    return pl.Series(microseconds.name, values, nan_to_null=microseconds.null_count() > 0)


def check_zone(zone: object) -> str | None:
    """Return the zone that an option names; None = none.

    Raises:
        ConfigError: the zone is unknown.
    """
    import polars as pl

    if zone is None:
        return None
    try:
        pl.Series(["2020-01-01"]).str.to_datetime("%Y-%m-%d").dt.replace_time_zone(str(zone))
    except pl.exceptions.PolarsError:
        raise ConfigError(
            f"unknown time zone {str(zone)!r}",
            where="option time_zone",
            expected="a name in the time zone database, such as Europe/Berlin or UTC",
        ) from None
    return str(zone)


def _to_utc(local: pl.Series, zone: str) -> pl.Series:
    # Polars has the rules of all zones built in; Python needs them from the system.
    known = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return known.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
