"""The Python tables and the native core's tables are the same, in the same order."""

from __future__ import annotations

from berthline import _native
from berthline.policies.formulas import FUNCTIONS, OPERATIONS
from berthline.policies.reward_words import REWARD_WORDS
from berthline.policies.rules import DISCIPLINES, PLACEMENT_FORMULAS, PLACEMENTS
from berthline.policies.vocabulary import CHANGES, VOCABULARY
from berthline.sim.native import _NATIVE_PLACEMENT as NATIVE_PLACEMENT
from berthline.sim.reference_words import NODE_WORDS, WORDS


def test_words__equal_the_native_list() -> None:
    assert _native.words == [*VOCABULARY, *REWARD_WORDS]


def test_words__equal_the_reference_list() -> None:
    assert [*WORDS, *NODE_WORDS] == list(VOCABULARY)
    assert list(NODE_WORDS) == [word.name for word in VOCABULARY.values() if word.scope == "node"]


def test_operations__equal_the_native_list() -> None:
    assert _native.operations == ["number", "word", *OPERATIONS]


def test_disciplines__equal_the_native_list() -> None:
    assert _native.disciplines == list(DISCIPLINES)


def test_placements__equal_the_native_list() -> None:
    """The core's own rules are those that are neither an alias nor a formula."""
    own = [name for name in PLACEMENTS if name not in {**PLACEMENT_FORMULAS, **NATIVE_PLACEMENT}]
    assert _native.placements == [*own, "formula"]
    assert set(NATIVE_PLACEMENT.values()) <= set(own)


def test_vocabulary__every_row_is_complete() -> None:
    for name, word in VOCABULARY.items():
        assert word.name == name
        assert word.scope in ("job", "cluster", "node")
        assert word.changes in CHANGES
        assert word.meaning
        assert name not in FUNCTIONS


def test_vocabulary__words_that_tell_run_times_are_marked() -> None:
    assert {word.name for word in VOCABULARY.values() if word.estimate} == {
        *("estimate", "work", "remaining", "queued_work")
    }
