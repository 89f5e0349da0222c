"""Environments hold native state: copying or pickling raises an error that says what to do."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, Any

import cloudpickle
import gymnasium
import pytest
from tests.env.agents import options_of

import berthline  # noqa: F401  # registers the environments
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize(
    "duplicate",
    [copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps],
    ids=["copy", "deepcopy", "pickle", "cloudpickle"],
)
@pytest.mark.parametrize("kind", ["single", "wrapped", "batch"])
def test_copies_and_pickles__are_refused(kind: str, duplicate: Callable[[Any], Any]) -> None:
    env: Any = {
        "single": lambda: SchedulingEnv("pick", **options_of("pick")),
        "wrapped": lambda: gymnasium.make("berthline/Pick-v0", **options_of("pick")),
        "batch": lambda: SchedulingVectorEnv(3, "pick", **options_of("pick")),
    }[kind]()
    if (kind, duplicate) == ("wrapped", copy.copy):
        return  # a second wrapper of the same environment
    with pytest.raises(ConfigError, match="cannot be copied or pickled") as raised:
        duplicate(env)
    assert "a function that makes them" in raised.value.hint
