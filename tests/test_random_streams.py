"""Counter-based random numbers: the same bits everywhere, and no draw depends on another."""

from __future__ import annotations

import numpy as np
from tests.sim.scenarios import jobs, nodes, order, run

from berthline.random_streams import (
    bits_at,
    stream_key,
    text_numbers,
    uniform,
    uniform_at,
    uniform_column,
)


def test_uniform__known_values() -> None:
    """Pinned: a change here changes every seeded result ever published."""
    assert stream_key(0, "order") == 0x1FFEDA70C9AAF39B
    assert uniform(0, 0) == 0.6524484863740322
    assert uniform(2**64 - 1, 12345, 3) == 0.31016959266185595


def test_uniform__column_is_the_scalar_for_each_row() -> None:
    key = stream_key(7, "order")
    assert uniform_column(key, 1000).tolist() == [uniform(key, i) for i in range(1000)]
    assert uniform_column(key, 0).tolist() == []


def test_uniform__looks_uniform() -> None:
    draws = uniform_column(stream_key(1, "order"), 100_000)
    assert draws.min() >= 0.0
    assert draws.max() < 1.0
    counts = np.bincount((draws * 16).astype(int), minlength=16)
    assert abs(counts - 100_000 / 16).max() < 6 * np.sqrt(100_000 / 16)
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02


def test_stream_key__differs_by_seed_and_name() -> None:
    keys = {stream_key(seed, name) for seed in range(-50, 50) for name in ("order", "placement")}
    assert len(keys) == 200
    assert all(0 <= key < 2**64 for key in keys)


def test_random_order__a_job_keeps_its_draw_when_others_come_and_go() -> None:
    """The same seed gives the first jobs the same order, whatever comes after them."""
    few = run(jobs(*[(0, 1, 1)] * 10), nodes(1), "random", seed=3)
    many = run(jobs(*[(0, 1, 1)] * 40), nodes(1), "random", seed=3)
    assert order(few) != sorted(order(few))
    assert [job for job in order(many) if job < 10] == order(few)


def test_random_order__same_seed_same_bits_other_seed_other_bits() -> None:
    workload = jobs(*[(0, 1, 1)] * 30)
    logs = [run(workload, nodes(2), "random", seed=seed).sha256() for seed in (1, 1, 2, 3)]
    assert logs[0] == logs[1]
    assert len(set(logs)) == 3


def test_text_numbers__depend_on_the_text_alone() -> None:
    """Not on the longest text beside it, to which numpy pads the others."""
    alone = text_numbers(np.array(["job-7"]))
    beside = text_numbers(np.array(["job-7", "a much longer name", "", "job-8"]))
    assert alone[0] == beside[0]
    assert len({*beside.tolist()}) == 4


def test_bits_at__are_the_bits_of_uniform() -> None:
    first, second = np.array([[0, 5, 2**50], [0, 2**63, 1]], np.uint64)
    expected = [uniform(99, *pair) for pair in zip(first.tolist(), second.tolist(), strict=True)]
    bits = bits_at(99, first, second)
    assert ((bits >> np.uint64(11)) * 2.0**-53).tolist() == expected


def test_uniform_at__is_uniform_for_each_number() -> None:
    numbers = np.array([5, 0, 2**64 - 1], np.uint64)
    expected = [uniform(99, int(number)) for number in numbers]
    assert uniform_at(99, numbers).tolist() == expected
