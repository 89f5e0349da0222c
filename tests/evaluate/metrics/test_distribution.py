"""Distributions: equal to numpy's percentiles to the last bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from berthline.evaluate.metrics.distribution import distribution


@pytest.mark.parametrize("seed", range(40))
def test_percentiles_are_numpys(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for size in (1, 2, 3, 20, 101, int(rng.integers(4, 3000))):
        for values in (
            rng.exponential(1e4, size),
            rng.integers(0, 9, size).astype(np.float64),
            rng.lognormal(3, 4, size),
        ):
            expected = np.percentile(values, (50, 95, 99, 100)).tolist()
            found = distribution(values.copy())
            assert [found.p50, found.p95, found.p99, found.max] == expected
            assert found.mean == values.mean()


def test_nothing_has_no_distribution() -> None:
    found = distribution(np.array([]))
    assert all(math.isnan(getattr(found, field)) for field in found.__struct_fields__)
