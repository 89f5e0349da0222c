"""The synthetic generator: the common workload bit for bit, and dials that do not disturb it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import berthline as bl
from berthline.errors import ConfigError
from berthline.model.cluster import Cluster
from berthline.traces.generators.synthetic import GENERATORS, generate
from berthline.traces.offered_load import offered_load

COLUMNS = ("submit", "run", "gpus", "estimate", "priority", "deadline", "user")
SMALL = Cluster.uniform(nodes=8, gpus_per_node=8)


@pytest.mark.parametrize("seed", [42, 0, 7, 2**40 + 1])
@pytest.mark.parametrize(
    ("jobs", "gpus", "load"), [(1000, 64, 0.9), (10_000, 512, 0.9), (300, 8, 1.3)]
)
def test_base_columns_are_the_common_workload(seed, jobs, gpus, load):
    rng = np.random.default_rng(seed)
    g = rng.choice([1, 2, 4, 8], jobs, p=[0.6, 0.15, 0.1, 0.15])
    d = np.clip(np.rint(rng.lognormal(np.log(1200), 1.5, jobs)), 10, 604800)
    a = np.rint(np.cumsum(rng.exponential(2.5 * 1200 * np.exp(1.125) / (load * gpus), jobs)))
    cluster = Cluster.uniform(nodes=gpus // 8, gpus_per_node=8)
    workload = generate("synthetic", cluster=cluster, jobs=jobs, load=load, seed=seed)
    np.testing.assert_array_equal(workload.gpus, g)
    np.testing.assert_array_equal(workload.run, d)
    np.testing.assert_array_equal(workload.submit, a)
    np.testing.assert_array_equal(workload.estimate, d)


def test_the_generators_clock_is_kept():
    assert generate(cluster=SMALL, seed=42).submit[0] > 0


def test_generate_is_public_and_has_the_documented_defaults():
    first, second = bl.generate(cluster=SMALL), generate(cluster=SMALL, jobs=1000, load=0.9, seed=0)
    assert len(first) == 1000
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(first, column), getattr(second, column))
    assert first.provenance == {
        "generator": "synthetic",
        "jobs": 1000,
        "load": 0.9,
        "seed": 0,
        "gpus": 64,
        "dials": {dial.name: dial.default for dial in GENERATORS["synthetic"].dials},
    }


def test_another_seed_gives_other_jobs():
    first, second = generate(cluster=SMALL, seed=1), generate(cluster=SMALL, seed=2)
    for column in COLUMNS:
        assert not np.array_equal(getattr(first, column), getattr(second, column))


@pytest.mark.parametrize(
    ("dial", "value", "column"),
    [
        ("users", 3, "user"),
        ("user_skew", 0.0, "user"),
        ("priorities", 9, "priority"),
        ("deadline_low", 1.0, "deadline"),
        ("deadline_high", 30, "deadline"),
        ("estimate_error", 0.7, "estimate"),
    ],
)
def test_a_dial_changes_its_own_column_and_no_other(dial, value, column):
    plain = generate(cluster=SMALL, jobs=500, seed=5)
    turned = generate(cluster=SMALL, jobs=500, seed=5, **{dial: value})
    for other in COLUMNS:
        same = np.array_equal(getattr(plain, other), getattr(turned, other))
        assert same == (other != column), other


def test_columns_are_independent_of_each_other():
    workload = generate(cluster=SMALL, jobs=20_000, seed=3, estimate_error=1.0)
    factor = workload.estimate / workload.run
    stretch = (workload.deadline - workload.submit) / workload.run
    columns = np.array([workload.gpus, workload.user, workload.priority, factor, stretch])
    correlation = np.corrcoef(columns) - np.eye(len(columns))
    assert np.abs(correlation).max() < 4 / math.sqrt(20_000)


def test_dials_mean_what_they_say():
    workload = generate(
        cluster=SMALL,
        jobs=20_000,
        users=5,
        user_skew=1.0,
        priorities=3,
        deadline_low=2.0,
        deadline_high=3.0,
        estimate_error=0.5,
    )
    assert workload.user_names == ("user0", "user1", "user2", "user3", "user4")
    shares = np.bincount(workload.user) / len(workload)
    zipf = 1 / np.arange(1, 6)
    np.testing.assert_allclose(shares, zipf / zipf.sum(), atol=0.02)
    np.testing.assert_allclose(
        np.bincount(workload.priority.astype(int)) / 20_000, 1 / 3, atol=0.02
    )
    stretch = (workload.deadline - workload.submit) / workload.run
    assert stretch.min() >= 2 - 1e-9
    assert stretch.max() <= 3 + 1e-9
    assert (workload.estimate >= workload.run).all()
    assert (workload.estimate == np.ceil(workload.estimate)).all()
    # The median of |N(0, 1)| is 0.6745; rounding up matters little for runs of a thousand seconds.
    median = float(np.median(np.log(workload.estimate / workload.run)))
    assert median == pytest.approx(0.5 * 0.6745, abs=0.02)


def test_a_cluster_may_be_given_by_its_text():
    by_text = generate(cluster="uniform:2x4", jobs=50)
    by_cluster = generate(cluster=Cluster.parse("uniform:2x4"), jobs=50)
    np.testing.assert_array_equal(by_text.submit, by_cluster.submit)
    with pytest.raises(ConfigError, match="unknown cluster"):
        generate(cluster="unifrom:2x4")


def test_jobs_wider_than_the_cluster_are_left_as_drawn():
    tiny = Cluster.uniform(nodes=1, gpus_per_node=2)
    assert generate(cluster=tiny, jobs=200).gpus.max() == 8


@pytest.mark.parametrize("load", [0.3, 0.9, 2.0])
def test_the_offered_load_is_about_what_was_asked(load):
    workload = generate(cluster=SMALL, jobs=100_000, load=load, seed=11)
    assert offered_load(workload, SMALL) == pytest.approx(load, rel=0.05)


def test_text_is_as_good_as_a_number():
    by_number = generate(cluster=SMALL, users=3, estimate_error=0.25, deadline_high=9)
    by_text = generate(cluster=SMALL, users="3", estimate_error="0.25", deadline_high="9")
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(by_number, column), getattr(by_text, column))
    assert generate(cluster=SMALL, users=np.int64(3)).user_names == by_number.user_names
    assert len(generate(cluster=SMALL, jobs=np.int32(5), load=np.float32(0.5), seed=1e3)) == 5


@pytest.mark.parametrize(
    ("dials", "what", "expected"),
    [
        ({"jobs": 0}, "jobs is 0", "a whole number, 1 to 20000000"),
        ({"jobs": 2.5}, "jobs is 2.5", "a whole number"),
        ({"jobs": True}, "jobs is True", "a whole number"),
        ({"load": 0}, "load is 0", "a number, 1e-06 to 1000000"),
        ({"load": -1.0}, "load is -1.0", "a number"),
        ({"load": float("nan")}, "load is nan", "a number"),
        ({"load": float("inf")}, "load is inf", "a number"),
        ({"load": True}, "load is True", "a number"),
        ({"load": None}, None, None),
        ({"seed": -1}, "seed is -1", "a whole number, 0 or more"),
        ({"users": "0"}, "users is '0'", "a whole number, 1 to"),
        ({"users": "many"}, "users is 'many'", "a whole number"),
        ({"users": "2.0"}, "users is '2.0'", "a whole number"),
        ({"users": [2]}, "users is [2]", "a whole number"),
        ({"users": "9" * 400}, "users is '999", "a whole number"),
        ({"users": 10**400}, "users is 1000", "a whole number"),
        ({"estimate_error": "-0.1"}, "estimate_error is '-0.1'", "a number, 0 to 10"),
        ({"estimate_error": 10**400}, "estimate_error is 1000", "a number"),
        ({"deadline_low": 3}, "deadline_low is 3 and deadline_high is 2", "no larger"),
    ],
)
def test_values_out_of_range_are_refused(dials, what, expected):
    if what is None:
        assert len(generate(cluster=SMALL, **dials)) == 1000  # None is the default
        return
    with pytest.raises(ConfigError) as caught:
        generate(cluster=SMALL, **dials)
    assert caught.value.what.startswith(what)
    assert caught.value.where == "generator 'synthetic'"
    assert expected in caught.value.expected


def test_an_unknown_dial_or_generator_gets_the_nearest():
    with pytest.raises(ConfigError) as caught:
        generate(cluster=SMALL, user=3)
    assert caught.value.what == "unknown dial 'user'"
    assert caught.value.hint == "did you mean 'users'?"
    with pytest.raises(ConfigError) as caught:
        generate("sinthetic", cluster=SMALL)
    assert caught.value.hint == "did you mean 'synthetic'?"


def test_the_table_says_what_every_dial_means():
    for name, generator in GENERATORS.items():
        assert generator.name == name
        assert generator.description
        for dial in generator.dials:
            assert dial.meaning
            assert dial.convert(dial.default, where=name) == dial.default
