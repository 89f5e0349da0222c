"""Dates as text: zones, changing clocks, and what is not a date."""

from __future__ import annotations

import polars as pl
import pytest

from berthline.errors import ConfigError
from berthline.traces.reading.dates import check_zone, unix_seconds

PLAIN = "%Y-%m-%d %H:%M:%S"


def seconds(*texts, pattern=PLAIN, zone=None):
    return unix_seconds(pl.Series(texts, dtype=pl.String), pattern, zone).to_list()


def test_without_a_zone_dates_are_read_as_utc():
    assert seconds("1970-01-02 00:00:01", None, "soon", "2020-02-30 00:00:00") == [
        86401,
        None,
        None,
        None,
    ]


def test_dates_may_say_their_zone():
    pattern = "%Y-%m-%d %H:%M:%S%z"
    assert seconds("2023-03-01 08:00:00+08:00", "2023-03-01 00:00:00+00:00", pattern=pattern) == [
        1677628800,
        1677628800,
    ]
    assert seconds("2023-03-01 08:00:00", pattern=pattern) == [None]


def test_local_times_follow_the_clock_of_the_zone():
    zone = "America/Los_Angeles"
    before, first, after = seconds(
        "2017-11-05 00:30:00", "2017-11-05 01:30:00", "2017-11-05 02:30:00", zone=zone
    )
    assert first - before == 3600  # the repeated hour is taken for its first occurrence
    assert after - first == 2 * 3600
    assert seconds("2017-10-07 01:11:39", zone=zone) == [1507363899]


def test_a_time_that_the_clocks_skip_is_that_before_they_changed():
    before, skipped, after = seconds(
        "2017-03-12 01:30:00", "2017-03-12 02:30:00", "2017-03-12 03:30:00", zone="US/Pacific"
    )
    assert (skipped - before, after - skipped) == (3600, 0)


def test_zones_are_checked():
    assert check_zone(None) is None
    assert check_zone("Europe/Berlin") == "Europe/Berlin"
    with pytest.raises(ConfigError, match="unknown time zone 'Nowhere'"):
        check_zone("Nowhere")
