"""Planned runs: names, seeds, what is chosen, and how a limit is shared out."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest
from tests.experiments.suites.small_suite import RUNS, SMALL, small_plan

from berthline.errors import ConfigError
from berthline.experiments.suites.planned_runs import PlannedRuns
from berthline.experiments.suites.suite_cells import cells_of_plan, number_of_cells
from berthline.experiments.suites.suite_plan import find_suite, shipped_suites


def with_changes(**changes: object) -> PlannedRuns:
    return PlannedRuns(msgspec.structs.replace(small_plan(), **changes))


def names(planned: PlannedRuns) -> list[str]:
    return [planned.name_of(unit, run) for unit in planned.units for run in planned.runs_of(unit)]


def test_all_runs_of_the_plan() -> None:
    planned = with_changes()
    assert len(planned) == RUNS
    assert [cell.name for cell in planned.cells] == [
        "synthetic@uniform:2x4:V100,load=0.9,jobs=40",
        "synthetic@uniform:2x4:V100,load=0.9,jobs=40~bursts:x2",
        "synthetic@uniform:2x4:V100,load=1.2,jobs=40",
        "synthetic@uniform:2x4:V100,load=1.2,jobs=40~bursts:x2",
        "base-low-2",
        "base-low-4",
    ]


@pytest.mark.parametrize("name", shipped_suites())
def test_the_number_of_cells_is_known_without_making_them(name: str) -> None:
    plan = find_suite(name)
    assert number_of_cells(plan) >= len(cells_of_plan(plan)) > 0


def test_core_is_what_it_says() -> None:
    plan = find_suite("core")
    planned = PlannedRuns(msgspec.structs.replace(plan, run="fcfs"))
    assert len(planned.cells) == 48
    assert len(planned) == 48 * 8 * 8 == 3072
    assert {cell.nodes.total_gpus for cell in planned.cells} == {2, 4, 8, 16}


def test_seeds_depend_on_names_only() -> None:
    whole, part = with_changes(), with_changes(only="base-low-4")
    of = {(u.clean.name, u.part, u.seed): u.seed_for("jobs") for u in whole.units}
    assert len(set(of.values())) == len(of)
    for unit in part.units:
        assert unit.seed_for("jobs") == of[unit.clean.name, unit.part, unit.seed]
        assert unit.seed_for("jobs") != unit.seed_for("run")


def test_patterns_choose_cells_or_runs() -> None:
    assert {n.split("/")[0] for n in names(with_changes(only="base-*"))} == {
        "base-low-2",
        "base-low-4",
    }
    one = with_changes(only="base-low-2/seed-1/sjf+easy")
    assert names(one) == ["base-low-2/seed-1/sjf+easy"]
    assert len(with_changes(only="*/seed-1/*")) == 6 * 3
    # A perturbed cell brings its clean twin only as far as it is measured against it.
    perturbed = with_changes(only="*load=0.9*~bursts:x2/seed-0/fcfs")
    assert names(perturbed) == ["synthetic@uniform:2x4:V100,load=0.9,jobs=40~bursts:x2/seed-0/fcfs"]
    with pytest.raises(ConfigError, match="which no run has") as caught:
        with_changes(only="bose-*")
    assert "seed-0/fcfs" in caught.value.expected


def test_every_name_chooses_its_run() -> None:
    planned = with_changes(policy=False, schedulers=["fcfs", "[submit - wait]+easy"])
    for name in names(planned):
        assert names(
            with_changes(only=name, policy=False, schedulers=["fcfs", "[submit - wait]+easy"])
        ) == [name]


def test_a_limit_keeps_all_shapes_and_sizes() -> None:
    plan = msgspec.structs.replace(find_suite("core"), limit=600, run="fcfs")
    planned = PlannedRuns(plan)
    assert 500 < len(planned) <= 600
    for axis in ("shape", "intensity", "cluster"):
        counted = Counter(getattr(unit.clean, axis) for unit in planned.units)
        assert max(counted.values()) - min(counted.values()) <= max(counted.values()) / 4, axis
    small = PlannedRuns(msgspec.structs.replace(plan, limit=12 * 8))
    assert {unit.clean.shape for unit in small.units} == {
        *("base", "bursty", "diurnal", "shifted-diurnal")
    }
    with pytest.raises(ConfigError, match="`limit` is 1"):
        PlannedRuns(msgspec.structs.replace(plan, limit=1))


def test_a_limit_counts_twins_and_val() -> None:
    for limit in (30, 60, 100):
        planned = with_changes(limit=limit)
        assert 0 < len(planned) <= limit
        for unit in planned.units:
            assert unit.cells[0].is_clean


def test_mistakes() -> None:
    with pytest.raises(ConfigError, match="listed twice"):
        with_changes(schedulers=["sjf", "sjf+strict"])
    with pytest.raises(ConfigError, match="the suite has 1"):
        with_changes(seeds=10_000, schedulers=[f"[submit * {n}]" for n in range(1, 20)])
    with pytest.raises(ConfigError, match="unknown gpus '3'"):
        PlannedRuns(small_plan(SMALL.replace("gpus = [2, 4]", "gpus = [3]")))
    with pytest.raises(ConfigError, match="unknown perturbation"):
        PlannedRuns(small_plan(SMALL.replace("bursts:x2", "burst:x2")))
    with pytest.raises(ConfigError, match="two cells have the name"):
        PlannedRuns(
            small_plan(
                SMALL
                + '\n[[cells]]\nregimes = "meta"\nperturbations = ["bursts:x2"]'
                + '\n[[cells]]\nregimes = "meta"\nperturbations = ["bursts:x2"]'
            )
        )
