"""Ablations: a part that is left out is trained again, without it."""

from __future__ import annotations

import json

import msgspec
import polars as pl
import pytest

from berthline.experiments.suites.run_suite import run_suite
from berthline.experiments.suites.suite_plan import find_suite
from berthline.learn.algorithms.configs import MetaDQNConfig
from berthline.learn.algorithms.meta_dqn import environment_options
from berthline.learn.training.train import train_config
from berthline.report.page.write_report import write_report
from berthline.report.suites.parts_figure import effects
from berthline.report.suites.shown_suite import shown_suite
from berthline.runs.open_run import open_run

SWITCHES = {
    "without the regime embedding": "regime_embedding",
    "without replay balancing": "balanced_replay",
    "without the deadline penalty": "deadline_shaping",
    "without the energy term": "energy",
    "without the target network": "target_network",
    "without columns of job age": "job_age",
}


def test_every_part_of_meta_dqn_has_its_switch():
    parts = {part.name.partition(", ")[2]: part.train for part in find_suite("ablation").parts}
    assert parts.pop("whole") == {}
    assert {name: train["config"] for name, train in parts.items()} == {
        name: {switch: False} for name, switch in SWITCHES.items()
    }


def test_without_a_penalty_no_reward_term_is_about_it():
    # The preset has such terms itself, which a switch of the algorithm does not remove.
    parts = {part.name.partition(", ")[2]: part.train for part in find_suite("ablation").parts}
    for name, term, other in (
        ("deadline penalty", "deadlines", "energy"),
        ("energy term", "power", "deadlines"),
    ):
        config = train_config("meta-dqn", preset="rlmetadqn", **parts[f"without the {name}"])
        settings = msgspec.convert(config.settings, MetaDQNConfig)
        reward = environment_options("meta", config.options, settings)["reward"]
        assert reward[term][1].startswith("0.0 *")
        assert not reward[other][1].startswith("0.0 *")
        assert ("energy" in reward) == settings.energy


def test_look_aheads_are_crossed_with_the_networks_that_fit():
    plan = find_suite("ablation-lookahead")
    asked = {(part.train["network"], part.train["env_options"]["lookahead"]) for part in plan.parts}
    assert len(plan.parts) == len(asked) == 16


def test_a_scheduler_of_rules_loses_one_seat_at_a_time():
    parts = {part.name: part.scheduler for part in find_suite("ablation-gate").parts}
    whole = parts["rules, whole"]
    assert whole == "sqrt-area+easy@best-fit?express-lane:T=3600:r=0.2!index"
    changed = [text for name, text in parts.items() if name.startswith("rules, ") and text != whole]
    assert len(changed) == 5


@pytest.mark.slow
def test_ablation(tmp_path):
    """All parts of Meta-DQN, trained again with few steps, five seeds each, in two regimes."""
    plan = find_suite("ablation")
    train = {**plan.train, "steps": 6000}
    cells = [msgspec.structs.replace(plan.cells[0], shape=["base", "bursty"], gpus=[4])]
    cells = [msgspec.structs.replace(cells[0], intensity=["high"])]
    plan = msgspec.structs.replace(plan, train=train, cells=cells, seeds=4)
    run_suite(plan, out=tmp_path / "run")
    columns = {}
    for part in plan.parts:
        folders = sorted((tmp_path / "run" / "training" / part.name).glob("seed-*"))
        assert len(folders) == 5
        for folder in folders:
            facts = json.loads(next(folder.glob("checkpoints/best-*/checkpoint.json")).read_bytes())
            config = facts["config"]["settings"]
            for name, switch in SWITCHES.items():
                assert config[switch] == (name not in part.name), (part.name, switch)
        columns[part.name] = sum(map(len, facts["layout"]["columns"].values()))
    whole = columns["Meta-DQN, whole"]
    assert columns["Meta-DQN, without columns of job age"] < whole
    runs = pl.read_parquet(tmp_path / "run" / "cells.parquet").filter(pl.col("part") != "")
    assert runs.group_by("part").agg(pl.col("training_seed").n_unique())["training_seed"].unique(
    ).to_list() == [5]  # fmt: skip
    suite = shown_suite(open_run(tmp_path / "run"))
    found = effects(suite)
    assert [one.part for one in found] == list(SWITCHES)
    assert all(one.ratio.windows == one.trained == 5 for one in found)
    told = write_report(tmp_path / "run").verdict
    assert told[0].startswith("Meta-DQN as a whole")
