"""Energy rates: step functions, periods, files and their errors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.evaluate.metrics.energy_rate import EnergyRate

if TYPE_CHECKING:
    from pathlib import Path


def between(rate: EnergyRate, begin: float, stop: float) -> float:
    low, high = rate.integral(np.array([begin, stop], dtype=float))
    return float(high - low)


def test_integral__each_value_holds_until_the_next_and_the_last_for_good():
    rate = EnergyRate(times=[0, 10, 15], values=[1, 4, -2])
    assert between(rate, 0, 10) == 10
    assert between(rate, 5, 12) == 5 + 8
    assert between(rate, 12, 100) == 12 - 2 * 85
    assert between(rate, 7, 7) == 0


def test_integral__period__repeats_in_both_directions():
    rate = EnergyRate(times=[20, 30], values=[1, 3], period=24)
    assert between(rate, 20, 44) == 10 + 3 * 14
    assert between(rate, 0, 24) == 10 + 3 * 14
    assert between(rate, 0, 6) == 6 + 3 * 0  # 24 to 30 one period earlier
    assert between(rate, 6, 20) == 3 * 14
    assert between(rate, 0, 2400) == pytest.approx(100 * (10 + 3 * 14), rel=1e-12)


def test_from_csv__reads_steps_and_moves_them_to_the_clock(tmp_path: Path):
    path = tmp_path / "price.csv"
    path.write_text("\ufeffTime, zone, value\n1000,DE,0.5\n\n1600,DE,-0.25\n", encoding="utf-8")
    rate = EnergyRate.from_csv(path, origin=1200)
    assert list(rate.times) == [-200, 400]
    assert list(rate.values) == [0.5, -0.25]
    assert rate.period == math.inf
    assert between(rate, 0, 500) == 0.5 * 400 - 0.25 * 100


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("", "no column 'time'", "line 1"),
        ("time,price\n0,1\n", "no column 'value'", "line 1"),
        ("time,value\n", "no step", ""),
        ("time,value\n0,1\n5,dear\n", "value is 'dear'", "line 3"),
        ("time,value\n0,1\n5,nan\n", "value is 'nan'", "line 3"),
        ("time,value\n0,1\n\nsoon,2\n", "time is 'soon'", "line 4"),
        ("time,value\n0,1\n0,2\n", "time 0 is not after 0", "line 3"),
        ("time,value\n0\n", "1 cell", "line 2"),
        ("time,value\n0,1,2\n", "3 cells", "line 2"),
        ("time,value\n10,1\n", "begins at 10", ""),
        ('time,value\n0,"1\n', "not CSV", "line"),
    ],
)
def test_from_csv__what_is_wrong_is_named(tmp_path: Path, text: str, what: str, where: str):
    path = tmp_path / "price.csv"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        EnergyRate.from_csv(path)
    assert what in caught.value.what
    assert str(path) in caught.value.where
    assert where in caught.value.where
    assert caught.value.expected


def test_from_csv__no_file_or_no_text(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot read the file"):
        EnergyRate.from_csv(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"time,value\n\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a UTF-8 text file"):
        EnergyRate.from_csv(tmp_path / "binary.csv")


@pytest.mark.parametrize(
    ("times", "values", "period", "what"),
    [
        ([], [], math.inf, "0 times and 0 values"),
        ([0, 1], [1], math.inf, "2 times and 1 values"),
        ([0, 0], [1, 2], math.inf, "time 0 with value 2"),
        ([0, 1], [1, math.inf], math.inf, "value inf"),
        ([0, 10], [1, 2], 10, "period of an energy rate is 10"),
        ([0, 10], [1, 2], math.nan, "period of an energy rate is nan"),
        ([3], [1], math.inf, "begins at 3"),
    ],
)
def test_energy_rate__impossible_steps__are_refused(
    times: list[float], values: list[float], period: float, what: str
):
    with pytest.raises(ConfigError) as caught:
        EnergyRate(times, values, period)
    assert what in caught.value.what


def dated(origin: float | None) -> bl.Workload:
    provenance = {} if origin is None else {"origin_unix_time": origin}
    return bl.Workload.from_columns(submit=[0], run=[1], gpus=[1], provenance=provenance)


def test_for_workload__unix_times_go_on_the_workloads_clock(tmp_path: Path):
    path = tmp_path / "carbon.csv"
    path.write_text("time,value\n1600000000,300\n1600003600,200\n")
    rate = EnergyRate.for_workload(path, dated(1_600_001_000.0))
    assert list(rate.times) == [-1000, 2600]
    with pytest.raises(ConfigError, match="no date to match them with"):
        EnergyRate.for_workload(path, dated(None))
    with pytest.raises(ConfigError, match="begins at 500"):
        EnergyRate.for_workload(path, dated(1_599_999_500.0))


def test_for_workload__small_times_are_on_the_clock_already(tmp_path: Path):
    path = tmp_path / "price.csv"
    path.write_text("time,value\n0,1\n3600,2\n")
    assert list(EnergyRate.for_workload(path, dated(1.6e9)).times) == [0, 3600]


def test_shifted__is_the_rate_on_a_later_clock():
    rate = EnergyRate([0, 100], [1, 5], period=300)
    times = np.array([0.0, 50.0, 130.0, 700.0])
    on_later = rate.shifted(40.0).integral(times)
    np.testing.assert_allclose(np.diff(on_later), np.diff(rate.integral(times + 40.0)))
