"""The page on the suites shows what its CSV file says, and says what it shows."""

from __future__ import annotations

import pytest
from benchmarks.result_files import RESULTS, filled, read_rows
from benchmarks.suites import PAGE, STEPS, UNTAUGHT, of, parts, recovery_of, row, rows_of
from tests.report.suites.suite_rows import row as run
from tests.report.suites.suite_rows import suite_of

from berthline.experiments.suites.suite_cells import cells_of_plan
from berthline.experiments.suites.suite_plan import find_suite

ROWS = read_rows(RESULTS / f"{PAGE}.csv")


def test_the_page_shows_what_the_csv_file_says():
    text = (RESULTS / f"{PAGE}.md").read_text(encoding="utf-8")
    assert filled(text, parts(ROWS)) == text


def test_every_suite_of_the_page_is_in_the_csv_file():
    for name in STEPS:
        plan = find_suite(name)
        listed = {one["scheduler"] for one in of(ROWS, name, "overall")}
        assert {*plan.schedulers, *(part.name for part in plan.parts)} <= listed


def test_robustness_has_160_scenarios():
    cells = cells_of_plan(find_suite("robustness"))
    assert sum(not cell.is_clean for cell in cells) == 160
    assert len({cell.regime for cell in cells}) == 10
    shown = {one["item"] for one in of(ROWS, "robustness", "twin")}
    assert shown == {cell.perturbation for cell in cells if not cell.is_clean}
    by_seed = {int(one["words"]) for one in of(ROWS, "robustness", "twin")}
    assert by_seed == {16, 32, 80}  # 2, 4 or 10 regimes, 8 seeds each


def by_item(table, suite, scheduler):
    return {
        one["item"]: float(one["ratio"])
        for one in of(ROWS, suite, table)
        if one["scheduler"] == scheduler
    }


def test_what_the_page_says_of_losses_is_so():
    overall = {one["scheduler"]: one for one in of(ROWS, "online", "overall")}
    bandits = [name for name in overall if name.startswith("bandit:")]
    assert len(bandits) == 4
    assert all(float(overall[name]["low"]) > 1 for name in bandits)
    assert float(of(ROWS, "robustness", "overall")[1]["more"]) < 1.07
    explosions = {
        one["scheduler"]: int(one["count"]) / int(one["words"])
        for one in of(ROWS, "robustness", "twin")
        if one["item"] == "drift:base+bursty-high+diurnal"
    }
    assert min(explosions["fcfs+easy"], explosions["f1+easy"]) > 1 / 3
    assert explosions["las+skip!las"] == 0.25


def test_what_the_page_says_of_robustness_is_so():
    fcfs, sjf, las = (
        by_item("twin", "robustness", name) for name in ("fcfs+easy", "sjf+easy", "las+skip!las")
    )
    dip = "capacity-dip:50%/6h"
    small = [
        one
        for one in of(ROWS, "robustness", "twin")
        if one["item"].partition(":")[0] in ("arrival-noise", "phase-shift")
    ]
    held = [float(one["low"]) <= 1 <= float(one["high"]) for one in small]
    assert sum(held) / len(held) > 0.9
    hours = [one for one in of(ROWS, "robustness", "twin") if one["item"].endswith("%/1h")]
    assert max(float(one["ratio"]) for one in hours) < 1.055
    assert 0.25 < (sjf[dip] - 1) / (fcfs[dip] - 1) < 0.45
    assert las["estimates:lognormal"] == pytest.approx(1, abs=0.005)
    assert las["run-times:lognormal"] < 0.92


def test_rows_hold_what_a_suite_found():
    rows = [
        run("x", name, seed, (100 + seed) * factor, part="" if name == "a" else name)
        for seed in range(4)
        for name, factor in (("a", 1.0), ("bandit", 1.5), (UNTAUGHT, 2.0))
    ]
    named = [(name, {"scheduler": "sjf"}) for name in ("bandit", UNTAUGHT)]
    found = list(rows_of("own", suite_of(rows, schedulers=["a"], parts=named)))
    assert {one["table"] for one in found} == {"verdict", "overall", "taught"}
    (taught,) = of(found, "own", "taught")
    assert float(taught["ratio"]) == pytest.approx(0.75)
    worst = {one["scheduler"]: one["more"] for one in of(found, "own", "overall")}
    assert worst == {"a": "1", "bandit": "1.5", UNTAUGHT: "2"}


def test_a_queue_that_does_not_recover_is_shown_as_such():
    assert recovery_of(row("own", "twin", more=float("inf"))) == "∞"
    assert recovery_of(row("own", "twin")) == "-"
