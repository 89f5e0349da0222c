"""Overfitting check: does an algorithm find the known optimum of one tiny episode?

No order of the queue is optimal for these jobs: the first job must be held although it could start,
because a short job that needs the whole node arrives a little later. An algorithm that does not
find the optimum here, where nothing has to generalise, has a bug.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch

from berthline.evaluate.optimum import jct_optimum
from berthline.learn.algorithms.algorithm_table import config_of, make_algorithm
from berthline.learn.networks.networks import NetworkConfig
from berthline.learn.training.environments import Environments
from berthline.learn.training.validation import EpisodeSet
from berthline.model.cluster import Cluster
from berthline.model.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER = "uniform:1x4:V100"
NUM_ENVS = 16
SECONDS = 60.0
STEPS = 200_000
"""Steps that schedules refer to; few runs need a tenth of them."""

_ROUNDING = 1e-6


def tiny_workload() -> Workload:
    """Return six jobs for a node of four GPUs."""
    return Workload.from_columns(
        name="tiny",
        submit=[0, 60, 60, 120, 300, 300],
        run=[3600, 300, 600, 1200, 900, 120],
        estimate=[3600, 300, 600, 1200, 900, 120],
        gpus=[3, 4, 2, 2, 1, 4],
    )


def overfit(
    algorithm: str,
    settings: Mapping[str, Any] | None = None,
    network: NetworkConfig | None = None,
    *,
    jobs: Workload | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
) -> dict[str, Any]:
    """Train on one episode until the greedy policy is optimal or the time is up.

    Args:
        algorithm: its name.
        settings: of the algorithm, where they differ from the default.
        network: shape of its networks.
        jobs: up to 10; None = `tiny_workload`.
        seed: of weights and random draws.
        seconds: time limit.

    Returns:
        Whether the optimum was reached; the total JCT found, the optimum and the total JCT of two
        heuristics, in seconds; steps and seconds of training.
    """
    jobs, cluster = jobs or tiny_workload(), Cluster.parse(CLUSTER)
    options = {
        "workload": jobs,
        "cluster": cluster,
        "episode_jobs": None,
        "window": len(jobs),
        "running_window": 4,
        "reward": "mean-wait-hours",
        # Some optima hold a job back while nothing runs, which no order under EASY does.
        "semantics": "mask",
        "no_op": "always",
    }
    envs = Environments("pick", num=NUM_ENVS, seed=seed, options=options)
    made = make_algorithm(
        algorithm, envs, network or NetworkConfig(), config_of(algorithm, settings or {}), seed=seed
    )
    val = EpisodeSet("pick", options, part="val", episodes=1)
    optimum = jct_optimum(jobs, cluster).total
    torch.set_num_threads(1)
    began, total = time.monotonic(), float("inf")
    while made.steps < STEPS and time.monotonic() - began < seconds:
        made.iterate(made.steps / STEPS)
        total = val.policy(algorithm, made.policy).mean("mean_jct") * len(jobs)
        if total <= optimum * (1 + _ROUNDING):
            break
    rivals = val.heuristics(("fcfs+easy", "sjf+easy"))
    return {
        "algorithm": algorithm,
        "reached": total <= optimum * (1 + _ROUNDING),
        "jobs": len(jobs),
        "total_jct": total,
        "optimum": optimum,
        **{rival.name: rival.mean("mean_jct") * len(jobs) for rival in rivals},
        "steps": made.steps,
        "seconds": time.monotonic() - began,
    }
