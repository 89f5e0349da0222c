"""Invalid options are refused, and the error says what is expected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.env.agents import SMALL

import berthline as bl
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import BerthlineError, ConfigError, PolicyError

TRACE = bl.Workload.from_columns(submit=[0.0, 1.0], run=10.0, gpus=[1, 2])

WRONG: list[tuple[str, dict[str, Any], type[BerthlineError], str]] = [
    ("pick", {"windw": 8}, ConfigError, "window"),
    ("pick", {"semantics": "masks"}, ConfigError, "mask"),
    ("pick", {"observation": "dicts"}, ConfigError, "dict"),
    ("pick", {"window_policy": "heads"}, ConfigError, "head"),
    ("pick", {"lookahead": "sort"}, ConfigError, "sorted"),
    ("pick", {"preset": "rltun"}, ConfigError, "preset"),
    ("pick", {"features": "defalt"}, ConfigError, "default"),
    ("pick", {"features": {"job": ["wait"]}}, ConfigError, "jobs"),
    ("pick", {"features": {"jobs": "wait"}}, ConfigError, "list of formulas"),
    ("pick", {"features": ["wiat / 3600"]}, PolicyError, "wait"),
    ("pick", {"features": {"globals": ["wait"]}}, PolicyError, "wait"),
    ("pick", {"features": {"nodes": ["gpus"]}}, PolicyError, "gpus"),
    ("pick", {"features": ["jct"]}, PolicyError, "reward"),
    (
        "pick",
        {"features": {"jobs": [], "nodes": [], "running": [], "globals": []}},
        ConfigError,
        "at least one",
    ),
    ("pick", {"reward": "jcts"}, ConfigError, "jct"),
    ("pick", {"reward": {}}, ConfigError, "reward"),
    ("pick", {"reward": {"a": ("secnd", "-queue_len")}}, ConfigError, "second"),
    ("pick", {"reward": {"a": ("second", "-queue_length")}}, PolicyError, "queue_len"),
    ("pick", {"reward": {"a": ("second", "-jct")}}, PolicyError, "jct"),
    ("pick", {"reward": {"a": "-jct"}}, ConfigError, "occasion"),
    ("pick", {"reward": "jct", "reward_weights": {"jtc": 1.0}}, ConfigError, "jct"),
    ("pick", {"order": "sfj"}, PolicyError, "sjf"),
    ("pick", {"placement": "bestfit"}, PolicyError, "best-fit"),
    ("gate", {"discipline": "eesy"}, PolicyError, "easy"),
    ("gate", {"discipline": "rounds"}, ConfigError, "strict, skip or easy"),
    ("place", {"discipline": "conservative"}, ConfigError, "strict, skip or easy"),
    ("gate", {"placement": "milp"}, ConfigError, "placement"),
    ("gate", {"placement": "fgd"}, ConfigError, "placement"),
    ("gate", {"semantics": "wait"}, ConfigError, "Pick"),
    ("pick", {"semantics": "wait", "gate": "express-lane"}, ConfigError, "gate"),
    ("pick", {"semantics": "rank", "discipline": "rounds"}, ConfigError, "conservative"),
    ("pick", {"semantics": "rank", "no_op": "never"}, ConfigError, "without a no-op"),
    ("pick", {"no_op": "sometimes"}, ConfigError, "when_blocked"),
    ("pick", {"semantics": "mask", "rerank": True}, ConfigError, 'semantics="rank"'),
    ("gate", {"rerank": True}, ConfigError, "Pick"),
    ("pickplace", {"semantics": "rank"}, ConfigError, "Pick"),
    ("meta", {"schedulers": []}, ConfigError, "at least one"),
    ("meta", {"schedulers": ["sjf+esy"]}, PolicyError, "easy"),
    ("meta", {"schedulers": ["fcfs+rounds"]}, ConfigError, "rounds"),
    ("meta", {"schedulers": ["srpt+skip!srpt"]}, BerthlineError, ""),
    ("meta", {"schedulers": ["fcfs@scatter"]}, ConfigError, "placement"),
    ("place", {"placements": ["fgd"]}, ConfigError, "placement"),
    ("place", {"placement": "scatter"}, ConfigError, "node by node"),
    ("place", {"placement": "defrag"}, ConfigError, "node by node"),
    ("pickplace", {"placement": "balance"}, ConfigError, "node by node"),
    ("pick", {"knowledge": "nothing"}, ConfigError, "none"),
    ("pick", {"knowledge": "none", "order": "sjf"}, PolicyError, "run times"),
    ("pick", {"knowledge": "none", "features": ["estimate"]}, PolicyError, "run times"),
    ("pick", {"knowledge": "none", "lookahead": "cdf"}, PolicyError, "run times"),
    ("preempt", {"knowledge": "none", "running_order": "remaining"}, PolicyError, "run times"),
    ("meta", {"knowledge": "none", "schedulers": ["sjf"]}, PolicyError, "run times"),
    ("pick", {"reward": "relative-jct", "knowledge": "none"}, PolicyError, "run times"),
    ("pick", {"reward": "relative-jct", "baseline": "fcfs@fgd"}, ConfigError, "baseline"),
    ("pick", {"reward": "relative-jct", "baseline": "fcfs@milp"}, ConfigError, "baseline"),
    ("pick", {"baseline": "nope"}, PolicyError, "nope"),
    ("pick", {"baseline": "fcfs@fgd"}, ConfigError, "baseline"),
    ("pick", {"window_formulas": ["wiat"]}, PolicyError, "wait"),
    ("backfill", {"features": {"running": []}, "running_order": "wiat"}, PolicyError, "wait"),
    ("pick", {"reward": "lookahead"}, ConfigError, "horizon_factor=1.3"),
    ("pick", {"window": 0}, ConfigError, "window"),
    ("pick", {"window": 2.5}, ConfigError, "window"),
    ("pick", {"max_steps": 0}, ConfigError, "max_steps"),
    ("gate", {"max_holds": -1}, ConfigError, "max_holds"),
    ("gate", {"hold_seconds": -1.0}, ConfigError, "hold_seconds"),
    ("gate", {"recheck": -1.0}, ConfigError, "recheck"),
    ("meta", {"every_seconds": -1.0}, ConfigError, "every_seconds"),
    ("pick", {"horizon_factor": float("nan")}, ConfigError, "horizon_factor"),
    ("pick", {"lookahead_seconds": 0.0}, ConfigError, "lookahead_seconds"),
    ("pick", {"workload": "synthetc"}, BerthlineError, "synthetic"),
    ("pick", {"split": "train"}, ConfigError, "split"),
    ("pick", {"episode_jobs": None}, ConfigError, "episode_jobs"),
    ("pick", {"workload": TRACE, "load": (0.5, 1.0), "episode_jobs": None}, ConfigError, "load"),
    ("pick", {"workload": TRACE, "load": [0.5, 1.0], "episode_jobs": None}, ConfigError, "load"),
    ("pick", {"load": (0.5, 0.7, 1.0)}, ConfigError, "two of them: (lowest, highest)"),
    ("pick", {"workload": TRACE, "load": None, "episode_jobs": 3}, BerthlineError, ""),
    ("pick", {"conditions": {"restrat": 3}}, BerthlineError, "restart"),
]


@pytest.mark.parametrize(("seat", "given", "kind", "says"), WRONG)
def test_wrong_options__are_refused(
    seat: str, given: dict[str, Any], kind: type[BerthlineError], says: str
) -> None:
    with pytest.raises(kind) as caught:
        SchedulingEnv(seat, **{**SMALL, **given})
    error = caught.value
    assert says in str(error)
    with pytest.raises(kind):
        SchedulingVectorEnv(2, seat, **{**SMALL, **given})


@pytest.mark.parametrize("given", [{"num_envs": 0}, {"num_envs": 2, "num_threads": 0}])
def test_wrong_numbers_of_environments__are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="whole number"):
        SchedulingVectorEnv(seat="pick", **given, **SMALL)


@pytest.mark.parametrize("knowledge", ["none", "estimate", "predicted", "exact"])
def test_protect_head__by_default_only_where_run_times_are_known(knowledge: str) -> None:
    env = SchedulingEnv("backfill", knowledge=knowledge, episode_jobs=8)
    assert env.plan.protects_head == (knowledge != "none")


def test_protect_head__is_refused_without_run_times() -> None:
    with pytest.raises(PolicyError) as caught:
        SchedulingEnv("backfill", knowledge="none", protect_head=True)
    assert caught.value.where == "protect_head"
    assert "any job that fits may pass the head" in caught.value.expected
    env = SchedulingEnv("backfill", knowledge="none", protect_head=False, episode_jobs=8)
    assert not env.plan.protects_head


def test_backfill__without_run_times_offers_every_job_that_fits() -> None:
    """One node of 4 GPUs, jobs of 3, 4 and 1: the third may pass whatever its run time is."""
    for run in (50.0, 99.0, 5000.0):
        jobs = bl.Workload.from_columns(submit=[0, 0, 0], run=[100, 10, run], gpus=[3, 4, 1])
        env = SchedulingEnv(
            "backfill", workload=jobs, cluster="uniform:1x4", episode_jobs=None, knowledge="none"
        )
        _, info = env.reset(seed=0)
        assert env.question()["jobs"] == [1, 2]
        assert info["action_mask"][:2].tolist() == [0, 1]


@pytest.mark.parametrize("word", ["queued_work", "queued_work + queue_len"])
def test_rewards__about_run_times_are_refused_without_them(word: str) -> None:
    with pytest.raises(PolicyError) as caught:
        SchedulingEnv("pick", knowledge="none", reward={"work": ("second", word)})
    assert caught.value.where == "reward term 'work'"
