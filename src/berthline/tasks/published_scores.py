"""Published scores of the frozen tasks, and the networks that were trained on them."""

from __future__ import annotations

import functools
from pathlib import Path

import msgspec

from berthline.tasks.task_judge import Measurement

FILE = Path(__file__).parent / "scores.json"


@functools.cache
def published_scores() -> dict[str, Measurement]:
    """Return what `berthline bench tasks` measured when the scores were published, by task."""
    if not FILE.is_file():
        return {}
    return msgspec.json.decode(FILE.read_bytes(), type=dict[str, Measurement])


def shipped_for(task: str) -> list[str]:
    """Return the names of the shipped policies that were trained on a task."""
    from berthline.policies.shipped_networks import shipped_networks

    return [name for name, card in shipped_networks().items() if card.task == task]
