"""Requests for parts of GPUs: what a workload can hold stays, the rest is rounded and counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berthline.model.workload import Workload
from berthline.traces.reading.request_columns import (
    FRACTIONS_ROUNDED_UP,
    PARTS_ROUNDED_UP,
    GpuRequests,
)


@pytest.mark.parametrize(
    ("per_worker", "workers", "gpus", "milli", "rounded"),
    [
        (0.25, 1, 1, 250, {}),
        (0.29, 1, 1, 290, {}),  # 290.0 thousandths only nearly, in floats
        (1, 1, 1, 1000, {}),
        (3, 2, 6, 1000, {}),
        (0, 5, 0, 1000, {}),
        (0.5, 0, 0, 1000, {}),
        (1.5, 1, 2, 1000, {FRACTIONS_ROUNDED_UP: 1}),
        (0.5, 2, 2, 1000, {FRACTIONS_ROUNDED_UP: 1}),
        (1 / 3, 1, 1, 334, {PARTS_ROUNDED_UP: 1}),
        (1e-9, 1, 1, 1, {PARTS_ROUNDED_UP: 1}),
        (0.9999, 1, 1, 1000, {PARTS_ROUNDED_UP: 1}),
    ],
)
def test_what_becomes_of_a_request(per_worker, workers, gpus, milli, rounded):
    # Beside a part of a GPU, which is read as it is.
    requests = GpuRequests.of(np.array([per_worker, 0.5]), np.array([workers, 1.0]))
    assert requests.gpus.tolist() == [gpus, 1]
    assert requests.gpu_milli.tolist() == [milli, 500]
    assert requests.rounded(np.array([True, True])) == rounded
    assert requests.rounded(np.array([False, True])) == {}


@given(
    st.lists(st.tuples(st.floats(0, 1000, allow_subnormal=False), st.integers(0, 100)), min_size=1)
)
def test_jobs_get_at_least_what_they_ask_for_and_fit_a_workload(asked):
    per_worker, workers = np.array(asked, dtype=np.float64).T
    requests = GpuRequests.of(per_worker, workers)
    given_milli = requests.gpus * requests.gpu_milli
    assert (given_milli >= per_worker * workers * 1000 - 1e-5).all()
    assert (given_milli <= np.ceil(per_worker) * workers * 1000).all()
    Workload.from_columns(
        submit=np.zeros(len(asked)),
        run=np.ones(len(asked)),
        gpus=requests.gpus,
        gpu_milli=requests.gpu_milli,
        cpus=1,
    )
