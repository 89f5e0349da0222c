"""The page on five headlines shows what its CSV file says, and its commands are what was run."""

from __future__ import annotations

import shlex

import pytest
from benchmarks.five_headlines import HEADLINES, LOADS, PAGE, RANDOM, SEEDS, interval, parts
from benchmarks.result_files import RESULTS, filled, read_rows

from berthline.learn.training.recipes import RECIPES
from berthline.policies.scheduler import Scheduler

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


@pytest.mark.parametrize("headline", HEADLINES, ids=[one.name for one in HEADLINES])
def test_seeds_were_trained_with_the_recipe_of_the_preset(headline) -> None:
    own = [row for row in ROWS if row["headline"] == headline.name]
    policies = [row for row in own if row["scheduler"] == "policy"]
    assert [int(row["seed"]) for row in policies] == list(SEEDS)
    algorithm, flag, preset = shlex.split(headline.command)
    assert flag == "--preset"
    recipe = RECIPES[preset, algorithm]
    for row in policies:
        # Whole iterations.
        assert recipe.steps <= int(row["steps"]) < 1.1 * recipe.steps
        assert 0 <= int(row["best_step"]) <= int(row["steps"])


@pytest.mark.parametrize("headline", HEADLINES, ids=[one.name for one in HEADLINES])
def test_all_seeds_and_rules_had_the_same_episodes(headline) -> None:
    own = [row for row in ROWS if row["headline"] == headline.name]
    assert len({row["episodes"] for row in own}) == 1
    rules = {row["scheduler"] for row in own} - {"policy", RANDOM}
    assert set(headline.over) <= rules
    for rule in rules:
        Scheduler.parse(rule)
        assert len({row["value"] for row in own if row["scheduler"] == rule}) == 1


def test_the_loads_are_those_of_the_presets() -> None:
    for _, preset, rules in LOADS:
        found = [row["scheduler"] for row in ROWS if row["headline"] == f"rules on {preset}"]
        assert found == list(rules)


def test_the_interval_is_students() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
    assert mean == 3.0
    assert high - mean == pytest.approx(2.776445 * (2.5 / 5) ** 0.5, rel=1e-5)
    assert mean - low == pytest.approx(high - mean)
