"""Rivals of policies begin where the episodes of the environments begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tests.env.agents import plain

from berthline.learn.training.validation import EpisodeSet

if TYPE_CHECKING:
    from berthline.learn.training.environments import Environments


def test_rivals_of_warm_episodes__have_the_scores_of_the_rule_in_its_seat() -> None:
    options: dict[str, Any] = {
        **plain("gate"),
        "start": "warm",
        "cluster": "uniform:4x4:V100",
        "load": 0.9,
        "episode_jobs": 24,
    }
    validation = EpisodeSet("gate", options, part="val", episodes=8)

    def start_all(envs: Environments) -> Any:
        return np.ones(8, np.int64)

    own = validation.run("gate", start_all)
    [rival] = validation.heuristics(["fcfs+easy@best-fit"])
    for metric, values in own.metrics.items():
        np.testing.assert_allclose(rival.metrics[metric], values, rtol=1e-9, err_msg=metric)
