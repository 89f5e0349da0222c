"""Columns of jobs that no formula uses are not drawn, and results stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.env.agents import SEATS, options_of

from berthline.env.episodes_source import GeneratedEpisodes
from berthline.env.make_plan import make_plan
from berthline.env.options import Options
from berthline.env.rewards import REWARDS
from berthline.env.vector import SchedulingVectorEnv
from berthline.model.cluster import Cluster
from berthline.policies.vocabulary import VOCABULARY
from berthline.traces.generators.synthetic import GENERATORS

CLUSTER = Cluster.uniform(nodes=8, gpus_per_node=8)
LEFT_OUT = frozenset({"estimate", "priority", "deadline"})
ERRORS = {"workload": "poisson", "dials": {"estimate_error": 0.7}}


def features(**tables: list[str]) -> dict[str, list[str]]:
    return {"jobs": [], "nodes": [], "running": [], "globals": [], **tables}


def unread(seat: str, **more: Any) -> frozenset[str]:
    return make_plan(seat, Options(**options_of(seat, **more))).unread


def played(*, reads_all: bool, seat: str = "pick", **more: Any) -> list[np.ndarray]:
    """Return everything that environments show while they are played."""
    envs = SchedulingVectorEnv(20, seat, **options_of(seat, observation="flat", **more))
    native = envs._envs
    if reads_all:
        native._supply._unread = frozenset()
    shown = []
    envs.reset(seed=3)
    for _ in range(60):
        tables = (native.observation, native.mask, native.terms, native.scores)
        shown += [table.copy() for table in tables]
        native.step(native.mask.argmax(axis=1))
    return shown


@pytest.mark.parametrize("name", GENERATORS)
def test_the_other_columns_are_the_same_without_them(name: str) -> None:
    source = GeneratedEpisodes(name, CLUSTER, jobs=40, seed=3)
    keys = np.array([[0, 0], [7, 3], [1, 9]])
    whole, rest = source.draw(keys), source.draw(keys, LEFT_OUT)
    assert list(rest) == list(whole)
    for column, table in rest.items():
        if column in LEFT_OUT:
            assert len(np.unique(table)) == 1
        else:
            np.testing.assert_array_equal(table, whole[column], err_msg=column)


@pytest.mark.parametrize(
    "word", [word.name for word in VOCABULARY.values() if word.scope in ("job", "cluster")]
)
def test_every_word_is_what_it_is_with_all_columns(word: str) -> None:
    options = {**ERRORS, "features": features(jobs=[f"{word} / ({word} + 1e4)"])}
    for one, other in zip(
        played(reads_all=False, **options), played(reads_all=True, **options), strict=True
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("reward", REWARDS)
def test_every_reward_is_what_it_is_with_all_columns(reward: str) -> None:
    options = {**ERRORS, "reward": reward, "horizon_factor": 2.0}
    for one, other in zip(
        played(reads_all=False, **options), played(reads_all=True, **options), strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_what_is_unread() -> None:
    own = features(jobs=["gpus"])
    assert unread("pick", features=own) == {"priority", "deadline"}
    assert unread("pick", features=own, knowledge="exact") == LEFT_OUT
    assert unread("pick", features=features(jobs=["priority"])) == {"deadline"}
    assert unread("pick", features=features(jobs=["slack"])) == {"priority"}
    assert unread("place", features=own, order="edf") == {"priority"}
    assert unread("pick", features=own, experts=["static-priority"]) == {"deadline"}
    assert unread("pick", features=own, reward="multi-objective") == {"priority"}
    assert unread("meta", features=own, schedulers=["fcfs", "edf"]) == {"priority"}


@pytest.mark.parametrize("seat", SEATS)
def test_workloads_have_all_columns(seat: str) -> None:
    envs = SchedulingVectorEnv(2, seat, **options_of(seat, features=features(jobs=["gpus"])))
    envs.reset(seed=3)
    assert envs._envs.plan.unread
    jobs = envs._envs.workload(1)
    assert np.isfinite(jobs.deadline).all()
    assert len(np.unique(jobs.priority)) > 1
