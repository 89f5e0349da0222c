"""Published scores are what the program measures: on a few episodes, and slowly on all."""

from __future__ import annotations

import dataclasses

import pytest

from berthline.policies.shipped_networks import FOLDER, shipped_networks
from berthline.tasks.published_scores import best_rule, published_scores, shipped_for
from berthline.tasks.task_judge import BEGINS, EPISODES, Judge, Row
from berthline.tasks.task_table import TASKS

MOST_BYTES = 200_000


def judge_of(name: str, episodes: int) -> Judge:
    """Return what plays the first evaluation episodes of a task."""
    return Judge(name, TASKS[name].seat, TASKS[name].options, episodes=episodes)


def rows(name: str, episodes: int) -> dict[str, Row]:
    """Return the published rows that are measured again, without trying every rule."""
    judge = judge_of(name, episodes)
    found = judge.measure(
        policies={text: text for text in shipped_for(name)}, rules=best_rule(judge)
    )
    return {row.name: row for row in (found.random, found.first, found.best, *found.policies)}


@pytest.mark.parametrize("name", TASKS)
def test_scores__begin_as_published(name: str) -> None:
    published = published_scores()[name]
    assert published.episodes == EPISODES
    own = rows(name, BEGINS)
    for row in (published.random, published.first, published.best, *published.policies):
        if row is not published.random:  # its draws depend on the number of episodes
            assert own[row.name].begins == pytest.approx(row.begins, rel=1e-9), row.name


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_scores__are_as_published(name: str) -> None:
    published = published_scores()[name]
    own = rows(name, EPISODES)
    for row in (published.random, published.first, published.best, *published.policies):
        assert own[row.name].value == pytest.approx(row.value, rel=1e-9), row.name


@pytest.mark.parametrize("name", TASKS)
def test_decisions__matter(name: str) -> None:
    """Otherwise nothing can be learned, and the task is not worth having."""
    published = published_scores()[name]
    assert published.best.value > published.first.value
    assert published.best.value > published.random.value
    assert published.first.against_high is not None
    assert published.first.against_high < 0


def test_networks__are_small_and_have_the_score_of_their_card() -> None:
    for name, card in shipped_networks().items():
        assert sum(file.stat().st_size for file in (FOLDER / name).iterdir()) < MOST_BYTES
        [row] = [row for row in published_scores()[card.task].policies if row.name == name]
        assert row.value == pytest.approx(card.score)
        assert card.kept_seed in card.seeds
        assert len(card.val_returns) == len(card.seeds)
        assert card.loses


def test_tasks__are_data() -> None:
    """What a task is made of can be written as JSON: a paper can print it."""
    import msgspec

    for task in TASKS.values():
        assert msgspec.json.decode(msgspec.json.encode(dataclasses.asdict(task)))
