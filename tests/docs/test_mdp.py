"""The page about environments names everything there is to choose."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.docs.pages import ROOT

from berthline.env.columns import COLUMN_SETS, TABLES
from berthline.env.native_envs import SCORES
from berthline.env.options import LOOKAHEADS, SEMANTICS, WINDOW_POLICIES, Options
from berthline.env.presets import PRESETS
from berthline.env.registration import SEATS, env_id
from berthline.env.rewards import OCCASIONS, REWARDS, SCOPES
from berthline.env.single import SchedulingEnv
from berthline.env.vector import SchedulingVectorEnv
from berthline.policies.reward_words import REWARD_WORDS

PAGE = (ROOT / "docs" / "mdp.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "names",
    [
        *(TABLES, LOOKAHEADS, WINDOW_POLICIES, SEMANTICS, SCORES),
        *(COLUMN_SETS, REWARDS, OCCASIONS, REWARD_WORDS),
        [env_id(name) for name in SEATS],
        [field.name for field in dataclasses.fields(Options)],
    ],
    ids=lambda names: next(iter(names)),
)
def test_every_name_is_there(names):
    assert [name for name in names if f"`{name}`" not in PAGE] == []


@pytest.mark.parametrize("mode", ["same_step", "next_step"])
def test_every_entry_of_infos_is_there(mode):
    """One and many environments, from the beginning to the end, with a forbidden action."""
    options = {"episode_jobs": 3, "window": 4, "semantics": "mask"}
    env, envs = (
        SchedulingEnv("pick", **options),
        SchedulingVectorEnv(2, autoreset_mode=mode, **options),
    )
    found, together = set(env.reset(seed=1)[1]), set(envs.reset(seed=1)[1])
    is_over, action = False, 3
    while not is_over:
        *_, terminated, truncated, info = env.step(action)
        is_over, action = terminated or truncated, info["action_mask"].argmax()
        found |= set(info)
    is_over, actions = False, np.array([3, 3])
    while not is_over:
        *_, terminated, truncated, infos = envs.step(actions)
        is_over, actions = (terminated | truncated).any(), infos["action_mask"].argmax(axis=1)
        together |= {*infos, *infos.get("final_info", {})}
    section = PAGE.split("## Info\n")[1].split("\n## ")[0]
    rows = {line.split("`")[1] for line in section.splitlines() if line.startswith("| `")}
    assert rows == found
    names = {name for name in together if not name.startswith("_")}
    assert names >= found - {"episode_key"}
    assert ("episode" in names) == (mode == "same_step")
    assert [name for name in names if f"`{name}`" not in section] == []


def test_every_preset_says_what_differs():
    for preset in PRESETS.values():
        assert f"### {preset.name}\n" in PAGE
        assert all(text in PAGE for text in preset.differences)


def test_every_option_has_a_meaning():
    """The table is made from the docstring, so a field that is not in it has no row."""
    rows = {line.split("`")[1]: line for line in PAGE.splitlines() if line.startswith("| `")}
    for field in dataclasses.fields(Options):
        assert len(rows[field.name].split("|")[3].split()) >= 2


def test_every_occasion_has_its_words():
    assert list(OCCASIONS) == list(SCOPES)
