"""Published scores of the frozen tasks, and the networks that were trained on them."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from berthline.tasks.task_judge import Measurement

if TYPE_CHECKING:
    from berthline.tasks.opponents import Opponent
    from berthline.tasks.task_judge import Judge

FILE = Path(__file__).parent / "scores.json"


@functools.cache
def published_scores() -> dict[str, Measurement]:
    """Return what `berthline bench tasks` measured when the scores were published, by task."""
    if not FILE.is_file():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Measurement])


def best_rule(judge: Judge) -> list[Opponent] | None:
    """Return the best rule of the published scores alone; None = the task has none yet."""
    published = published_scores().get(judge.name)
    if published is None:
        return None
    return [one for one in judge.opponents() if one.name == published.best.name]


def shipped_for(task: str) -> list[str]:
    """Return the names of the shipped policies that were trained on a task."""
    from berthline.policies.shipped_networks import shipped_networks

    return [name for name, card in shipped_networks().items() if card.task == task]
