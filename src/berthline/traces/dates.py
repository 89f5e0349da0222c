"""Dates as text, and the seconds since 1970 they stand for, in whatever zone they were written."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from berthline.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

ZONE_OPTION = {
    "time_zone": "zone of the cluster's clock, such as Europe/Berlin; without it, not known"
}
"""The option of formats whose dates are local time in a zone that the file does not tell."""


def unix_seconds(text: pl.Series, pattern: str, zone: str | None = None) -> pl.Series:
    """Return dates as seconds since 1970; null where the text is missing or no such date.

    In the hour that a zone's clocks repeat in autumn, a time is taken for its first occurrence; a
    time that they skip in spring is taken for the same time before the clocks changed.

    Args:
        text: the dates.
        pattern: their form, as strftime writes it.
        zone: where the dates are the local time, such as `"Asia/Shanghai"`; None = the dates say
            it themselves (`%z`), or it is not known and they are read as if they were UTC.
    """
    import polars as pl

    moments = text.str.to_datetime(pattern, strict=False, time_unit="us")
    if moments.dtype.time_zone:  # type: ignore[attr-defined]  # a Datetime by construction
        moments = moments.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif zone is not None:
        local, moments = moments, _to_utc(moments, zone)
        if moments.null_count() > local.null_count():
            hour = dt.timedelta(hours=1)
            moments = moments.zip_with(moments.is_not_null(), _to_utc(local - hour, zone) + hour)
    return moments.dt.epoch("us").cast(pl.Float64) / 1e6


def check_zone(zone: object) -> str | None:
    """Return the zone an option names; None = none.

    Raises:
        ConfigError: there is no such zone.
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
            expected="a name of the time zone database, such as Europe/Berlin or UTC",
        ) from None
    return str(zone)


def _to_utc(local: pl.Series, zone: str) -> pl.Series:
    # Polars has the rules of all zones built in, unlike Python on systems without them.
    known = local.dt.replace_time_zone(zone, ambiguous="earliest", non_existent="null")
    return known.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
