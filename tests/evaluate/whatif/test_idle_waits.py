"""Waits while enough GPUs are free."""

import numpy as np
import pytest

from berthline.evaluate.whatif.idle_waits import STANDSTILL, idle_waits


def waits(rows, capacity, pool=None, user=None):
    """Return the idle waits for jobs (since, start, end, gpus), all of them."""
    since, start, end, gpus = np.array(rows, dtype=float).T
    pools = np.full(len(rows), -1, np.int32) if pool is None else np.array(pool, np.int32)
    users = np.arange(len(rows)) if user is None else np.array(user)
    numbers = np.arange(len(rows))
    return idle_waits(since, start, end, gpus, pools, users.astype(np.int32), capacity, numbers)


def share(rows, capacity, pool=None):
    found = waits(rows, capacity, pool)
    return found if found is None else found.share


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


def test_parts__nothing_starts_for_an_hour():
    """The second waits 7,200 s; the cluster is full in the first half, and nothing starts."""
    found = waits([(0, 0, 3600, 8), (0, 7200, 7300, 4)], [8.0])
    assert (found.share, found.standstill, found.own_jobs) == (0.5, 0.5, 0.0)
    # Another job starts half an hour after the cluster is free.
    found = waits([(0, 0, 3600, 8), (0, 7200, 7300, 4), (5400, 5400, 5500, 1)], [8.0])
    assert found.share == pytest.approx(0.5)
    assert found.standstill == pytest.approx(0.25)  # until 5400, the first start for more than 1 h
    assert found.others == pytest.approx(0.25)


def test_parts__the_users_own_jobs_run():
    rows = [(0, 0, 600, 4), (0, 600, 700, 4)]
    alone, own = waits(rows, [8.0]), waits(rows, [8.0], user=[3, 3])
    assert STANDSTILL > 600
    assert (alone.share, alone.own_jobs, alone.others) == (1.0, 0.0, 1.0)
    assert (own.share, own.own_jobs, own.others) == (1.0, 1.0, 0.0)
