"""Algorithms find the known optimum of tiny episodes."""

import pytest

from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training.overfit import overfit, tiny_workload
from berthline.model.workload import Workload

TOY = Workload.from_columns(
    name="toy",
    submit=[0, 100, 100],
    run=[1000, 100, 200],
    estimate=[1000, 100, 200],
    gpus=[4, 4, 4],
)


def test_ppo_finds_the_optimum_of_a_toy():
    """Three jobs that each need the whole node: A at 0 s, B and C at 100 s.

        time, 100 s   0  1  2  3  4  5 ...       14
        optimum       .  B  C  C  A  A  A ...  A |      JCT 100 + 300 + 1400 = 1800
        no holding    A  A  A ... A  B  C  C |          JCT 1000 + 1000 + 1200 = 3200

    A has to be held back at 0 s although no other job is there; then B goes before C.
    """
    found = overfit(
        "ppo",
        {"rollout": 16, "minibatches": 4},
        NetworkConfig(hidden=(16, 16)),
        jobs=TOY,
        seed=1,
        seconds=600,  # it takes a few on a free core
    )
    assert found["optimum"] == 1800
    assert found["sjf+easy"] == 3200
    assert found["reached"]
    assert found["total_jct"] == pytest.approx(1800)


def test_no_heuristic_is_optimal_on_the_tiny_episode():
    """Otherwise the check of an algorithm would be meaningless."""
    found = overfit("ppo", {"rollout": 1}, seconds=0.0, jobs=tiny_workload())
    assert found["steps"] == 0
    assert not found["reached"]
    assert min(found["fcfs+easy"], found["sjf+easy"]) > 2 * found["optimum"]
