"""Validation: the rivals of policies, and the episodes."""

import numpy as np
import pytest

from berthline.learn.training.validation import HEURISTICS, EpisodeSet

OPTIONS = {"episode_jobs": 48, "load": 2.0, "order": "sjf"}


def test_the_gate_left_open_is_its_base_scheduler_and_is_among_the_rivals():
    val = EpisodeSet("gate", OPTIONS, part="val", episodes=6)
    rivals = {scores.name: scores for scores in val.heuristics()}
    assert {*HEURISTICS, "sjf+easy@best-fit"} < set(rivals)
    assert any("express-lane" in name for name in rivals)
    opened = val.run("open", lambda envs: np.ones(envs.num, np.int64))
    for metric, values in rivals["sjf+easy@best-fit"].metrics.items():
        assert opened.metrics[metric] == pytest.approx(values, rel=1e-5), metric
    # A scheduler without a placement gets that of the environment.
    assert rivals["sjf+easy"].metrics == rivals["sjf+easy@best-fit"].metrics
    elsewhere = EpisodeSet("gate", {**OPTIONS, "placement": "worst-fit"}, part="val", episodes=6)
    assert elsewhere.heuristics(["sjf+easy"])[0].metrics != rivals["sjf+easy"].metrics


def test_what_was_found_is_kept_for_the_same_episodes_only():
    val, again = (EpisodeSet("pick", OPTIONS, part="val", episodes=4) for _ in range(2))
    [first] = val.heuristics(["fcfs"])
    assert again.heuristics(["fcfs"])[0] is first
    report = EpisodeSet("pick", OPTIONS, part="report", episodes=4)
    assert report.heuristics(["fcfs"])[0].metrics != first.metrics
