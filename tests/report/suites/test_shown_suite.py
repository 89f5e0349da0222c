"""The results of a suite: ratios to the best rule, parts, twins, by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from tests.report.suites.suite_rows import row, suite_of

from berthline.experiments.robustness_measures import PARTS
from berthline.report.run_results import NotShown
from berthline.report.suites.against_twin import against_twins
from berthline.report.suites.cell_names import short_cells
from berthline.report.suites.parts_figure import effects
from berthline.report.suites.regime_map import regime_data
from berthline.report.suites.suite_sentences import suite_sentences

NOISE = (0.9, 1.0, 1.1, 0.95, 1.05, 1.0, 0.98, 1.02)


def rules_and_policy(factor=1.2, *, page=""):
    """Two rules and a policy; a is best in cell x, b in cell y; the policy is worse than both."""
    rows = []
    for seed, noise in enumerate(NOISE):
        jct = 100 * noise
        rows += [row("x", "a", seed, jct), row("x", "b", seed, 2 * jct)]
        rows += [row("y", "a", seed, 3 * jct), row("y", "b", seed, jct)]
        rows += [row(cell, "learned", seed, factor * jct * (1 + 0.01 * seed)) for cell in "xy"]
    return suite_of(rows, schedulers=["a", "b"], page=page)


def test_every_cell_has_its_own_best_rule():
    suite = rules_and_policy()
    assert suite.rules == ["a", "b"]
    assert [suite.best_rule(cell) for cell in "xy"] == ["a", "b"]
    found = {(one.cell, one.scheduler): one for one in suite.ratios}
    assert found["x", "b"].ratio == pytest.approx(2)
    assert found["y", "a"].ratio == pytest.approx(3)
    assert suite.overall["a"].ratio == pytest.approx(math.sqrt(3))
    expected = math.exp(np.mean(np.log([1.2 * (1 + 0.01 * seed) for seed in range(8)])))
    assert found["x", "learned"].ratio == pytest.approx(expected)
    assert not found["x", "learned"].is_open
    assert suite.ranked == ["learned", "b", "a"]
    assert suite.subject == "learned"
    assert suite.best_in("a") == suite.best_in("b") == 1
    assert suite.best_in("learned") == 0
    assert suite.worst("a").cell == "y"


def test_a_failed_rule_is_not_the_best_of_its_cell():
    rows = [row("x", "a", seed, 50, error="killed" if seed == 1 else None) for seed in range(3)]
    rows += [row("x", "b", seed, 100) for seed in range(3)]
    suite = suite_of(rows, schedulers=["a", "b"])
    assert suite.best_rule("x") == "b"


def test_training_seeds_are_no_further_windows():
    # The policy of training seed 0 is 10 % worse, that of seed 1 is 21 % worse, on every seed.
    rows = [row("x", "a", seed, 100 * noise) for seed, noise in enumerate(NOISE)]
    rows += [
        row("x", "net", seed, 100 * noise * factor, part="net", training_seed=trained)
        for seed, noise in enumerate(NOISE)
        for trained, factor in enumerate((1.1, 1.21))
    ]
    suite = suite_of(rows, schedulers=["a"], parts=[("net", {"train": {}})])
    one = next(one for one in suite.ratios if one.scheduler == "net")
    assert one.ratio == pytest.approx(1.1**1.5)
    assert one.low == pytest.approx(1.1**1.5)  # the noise of the jobs cancels, seed by seed


def test_losses_come_first():
    told = suite_sentences(rules_and_policy())
    assert "learned 1.24" in told[0]
    assert "loses to it" in told[0]
    assert "Rules that no other beats, by cells: a in 1, b in 1." in told


def test_what_is_equal_does_not_lose():
    told = suite_sentences(rules_and_policy(factor=0.9))
    assert told[0].startswith("Not worse than the best fixed rule of each cell: learned 0.9")


def test_the_tail_is_told():
    rows = []
    for seed, noise in enumerate(NOISE):
        for number, cell in enumerate("uvwxyz"):
            times = noise * (1 + 0.1 * number)
            rows.append(row(cell, "sjf", seed, 100 * times, jct_p99=500 * times))
            rows.append(row(cell, "fcfs", seed, 150 * times, jct_p99=400 * times))
    told = suite_sentences(suite_of(rows, schedulers=["sjf", "fcfs"]))
    assert "In the tail it loses: p99 JCT 1.250 [1.250, 1.250] times that of fcfs." in told


# --- parts ---------------------------------------------------------------------------------------


def trained(name, factors, *, cells="xy"):
    return [
        row(cell, name, seed, 100 * noise * factor, part=name, training_seed=number)
        for seed, noise in enumerate(NOISE)
        for cell in cells
        for number, factor in enumerate(factors)
    ]


def test_the_unit_of_a_trained_part_is_its_training_seed():
    whole, without = (1.0, 1.02, 0.98, 1.01, 0.99), (1.1, 1.13, 1.07, 1.11, 1.10)
    rows = [row(cell, "rule", seed, 90) for cell in "xy" for seed in range(8)]
    rows += trained("net, whole", whole) + trained("net, without a", without)
    rows += trained("net, without b", whole)
    parts = [(f"net, {name}", {"train": {}}) for name in ("whole", "without a", "without b")]
    suite = suite_of(rows, schedulers=["rule"], parts=parts)
    first, second = effects(suite)
    assert (first.group, first.part, first.trained) == ("net", "without a", 5)
    assert first.ratio.windows == 5
    logs = np.log(without) - np.log(whole)
    assert first.ratio.ratio == pytest.approx(math.exp(logs.mean()))
    assert first.ratio.low > 1
    assert first.verdict.startswith("worse by")
    # Holm: the smaller of two p-values counts twice.
    assert first.p_value == pytest.approx(2 * first.ratio.p_value)
    assert second.verdict.startswith("equal with every training seed")
    told = suite_sentences(suite)
    assert "A part of nothing is worth nothing" in told[0]


def test_a_whole_that_does_not_beat_its_rule_in_training_is_told(tmp_path):
    for number, ours in enumerate((-5.0, -4.0, -6.0)):
        folder = tmp_path / "training" / "net, whole" / f"seed-{number}"
        folder.mkdir(parents=True)
        summary = {"best_heuristic": "sjf", "report": {"return": {"policy": ours, "sjf": -4.5}}}
        (folder / "summary.json").write_text(json.dumps(summary))
    rows = [row("x", "rule", seed, 90) for seed in range(8)]
    rows += trained("net, whole", (1.0, 1.1), cells="x")
    rows += trained("net, without a", (1.2, 1.3), cells="x")
    parts = [(f"net, {name}", {"train": {}}) for name in ("whole", "without a")]
    told = suite_sentences(suite_of(rows, schedulers=["rule"], parts=parts, path=tmp_path))
    assert (
        "In training, 1 of 3 policies of net beat the rule that was best on VAL (sjf), by the "
        "return on held-out episodes." in told
    )


def test_a_part_that_could_be_chance_says_so():
    generator = np.random.default_rng(5)
    rows = [row("x", "rule", seed, 90) for seed in range(8)]
    rows += trained("net, whole", (1.0,) * 5, cells="x")
    names = [f"without {number}" for number in range(6)]
    for number, name in enumerate(names):
        wide = np.exp(0.02 * generator.standard_normal(5) + (0.03 if not number else 0.0))
        rows += trained(f"net, {name}", tuple(wide), cells="x")
    parts = [(f"net, {name}", {"train": {}}) for name in ("whole", *names)]
    found = effects(suite_of(rows, schedulers=["rule"], parts=parts))
    assert all(one.p_value >= one.ratio.p_value for one in found)
    assert found[0].ratio.low > 1
    assert "not after correction for 6 comparisons" in found[0].verdict


def test_rules_are_compared_over_seeds_of_jobs():
    parts = [("rules, whole", {"scheduler": "sjf"}), ("rules, order: fcfs", {"scheduler": "fcfs"})]
    rows = [
        row(cell, name, seed, 100 * noise * factor, part=name)
        for seed, noise in enumerate(NOISE)
        for cell in "xy"
        for name, factor in (("rules, whole", 1.0), ("rules, order: fcfs", 1.5 * (1 + seed / 100)))
    ]
    (one,) = effects(suite_of(rows, schedulers=[], parts=parts))
    assert one.trained == 0
    assert one.ratio.windows == 8
    assert 1.5 < one.ratio.ratio < 1.6


# --- twins ---------------------------------------------------------------------------------------


def perturbed(scheduler, seed, jct, text, *, curve, exploded=0.0):
    return row(
        "x~" + text, scheduler, seed, jct, perturbation=text, twin="x", regime="x",
        queue_max_ratio=4.0 if exploded else 1.5, queue_exploded=exploded,
        queue_curve_seconds=360_000.0, queue_curve=curve,
        twin_queue_curve=[float(seed)] * PARTS,
    )  # fmt: skip


def robust_suite():
    """A dip that doubles JCT under a, and after which the queue never recovers under b."""
    text, rows = "capacity-dip:30%/6h", []
    back = [0.0] * 34 + [99.0] * 10 + [0.0] * 56
    for seed, noise in enumerate(NOISE):
        rows += [row("x", "a", seed, 100 * noise), row("x", "b", seed, 150 * noise)]
        rows.append(perturbed("a", seed, 200 * noise, text, curve=back))
        never = [0.0] * 40 + [99.0] * 60
        rows.append(perturbed("b", seed, 150 * noise, text, curve=never, exploded=float(seed < 2)))
    return suite_of(rows, schedulers=["a", "b"])


def test_perturbed_runs_are_paired_with_their_twins():
    a, b = against_twins(robust_suite())
    assert (a.scheduler, a.kind, a.runs) == ("a", "capacity-dip", 8)
    assert a.ratio.ratio == pytest.approx(2)
    assert b.ratio.ratio == pytest.approx(1)
    assert (a.exploded, b.exploded) == (0, 0.25)
    # Above from part 34 to 43; the dip begins at a third of 100 parts of 3,600 s.
    assert a.recovery == pytest.approx((44 - 100 / 3) * 3600)
    assert b.recovery == math.inf
    assert b.not_recovered == 1
    assert a.varies == pytest.approx(a.twin_varies)


def test_schedulers_that_explode_are_named():
    told = " ".join(suite_sentences(robust_suite()))
    assert "under: b (25 % of runs under capacity-dip:30%/6h)." in told
    assert "None of the queues of a explodes." in told
    assert "does not return to the band of the clean twin" in told
    assert "capacity-dip:30%/6h under b." in told


def test_a_suite_without_perturbations_has_no_twins():
    with pytest.raises(NotShown, match="nothing is perturbed"):
        against_twins(rules_and_policy())


# --- regimes -------------------------------------------------------------------------------------


def test_a_regime_is_a_shape_an_intensity_and_gpus():
    rows = []
    for shape in ("base", "bursty"):
        for gpus in (2, 4):
            for seed, noise in enumerate(NOISE):
                more = {"shape": shape, "intensity": "low", "gpus": gpus}
                cell = f"{shape}-low-{gpus}"
                rows.append(row(cell, "a", seed, 100 * noise, **more))
                rows.append(row(cell, "best-on-val", seed, 100 * noise * gpus, **more))
    frame = regime_data(suite_of(rows, schedulers=["a"]))
    assert frame["scheduler"].unique().to_list() == ["best-on-val"]
    assert frame.select("shape", "gpus", "ratio").rows() == [
        ("base", 2, pytest.approx(2)),
        ("base", 4, pytest.approx(4)),
        ("bursty", 2, pytest.approx(2)),
        ("bursty", 4, pytest.approx(4)),
    ]


def test_names_of_cells_leave_out_what_all_have():
    cells = ["a@c,load=0.9,jobs=5", "b@c,load=0.9,jobs=5", "b@c,load=1.1,jobs=5"]
    assert list(short_cells(cells).values()) == ["a, load=0.9", "b, load=0.9", "b, load=1.1"]
    assert len(set(short_cells([f"{'x' * 60},n={n}" for n in range(3)]).values())) == 3
