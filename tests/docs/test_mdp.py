"""The page about environments names everything there is to choose."""

from __future__ import annotations

import dataclasses

import pytest
from tests.docs.pages import ROOT

from berthline.env.columns import COLUMN_SETS, TABLES
from berthline.env.native import SCORES
from berthline.env.options import LOOKAHEADS, SEMANTICS, WINDOW_POLICIES, Options
from berthline.env.presets import PRESETS
from berthline.env.registration import SEATS, env_id
from berthline.env.rewards import OCCASIONS, REWARDS, SCOPES
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
