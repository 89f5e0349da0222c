"""The default task is learned in a minute: far better than FCFS, with small budgets.

The full budgets and five seeds are in docs/results/learning-first-step.md.
"""

from __future__ import annotations

import json
import runpy
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest
from tests.shared_traces import REPOSITORY

from berthline.env.vector import SchedulingVectorEnv
from berthline.environments import expert_actions
from berthline.learn.training.train import train

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
RIVALS = ("sjf+easy", "sqrt-area+easy", "smallest-area+easy", "fcfs+easy", "fcfs+skip")
SEEDS = range(10**9, 10**9 + 96)


@pytest.mark.parametrize(
    ("algorithm", "steps", "greedy", "sampled"),
    [("ppo", 130_000, 0.01, 0.02), ("d3qn", 24_000, 0.02, None), ("sac", 24_000, 0.02, 0.02)],
)
def test_our_algorithms__come_near_the_best_rule(
    algorithm: str, steps: int, greedy: float, sampled: float | None, tmp_path: Path
) -> None:
    found = train(algorithm, steps=steps, episodes=64, against=RIVALS, out=tmp_path / "run")
    assert found.summary is not None
    report = json.loads((tmp_path / "run/summary.json").read_text())["report"]
    mine = report["policy"]["mean_jct"]
    rules = {name: report["against"][name]["mean_jct"]["mean"] for name in RIVALS}
    assert mine < (1 + greedy) * min(rules.values())
    assert mine < 0.9 * rules["fcfs+easy"]
    assert mine < 0.9 * rules["fcfs+skip"]
    if sampled is None:
        return
    its = runpy.run_path(str(REPOSITORY / "benchmarks/learning_first_step.py"))
    drawn = its["scores_of_run"](tmp_path / "run")["sampled"]
    _, known = its["rules_of_the_task"](tmp_path)
    assert drawn.mean() < (1 + sampled) * known[its["best_rule"](known)].mean()


def test_ppo_in_one_file__comes_near_the_best_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["cleanrl_ppo.py", "160000", "1"])
    its = runpy.run_path(str(REPOSITORY / "examples/cleanrl_ppo.py"))
    rules = {rule: its["judge"](_following(rule), SEEDS, [rule]).mean() for rule in RIVALS[:-1]}
    for way in ("greedy", "sampled"):
        mine = its["judge"](its[way], SEEDS).mean()
        assert mine < 0.9 * rules["fcfs+easy"], way
        assert mine < (1.01 if way == "greedy" else 1.025) * min(rules.values()), way


def _following(rule: str):
    return lambda envs, _: expert_actions(envs, rule)


def test_random_ranks_are_as_bad_as_first_come_first_served() -> None:
    """So whatever is better was learned."""
    envs = SchedulingVectorEnv(len(SEEDS), "pick")
    envs.reset(seed=list(SEEDS))
    draws, jct = np.random.default_rng(0), np.full(len(SEEDS), np.nan)
    while np.isnan(jct).any():
        noise = np.where(envs.action_masks(), draws.random((len(SEEDS), 33)), -1)
        _, _, terminated, truncated, infos = envs.step(noise.argmax(axis=1))
        over = (terminated | truncated) & np.isnan(jct)
        if over.any():
            jct[over] = infos["final_info"]["sched"]["mean_jct"][over]
    assert jct.mean() > 6000
