"""Student's distribution against printed tables and closed forms."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.evaluate.statistics.t_distribution import t_quantile, t_tail

# By degrees of freedom: the 0.8, 0.95, 0.975 and 0.995 quantiles of printed tables.
TABLE = {
    1: (1.376382, 6.313752, 12.70620, 63.65674),
    2: (1.060660, 2.919986, 4.302653, 9.924843),
    5: (0.919544, 2.015048, 2.570582, 4.032143),
    10: (0.879058, 1.812461, 2.228139, 3.169273),
    30: (0.853767, 1.697261, 2.042272, 2.749996),
    120: (0.844627, 1.657651, 1.979930, 2.617421),
}


@pytest.mark.parametrize("degrees", TABLE)
def test_quantiles__are_those_of_the_tables(degrees: int) -> None:
    for share, value in zip((0.8, 0.95, 0.975, 0.995), TABLE[degrees], strict=True):
        assert t_quantile(share, degrees) == pytest.approx(value, rel=2e-6)
        assert t_quantile(1 - share, degrees) == pytest.approx(-value, rel=2e-6)


@given(st.floats(-50, 50))
def test_tail__one_and_two_degrees__have_closed_forms(t: float) -> None:
    assert t_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-12)
    assert t_tail(t, 2) == pytest.approx(0.5 - t / (2 * math.sqrt(2 + t * t)), abs=1e-12)


@given(st.floats(-6, 6))
def test_tail__many_degrees__is_the_normal_one(t: float) -> None:
    assert t_tail(t, 10_000_000) == pytest.approx(math.erfc(t / math.sqrt(2)) / 2, abs=1e-7)


@given(st.floats(0.001, 0.999), st.integers(1, 2000))
def test_quantile__undoes_the_tail(share: float, degrees: int) -> None:
    assert 1 - t_tail(t_quantile(share, degrees), degrees) == pytest.approx(share, abs=1e-9)


def test_tail__infinite_values() -> None:
    assert (t_tail(math.inf, 3), t_tail(-math.inf, 3)) == (0.0, 1.0)
    assert t_quantile(0.5, 7) == 0.0
