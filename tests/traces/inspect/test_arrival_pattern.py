"""Arrivals by hour and day, on the clock of the cluster."""

from __future__ import annotations

import pytest

from berthline.evaluate.trace_checks.card import trace_card
from berthline.model.workload import Workload
from berthline.traces.inspect.arrival_pattern import DAY, by_day, by_hour_of_week, local_clock

MONDAY = 1_704_067_200  # 2024-01-01 00:00:00 UTC


def small(**columns):
    """Four jobs over 100 s.

    GPUs   0    20    40    60    80   100   s
      8    .    [C..............]            C: 8 GPUs
      2    [A.........]          .     D     A: 2, D: 1 at 100
      4    .    [B....]                      B: 4
    """
    given = {"submit": [0, 20, 20, 100], "run": [40, 20, 50, 10], "gpus": [2, 4, 8, 1]} | columns
    return Workload.from_columns(**given)


class TestArrivals:
    def test_hours_and_days_on_the_local_clock(self):
        workload = small(
            submit=[0, 3600, 86_400, 7 * 86_400],
            provenance={"origin_unix_time": MONDAY - 3600, "time_zone": "Europe/Berlin"},
        )
        clock = local_clock(workload)
        assert clock.date(0) == "2024-01-01 00:00:00"
        week = by_hour_of_week(clock)
        assert week[0, 0] == 2  # two Mondays
        assert week[0, 1] == 1
        assert week[1, 0] == 1
        assert by_day(clock)[1].tolist() == [2, 1, 1]

    def test_summer_time_is_kept(self):
        workload = small(
            submit=[0, 0, 0, 183 * DAY],
            provenance={"origin_unix_time": MONDAY, "time_zone": "Europe/Berlin"},
        )
        assert local_clock(workload).date(0).endswith("01:00:00")
        assert local_clock(workload).date(-1).endswith("02:00:00")

    @pytest.mark.parametrize(
        ("zone", "time", "named"),
        [
            ("+08:00", "08:00:00", "+08:00"),
            ("UTC-05:30", "18:30:00", "UTC-05:30"),
            ("UTC", "00:00:00", ""),
            (None, "00:00:00", ""),
            ("Middle/Earth", "00:00:00", ""),
        ],
    )
    def test_zones(self, zone, time, named):
        clock = local_clock(small(provenance={"origin_unix_time": MONDAY, "time_zone": zone}))
        assert clock.date(0).endswith(time)
        assert clock.zone == named

    def test_without_dates_the_week_begins_with_the_first_job(self):
        clock = local_clock(small())
        assert (clock.has_dates, clock.date(0)) == (False, "")
        assert by_hour_of_week(clock)[0, 0] == 4

    def test_a_damaged_date_breaks_nothing(self):
        workload = small(submit=[0, 1, 2, 1e15], provenance={"origin_unix_time": 1e14})
        card = trace_card(workload)
        assert card.first == ""
        assert card.arrivals.busiest_day == 3
