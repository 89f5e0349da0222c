"""Fairness: finish-time fairness by hand; users who come and go."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.evaluate.metrics.by_the_second import rhos, second_by_second
from tests.evaluate.schedules import random_case, schedule

from berthline.evaluate.metrics.fairness import finish_time_fairness, jain_index
from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.measure import measure
from berthline.evaluate.metrics.slowdown import slowdowns
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

FOUR_GPUS = Cluster.uniform(nodes=1, gpus_per_node=4)

# second     0         10        20        30
# user 0     0000000000                          4 GPUs
# user 1     ----------11111111112222222222      4 GPUs, waits 10; then 1 GPU, waits 20
# user 2               -----33333                job 3, 2 GPUs, from 10 to 20
ROWS = [
    (0, "submit", 0),
    (0, "submit", 1),
    (0, "submit", 2),
    (0, "start", 0, {0: 4}),
    (10, "finish", 0),
    (10, "submit", 3),
    (10, "start", 1, {0: 2}),
    (15, "start", 3, {0: 2}),
    (20, "finish", 1),
    (20, "finish", 3),
    (20, "start", 2, {0: 1}),
    (30, "finish", 2),
]
JOBS = Workload.from_columns(
    submit=[0, 0, 0, 10], run=[10, 10, 10, 5], gpus=[4, 2, 1, 2], user=[0, 1, 1, 2]
)


def rho(log, jobs, cluster) -> list[float]:
    return finish_time_fairness(log, job_table(log, jobs), jobs, cluster).tolist()


def test_finish_time_fairness__by_hand():
    """Users with unfinished jobs: 2 in [0, 10), 2 in [10, 20), 1 in [20, 30)."""
    assert rho(schedule(ROWS), JOBS, FOUR_GPUS) == pytest.approx(
        [
            10 / (10 * 2 * 4 / 4),  # alone on half of the cluster it takes twice as long
            20 / (10 * 1),  # half of the cluster is what it needs
            30 / (10 * 1),
            10 / (5 * 1),
        ]
    )


def test_finish_time_fairness__horizon__takes_what_has_been_so_far():
    log = schedule([row for row in ROWS if row[0] <= 15], horizon=15)
    found = rho(log, JOBS, FOUR_GPUS)
    assert found == pytest.approx([10 / 20, 15 / 10, 15 / 10, 5 / 5])


def test_finish_time_fairness__submitted_at_the_very_end__is_zero():
    log = schedule([row for row in ROWS if row[0] <= 10][:-1], horizon=10)
    assert rho(log, JOBS, FOUR_GPUS)[-1] == 0


def test_finish_time_fairness__one_user__is_the_slowdown():
    jobs = dataclasses.replace(JOBS, user=np.zeros(4, dtype=np.int32), user_names=("all",))
    log = schedule(ROWS)
    wanted = slowdowns(job_table(log, jobs), jobs).tolist()
    assert rho(log, jobs, FOUR_GPUS) == wanted
    # The same user under one of two names: counted in full, and the same.
    named = dataclasses.replace(jobs, user_names=("all", "nobody"))
    assert rho(log, named, FOUR_GPUS) == pytest.approx(wanted)
    m = measure(log, jobs, FOUR_GPUS)
    assert m.fairness.rho == m.slowdown


@pytest.mark.parametrize("num_users", [3, 2**16 + 3])
def test_finish_time_fairness__job_by_job__equals_a_count_of_users_by_the_second(num_users: int):
    """Also with more users than fit into 16 bits."""
    for seed in range(40):
        log, workload, cluster = random_case(seed)
        user = (workload.user * 31_337) % num_users
        names = tuple(map(str, range(num_users)))
        workload = dataclasses.replace(workload, user=user, user_names=names)
        theirs = rhos(second_by_second(log, workload, cluster), workload, cluster)
        assert rho(log, workload, cluster) == pytest.approx(list(theirs.values()), rel=1e-9)


def test_jain_index__between_one_for_all_and_all_alike():
    assert jain_index(np.array([2.0, 2.0, 2.0])) == 1
    assert jain_index(np.array([1.0, 0.0, 0.0, 0.0])) == 0.25
    assert np.isnan(jain_index(np.array([])))
