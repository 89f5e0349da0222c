"""Random numbers that depend on what they are for, and on nothing else."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from berthline import _native
from berthline.random_streams import stream_key, uniform
from berthline.traces.generators.draws import (
    Draws,
    Lattice,
    Lists,
    choose,
    exp,
    normal_quantile,
    number_of_limits,
    round_within,
    running_sums,
)
from berthline.traces.generators.quantile_table import QuantileTable


def test_numbers_are_those_of_the_simulators_streams():
    table = Draws(5, range(3, 7), jobs=6).uniform("run")
    key = stream_key(5, "generate/run")
    for episode in range(4):
        for job in range(6):
            assert table[episode, job] == uniform(key, 3 + episode, job)


def test_a_number_depends_on_its_own_place_alone():
    large = Draws(1, range(9), jobs=50)
    small = Draws(1, range(4, 6), jobs=20)
    for column in ("run", "gpus", "submit"):
        np.testing.assert_array_equal(small.uniform(column), large.uniform(column)[4:6, :20])
    several = Draws(1, range(4, 6), jobs=3).uniform_of_episodes("week", 7)
    np.testing.assert_array_equal(several, large.uniform_of_episodes("week", 9)[4:6, :7])


def test_episodes_are_drawn_by_any_numbers():
    numbers = [7, 2**62 + 5, 0, 2**32]
    table = Draws(5, numbers, jobs=3).uniform("run")
    key = stream_key(5, "generate/run")
    expected = [[uniform(key, number, job) for job in range(3)] for number in numbers]
    np.testing.assert_array_equal(table, expected)


def test_columns_seeds_and_episodes_differ():
    draws = Draws(1, range(2), jobs=100)
    assert not np.array_equal(draws.uniform("run"), draws.uniform("gpus"))
    assert not np.array_equal(draws.uniform("run")[0], draws.uniform("run")[1])
    assert not np.array_equal(draws.uniform("run"), Draws(2, range(2), jobs=100).uniform("run"))


def test_distributions():
    draws = Draws(7, range(20), jobs=10_000)
    u, z, e = draws.uniform("a"), draws.normal("a"), draws.exponential("a")
    assert 0 <= u.min() < u.max() < 1
    assert u.mean() == pytest.approx(0.5, abs=0.005)
    assert (z.mean(), z.std()) == (pytest.approx(0, abs=0.01), pytest.approx(1, abs=0.01))
    assert (e.mean(), e.std()) == (pytest.approx(1, abs=0.02), pytest.approx(1, abs=0.02))
    order = np.argsort(u, axis=None)
    assert (np.diff(z.ravel()[order]) >= 0).all()
    assert (np.diff(e.ravel()[order]) >= 0).all()


def test_normal_quantile_is_good_to_nine_digits():
    normal = NormalDist()
    points = np.concatenate((np.linspace(1e-6, 1 - 1e-6, 2001), [1e-12, 0.02425, 0.97575, 0.5]))
    exact = np.array([normal.inv_cdf(float(p)) for p in points])
    np.testing.assert_allclose(normal_quantile(points), exact, rtol=2e-9, atol=2e-9)
    ends = normal_quantile(np.array([0.0, 1.0 - 2.0**-53]))
    assert np.isfinite(ends).all()
    assert ends[0] < -8
    assert ends[1] > 8


def test_averages_over_a_lattice_are_expectations():
    lattice = Lattice()
    assert lattice.uniform("run").shape == (1, lattice.jobs)
    assert float(np.exp(1.5 * lattice.normal("run")).mean()) == pytest.approx(
        np.exp(1.5**2 / 2), rel=0.002
    )
    both = lattice.uniform("run") * lattice.uniform("gpus")
    assert float(both.mean()) == pytest.approx(0.25, abs=1e-4)


def test_tables_are_the_callers():
    for source in (Draws(3, range(2, 6), jobs=30), Lattice()):
        for draw in (source.uniform, source.normal, source.exponential):
            table = draw("run")
            before = table.copy()
            table.fill(0.0)
            np.testing.assert_array_equal(draw("run"), before)


def test_a_table_of_quantiles_is_close_to_the_function():
    def lognormal(u):
        return np.exp(2.0 * normal_quantile(u))

    def exponential(u):
        return -np.log1p(-u)

    table = QuantileTable([lognormal, exponential])
    u = Draws(1, range(20), jobs=5000).uniform("x")
    np.testing.assert_allclose(table.at(u), lognormal(u), rtol=1e-4)
    which = Draws(1, range(20), jobs=5000).uniform("y") < 0.5
    expected = np.where(which, exponential(u), lognormal(u))
    np.testing.assert_allclose(table.at(u, which), expected, rtol=1e-4)
    ends = np.array([[0.0, 1.0 - 2.0**-53]])
    np.testing.assert_allclose(table.at(ends), lognormal(ends))


def test_exponentials_are_good_to_the_last_place_or_two():
    x = np.concatenate((np.linspace(-40.0, 40.0, 100_001), np.linspace(-700.0, 700.0, 10_001)))
    exact = np.array([math.exp(value) for value in x.tolist()])
    assert (np.abs(exp(x.copy()) - exact) <= 1.5 * np.spacing(exact)).all()
    ends = exp(np.array([-np.inf, -1000.0, 0.0, 1000.0, np.inf]))
    low, high = math.exp(-700.0), math.exp(700.0)
    np.testing.assert_allclose(ends, [low, low, 1.0, high, high], rtol=1e-15)


def test_logarithms_are_good_to_the_last_place_or_two():
    draws = Draws(3, range(20), jobs=5000)
    exact = np.array([-math.log(1.0 - u) for u in draws.uniform("a").ravel().tolist()])
    found = draws.exponential("a").ravel()
    assert (np.abs(found - exact) <= 1.5 * np.spacing(exact)).all()


def lognormal(u: np.ndarray) -> np.ndarray:
    table = np.empty(u.shape)
    _native.lognormal_quantiles(u, 3.0, 2.0, table)
    return table


@pytest.mark.parametrize("count", [1, 15, 16, 17, 100, 2047, 2048, 2050, 5000])
def test_what_follows_from_a_number_does_not_depend_on_those_beside_it(count):
    u = np.concatenate((Draws(4, jobs=5000).uniform("x")[0], [1.0 - 2.0**-53, 0.0]))[-count:]
    functions = (
        normal_quantile,
        lognormal,
        lambda u: exp(40.0 * u - 20.0),
    )
    places = sorted({*range(0, count, 37), *range(max(0, count - 20), count)})
    for function in functions:
        together = function(u)
        alone = [function(u[place : place + 1])[0] for place in places]
        np.testing.assert_array_equal(together[places], alone)
    if count > 100:
        assert (normal_quantile(u) < -2.5).any()
        assert (normal_quantile(u) > 2.5).any()


def test_lognormal_numbers_are_exponentials_of_normal_ones():
    draws = Draws(4, range(3), jobs=1000)
    expected = exp(draws.normal("x") * 1.5) * 1200.0
    np.testing.assert_array_equal(draws.lognormal("x", median=1200.0, sigma=1.5), expected)


@pytest.mark.parametrize("size", [0, 1, 3, 15, 48, 49, 200])
def test_choices_are_those_of_the_limits_reached(size):
    limits = np.sort(Draws(1, jobs=max(size, 1)).uniform("limits")[0][:size])
    choices = (Draws(2, jobs=size + 1).uniform("choices")[0] * 2**32 - 2**31).astype(np.int32)
    values = np.concatenate((Draws(3, jobs=3000).uniform("v")[0], limits, [-1.0, 2.0]))
    number = np.searchsorted(limits, values, side="right")
    np.testing.assert_array_equal(number_of_limits(values, limits), number)
    np.testing.assert_array_equal(choose(values, limits, choices), choices[number])


def test_rounding_is_to_even_and_stays_within():
    table = np.array([[-1e300, 0.5, 1.5, 2.5, 3.49], [3.5, 1e8 - 0.5, 1e8 + 7.0, 1e300, 2.0]])
    expected = np.clip(np.rint(table), 2.0, 1e8)
    np.testing.assert_array_equal(round_within(table.copy(), 2.0, 1e8), expected)


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_running_sums(rows):
    table = Draws(1, range(rows), jobs=50).uniform("x")
    factors = Draws(1, range(rows), jobs=1).uniform("y")
    expected = np.cumsum(table * factors, axis=1)
    np.testing.assert_array_equal(running_sums(table.copy(), factors), expected)
    np.testing.assert_array_equal(running_sums(table.copy(), 2.5), np.cumsum(table * 2.5, axis=1))


def lists_of_all_kinds() -> list[np.ndarray]:
    u = Draws(2, jobs=3000).uniform("points")[0]
    return [
        np.sort(u),
        np.array([]),
        np.array([0.5]),
        np.linspace(0.0, 1.0, 41),
        np.sort(np.round(u[:200], 2)),  # many points twice
        np.concatenate((np.sort(u[:300]) * 1e-9, [0.4, 1e6])),  # nearly all in one cell
        np.array([0.25, 0.25, 0.25]),
    ]


def test_places_in_lists_are_those_of_a_search():
    lists = lists_of_all_kinds()
    values = np.concatenate((Draws(3, jobs=4000).uniform("v")[0], *lists, [-1.0, 2.0, 1e7]))
    which = np.arange(len(values)) % len(lists)
    for shift in range(len(lists)):
        number = (which + shift) % len(lists)
        found = Lists(lists).reached(values, number)
        expected = [
            np.searchsorted(lists[own], value, side="right")
            for own, value in zip(number, values, strict=True)
        ]
        np.testing.assert_array_equal(found, expected)


def test_heights_on_lines_are_those_of_numpy():
    points = [np.unique(points) for points in lists_of_all_kinds() if points.size]
    heights = [np.sin(37.0 * own) for own in points]
    x = np.concatenate((Draws(3, jobs=4000).uniform("v")[0], *points, [-1.0, 2.0, 1e7]))
    lists = Lists(points, heights)
    for number, (own, height) in enumerate(zip(points, heights, strict=True)):
        found = lists.at(x, np.full(x.shape, number))
        np.testing.assert_array_equal(found, np.interp(x, own, height))
    np.testing.assert_array_equal(lists.at(x), np.interp(x, points[0], heights[0]))
    with pytest.raises(ValueError, match="without heights"):
        Lists(points).at(x)


def test_tables_of_other_sizes_are_refused():
    for call in (
        lambda: _native.normal_quantiles(np.zeros(3), np.zeros(4)),
        lambda: _native.fill_uniform(1, np.zeros(3, np.int64), np.zeros(4)),
        lambda: _native.running_sums(np.zeros((2, 3)), np.ones(4)),
        lambda: _native.count_limits(np.zeros(2), np.zeros(1), np.zeros(3, np.int64)),
        lambda: _native.choose(
            np.zeros(2), np.zeros(1), np.zeros(1, np.int32), np.zeros(2, np.int32)
        ),
        lambda: _native.lognormal_quantiles(np.zeros(3), 1.0, 1.0, np.zeros(4)),
    ):
        with pytest.raises(ValueError, match="differ in size"):
            call()
