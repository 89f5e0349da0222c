"""Waits while enough GPUs are free."""

import numpy as np
import pytest

from berthline.evaluate.whatif.idle_waits import idle_wait_share


def share(rows, capacity, pool=None):
    """Return the share for jobs (since, start, end, gpus), all of them."""
    since, start, end, gpus = np.array(rows, dtype=float).T
    pools = np.full(len(rows), -1, np.int32) if pool is None else np.array(pool, np.int32)
    return idle_wait_share(since, start, end, gpus, pools, capacity, np.arange(len(rows)))


def test_a_job_that_waits_for_a_full_cluster_does_not_count():
    assert share([(0, 0, 100, 8), (0, 100, 200, 4)], [8.0]) == 0


def test_a_job_that_waits_beside_free_gpus_does():
    # The second waits 200 s; the cluster is full for the first 100.
    assert share([(0, 0, 100, 8), (0, 200, 300, 4)], [8.0]) == pytest.approx(0.5)


def test_only_its_own_pool_is_free_for_it():
    rows = [(0, 0, 100, 8), (0, 100, 200, 4)]
    assert share(rows, [8.0, 8.0], pool=[0, 0]) == 0
    assert share(rows, [8.0, 8.0], pool=[0, 1]) == 1


def test_nobody_waited():
    assert share([(0, 0, 100, 8)], [8.0]) is None
