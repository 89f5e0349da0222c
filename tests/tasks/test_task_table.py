"""The frozen tasks: complete, unchanged, made by Gymnasium."""

from __future__ import annotations

import dataclasses
import hashlib
from typing import Any

import gymnasium
import numpy as np
import pytest

import berthline  # noqa: F401 - registers the tasks
from berthline.env.options import ONLY_OF, Options
from berthline.errors import ConfigError
from berthline.tasks.make_task import task_of
from berthline.tasks.play import Players, at_random
from berthline.tasks.task_table import TASKS, task_id

STEPS = 400
FROZEN = {
    "PickSmall-v1": "bc29da91a5e3a97d",
    "PickLarge-v1": "e7b4e247d3126865",
    "GateLublin-v1": "bb1def80a2c22645",
    "PlaceFrag-v1": "671acbb242a8f90e",
    "PlaceTypes-v1": "726798b7873765ad",
    "PickPlaceTypes-v1": "73dbd9b0ad15aa9c",
    "MetaDrift-v1": "54e782563a43c2fa",
    "BackfillEstimates-v1": "2ccf7e79ac47f046",
    "PreemptUnknown-v1": "bdad45a5505be7b7",
    "Deadlines-v1": "01c7fbb75d7a778a",
    "Energy-v1": "e5c18f08f753493b",
}
"""SHA-256 of observations, masks and rewards of random episodes. If one changes, the task is no
longer the one of the published scores: undo the change, or make a task with another version."""


@pytest.mark.parametrize("name", TASKS)
def test_tasks__name_every_option_of_their_seat(name: str) -> None:
    task = TASKS[name]
    fields = {field.name for field in dataclasses.fields(Options)}
    free = {"observation", "experts", "credit", "preset"}
    not_of_seat = {option for option, seats in ONLY_OF.items() if task.seat not in seats}
    if task.options.get("semantics") == "rank":
        not_of_seat.add("no_op")
    assert fields - free - not_of_seat == set(task.options) - {"preset"}


def digest(name: str) -> str:
    """Return the hash of what two environments show in the first steps of random episodes."""
    task = TASKS[name]
    players = Players(task.seat, task.options, 2)
    players.vector.reset(seed=[3, 4])
    choose, found = at_random(7), hashlib.sha256()
    for _ in range(STEPS):
        if players._pairs is not None:
            players._pairs.look()
        found.update(np.ascontiguousarray(players.observations).tobytes())
        found.update(np.ascontiguousarray(players.masks).tobytes())
        actions = choose(players)
        players._native.step(actions if players._pairs is None else players._pairs.split(actions))
        found.update(players._native.reward.tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", TASKS)
def test_tasks__never_change(name: str) -> None:
    assert digest(name) == FROZEN[name]


@pytest.mark.parametrize("name", TASKS)
def test_ids__make_one_and_many(name: str) -> None:
    one: Any = gymnasium.make(task_id(name))
    many: Any = gymnasium.make_vec(task_id(name), num_envs=2, observation="flat")
    alone, info = one.reset(seed=3)
    together, _ = many.reset(seed=[3, 4])
    tables = one.unwrapped.plan.table_shapes()
    assert np.array_equal(np.concatenate([alone[table].ravel() for table in tables]), together[0])
    assert one.unwrapped.plan.seat == many.plan.seat == TASKS[name].seat
    assert info["action_mask"].any()


def test_options_of_a_task__cannot_be_given() -> None:
    with pytest.raises(ConfigError, match="a task never changes"):
        gymnasium.make("berthline/PickSmall-v1", load=0.5)
    with pytest.raises(ConfigError, match="PickSmall"):
        task_of("PickSmal-v1")
