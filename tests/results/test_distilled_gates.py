"""The page on short gates shows what its CSV file says; rules agree with what they imitate."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.distilled_gates import (
    CLUSTER,
    EXPERIMENT,
    JOBS,
    KEPT,
    LONG_JOBS,
    RULES,
    TERMS,
    Answers,
    imitated,
    shortened,
    windows_of,
)
from benchmarks.gate_transfer import Home
from benchmarks.paired_windows import MEASURES, names, parts
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.winning_settings import TRACES

import berthline as bl
from berthline.policies.shipped_policies import card_of

ROWS = read_rows(EXPERIMENT.csv)


def test_the_page_shows_what_the_csv_file_says() -> None:
    text = (RESULTS / f"{EXPERIMENT.page}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS, EXPERIMENT)) == text


def test_every_rule_was_judged() -> None:
    for setting in ("PPO, seed 0", "PPO, seed 1", "PPO, seed 1, long windows"):
        assert {*RULES, "network"} <= set(names(ROWS, "scheduler", setting=setting))
    pruned = {f"{count} of its {len(TERMS)} terms" for count in KEPT}
    assert pruned <= set(names(ROWS, "scheduler", setting="holdback on spread, 16x8"))


def test_shortened__with_all_terms_is_the_shipped_policy() -> None:
    card = card_of("holdback")
    assert shortened(list(TERMS), card.parameters["r"]) == card.scheduler


def test_imitated__finds_a_lane_from_its_answers() -> None:
    """Jobs longer than 1000 s are held while less than a third would be left."""
    rng = np.random.default_rng(0)
    estimate, left = 10 ** rng.uniform(0, 6, 4000), rng.uniform(0, 1, 4000)
    seen = np.zeros((4000, 9), np.float32)
    seen[:, 0], seen[:, 2] = np.log10(1 + estimate) / 6, left
    answers = Answers(list(seen), list((estimate > 1000) & (left < 1 / 3)))
    *_, threshold, share = imitated(RULES["lane: 2 numbers"], answers).split(":")
    assert float(threshold.removeprefix("T=")) == pytest.approx(1000, rel=0.1)
    assert float(share.removeprefix("r=")) == pytest.approx(1 / 3, abs=0.02)


def test_disagreement__counts_each_kind_of_answer_half() -> None:
    """Of two held jobs one has waited longer than it runs; the one that was started is short."""
    seen = np.zeros((3, 9), np.float32)
    seen[:, 0] = np.log10(1 + np.array([5000, 5000, 10])) / 6
    seen[:, 3] = 0.1, 0.9, 0.0  # wait / (wait + estimate)
    answers = Answers(list(seen), [True, True, False])
    lane = {"T": 1000.0, "r": 0.5}
    assert answers.disagreement("lane", lane) == 0
    assert answers.disagreement("patience", {**lane, "p": 1.0}) == 0.25
    assert answers.disagreement("lane", {"T": 1.0, "r": 0.5}) == 0.5
    slope = {"l": 0.0, "w": 0.5}
    assert answers.disagreement("slope", {**lane, **slope}) == 0.25


def test_rows_can_be_computed_again() -> None:
    """Of the first window of jobs that need neither a log nor a network."""
    home = Home("spread", "16x8")
    window = home.windows(TRACES)["report"][0]
    rows = [
        row for row in ROWS if (row["setting"], row["window"]) == (f"holdback on {home.name}", "0")
    ]
    assert rows
    for row in rows:
        run = bl.simulate(window, home.place.cluster, row["text"], knowledge="exact")
        values = {key: f"{read(run.metrics()):.10g}" for key, (_, read) in MEASURES.items()}
        assert {key: row[key] for key in values} == values


def test_rules_made_from_networks_can_be_computed_again() -> None:
    """Of the first windows; the networks themselves are not trained again."""
    cluster, compared = bl.Cluster.parse(CLUSTER), 0
    first = {
        "": windows_of(30_000, 1, JOBS)[0],
        ", long windows": windows_of(40_000, 1, LONG_JOBS)[0],
    }
    for row in ROWS:
        part = row["setting"][len("PPO, seed 0") :]
        is_rule = row["setting"].startswith("PPO") and row["scheduler"] != "network"
        if not is_rule or row["window"] != "0":
            continue
        found = bl.simulate(first[part], cluster, row["text"]).metrics()
        assert float(row["jct_mean"]) == pytest.approx(found.jct.mean, rel=1e-9)
        slowdown = found.bounded_slowdown.mean
        assert float(row["bounded_slowdown"]) == pytest.approx(slowdown, rel=1e-9)
        compared += 1
    assert compared == 20
