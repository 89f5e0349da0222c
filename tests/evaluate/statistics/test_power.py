"""Power against published sample sizes, and against how often differences are really detected."""

from __future__ import annotations

import math

import numpy as np
import pytest

from berthline.evaluate.statistics.paired import FEW_WINDOWS, paired_ratio
from berthline.evaluate.statistics.power import Power, power, power_in_words, windows_needed


# Sample sizes of the paired t test at 80 % power and 5 % (two-sided), as power tables print them.
@pytest.mark.parametrize(("effect", "needed"), [(0.2, 199), (0.5, 34), (0.8, 15), (1.0, 10)])
def test_windows_needed__are_those_of_power_tables(effect: float, needed: int) -> None:
    assert windows_needed(effect) == needed


def test_windows_needed__no_effect_or_one_too_small__is_none() -> None:
    assert windows_needed(0.0) is None
    assert windows_needed(1e-6) is None
    assert windows_needed(50.0) == FEW_WINDOWS


def test_power__that_many_windows__tell_the_difference_four_times_of_five() -> None:
    rng = np.random.default_rng(0)
    needed = windows_needed(math.log1p(0.05) / 0.1)
    told = 0
    for seed in range(400):
        values = np.exp(rng.normal(math.log1p(0.05), 0.1, needed))
        told += paired_ratio(values, np.ones(needed), seed=seed, resamples=500).low > 1
    assert told / 400 == pytest.approx(0.8, abs=0.05)


def test_power__of_values__is_by_their_scatter() -> None:
    logs = np.random.default_rng(1).normal(0.01, 0.2, 40)
    found = power(np.exp(logs), np.ones(40), difference=0.05)
    assert found.windows == 40
    assert found.needed == windows_needed(math.log(1.05) / logs.std(ddof=1))
    # The given number of windows detects exactly the detectable difference.
    same = power(np.exp(logs), np.ones(40), difference=found.detectable)
    assert same.needed in (40, 41)
    seen = power(np.exp(logs), np.ones(40))
    assert seen.difference == pytest.approx(abs(math.exp(logs.mean()) - 1))


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [0.0, 1.0]])
def test_power__no_scatter_or_no_ratio__is_none(values: list[float]) -> None:
    assert power(values, [1.0] * len(values)) is None


def test_power__in_words() -> None:
    found = Power(windows=30, difference=0.012, needed=412, detectable=0.046)
    assert power_in_words(found) == ("30 windows detect 4.6 %; 1.2 % would take about 410 windows")
    enough = Power(windows=30, difference=0.2, needed=12, detectable=0.046)
    assert power_in_words(enough) == "30 windows detect 4.6 %"
    never = Power(windows=30, difference=0.0, needed=None, detectable=0.046)
    assert power_in_words(never) == "30 windows detect 4.6 %"
