"""A trained policy with another placement or discipline, and the time of its decisions."""

import pytest
from tests.learn.made_policies import save_constant, save_shortest_first

import berthline as bl
from berthline.errors import PolicyError
from berthline.policies.scheduler import Scheduler

CLUSTER = "uniform:4x4:V100"
PICK = {"cluster": CLUSTER, "window": 16, "features": {"jobs": ["estimate / 1000"]}}


@pytest.fixture
def jobs():
    return bl.generate("synthetic", cluster=CLUSTER, jobs=120, load=1.3, seed=3)


def _log(jobs, scheduler, **options):
    return bl.simulate(jobs, CLUSTER, scheduler, **options).log.sha256()


def test_another_placement_is_that_of_an_environment_with_it(tmp_path, jobs):
    save_shortest_first(tmp_path / "run", PICK)
    save_shortest_first(tmp_path / "worst", {**PICK, "placement": "worst-fit"})
    run = str(tmp_path / "run")
    assert _log(jobs, f"{run}@worst-fit") == _log(jobs, str(tmp_path / "worst"))
    assert _log(jobs, f"{run}@worst-fit") != _log(jobs, run)
    assert _log(jobs, f"{run}@best-fit") == _log(jobs, run), "the default"
    assert _log(jobs, f"{run}@milp-candidates")


def test_the_canonical_text_names_the_same_scheduler(tmp_path, jobs):
    save_shortest_first(tmp_path / "a+b@c", PICK)
    for text in (f"{tmp_path}/a+b@c", f"{tmp_path}/a+b@c+skip@worst-fit"):
        name = str(Scheduler.parse(text))
        assert str(Scheduler.parse(name)) == name
        assert _log(jobs, name) == _log(jobs, text)
    assert name.endswith("+skip@worst-fit")


def test_the_schedulers_of_meta_all_get_the_rules(tmp_path, jobs):
    menu = {"cluster": CLUSTER, "schedulers": ("fcfs+easy", "sjf+strict@worst-fit")}
    save_constant(tmp_path / "meta", "meta", menu, 1, "kernel")
    meta = str(tmp_path / "meta")
    assert _log(jobs, meta) == _log(jobs, "sjf+strict@worst-fit")
    assert _log(jobs, f"{meta}+easy") == _log(jobs, "sjf+easy@worst-fit")
    assert _log(jobs, f"{meta}@first-fit") == _log(jobs, "sjf+strict@first-fit")


@pytest.mark.parametrize(
    ("rules", "told"),
    [("@nowhere", "unknown placement 'nowhere'"), ("+fast", "unknown discipline 'fast'")],
)
def test_unknown_rules_are_refused(tmp_path, rules, told):
    save_shortest_first(tmp_path / "run", PICK)
    with pytest.raises(PolicyError, match=told):
        Scheduler.parse(f"{tmp_path}/run{rules}")


def test_a_policy_that_places_takes_no_placement(tmp_path):
    rules = {"cluster": CLUSTER, "placements": ("best-fit", "worst-fit")}
    save_constant(tmp_path / "place", "place", rules, 0, "kernel")
    with pytest.raises(PolicyError, match="places the jobs itself"):
        Scheduler.parse(f"{tmp_path}/place@best-fit")


def test_choices_are_timed_and_change_nothing(tmp_path, jobs):
    save_shortest_first(tmp_path / "run", PICK)
    run = str(tmp_path / "run")
    found = bl.simulate(jobs, CLUSTER, run, time_decisions=True)
    latency = found.decision_latency()
    assert 0 < latency.p50 <= latency.p99 <= latency.max
    assert len(found.decision_seconds) >= len(jobs)
    assert found.log.sha256() == _log(jobs, run)
