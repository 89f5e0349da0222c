"""Plans: the TOML form, its mistakes, and the suites that the package brings."""

from __future__ import annotations

import tomllib

import msgspec
import pytest
from tests.experiments.suites.small_suite import SMALL, small_plan

from berthline.errors import ConfigError
from berthline.experiments.suites.suite_plan import find_suite, read_plan, shipped_suites
from berthline.runs.run_directory import to_toml


def test_a_plan_survives_being_written() -> None:
    for plan in (small_plan(), *shipped_suites().values()):
        text = to_toml(plan.table())
        assert read_plan(text.encode(), where="x") == plan
        assert tomllib.loads(text)["seeds"] == plan.seeds


def test_shipped_suites_are_found_by_their_name_and_as_files(tmp_path) -> None:
    for name, plan in shipped_suites().items():
        assert find_suite(name) == plan
        assert plan.about
        file = tmp_path / f"{name}.toml"
        file.write_text(to_toml(plan.table()))
        assert find_suite(str(file)) == plan


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("seeds = 3", "seed_count = 3"), "unknown key 'seed_count'|seeds is missing"),
        (('about = "a few short runs"', ""), "about is missing"),
        (("seeds = 3", "seeds = 0"), "`seeds` is 0"),
        (("load = [0.9, 1.2]", "load = []"), "`load` is empty"),
        (("jobs = 40", 'jobs = "many"'), "jobs"),
        (('regimes = "meta"', 'regimes = "mata"'), "unknown regimes 'mata'"),
        (('regimes = "meta"', 'regimes = "meta"\nload = 0.5'), "`load` is given beside"),
        (('workload = "synthetic"', ""), "`workload` is missing"),
        (('schedulers = ["fcfs", "random+skip", "sjf+easy"]', ""), "nothing to run"),
        (("policy = true", 'metric = "jct"'), "unknown metric 'jct'"),
        (("policy = true", 'knowledge = "some"'), "unknown knowledge 'some'"),
        (("seeds = 3", "seeds = "), "nvalid"),
    ],
)
def test_a_mistake_is_named_with_its_place(change: tuple[str, str], what: str) -> None:
    assert change[0] in SMALL
    with pytest.raises(ConfigError, match=what) as caught:
        small_plan(SMALL.replace(*change))
    assert "small.toml" in caught.value.where or "metric" in what or "seeds" in what


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ('name = "a"', "a rule or is trained"),
        ('name = "a"\nscheduler = "fcfs"\ntrain = {}', "a rule or is trained"),
        ('name = "a/b"\nscheduler = "fcfs"', "has a slash"),
    ],
)
def test_mistakes_of_parts(part: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        small_plan(f"{SMALL}\n[[parts]]\n{part}\n")


def test_unknown_suites_are_told_with_the_nearest_name(tmp_path) -> None:
    with pytest.raises(ConfigError, match="unknown suite 'coer'") as caught:
        find_suite("coer")
    assert "'core'" in caught.value.hint
    with pytest.raises(ConfigError, match="cannot read the suite"):
        find_suite(str(tmp_path / "none.toml"))


def test_the_default_plan_has_every_field_documented() -> None:
    plan = small_plan()
    doc = type(plan).__doc__ or ""
    for field in msgspec.structs.fields(plan):
        assert f"{field.name}:" in doc
