"""Tuning by an evolution strategy with an experiment's own loss.

`berthline train es` has goals for JCT and slowdown on windows of one cluster. Some experiments
measure something else, for example preemptions, or use several clusters: they pass their loss.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from berthline.learn.tuning.strategies import EvolutionStrategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.learn.tuning.search_space import SearchSpace

POPULATION = 10
"""Candidates per generation."""
EPOCH = 4
"""Generations that run on the same TRAIN windows."""


@dataclasses.dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        scheduler: the one with the lowest loss on VAL.
        val_loss: its loss on VAL.
        start_val_loss: the loss on VAL of the search's start.
        evaluations: number of candidates tried.
    """

    scheduler: str
    val_loss: float
    start_val_loss: float
    evaluations: int


def tune(
    space: SearchSpace,
    train_loss: Callable[[str, int], float],
    val_loss: Callable[[str], float],
    *,
    epochs: int,
    seed: int,
    look_every: int = EPOCH,
) -> Tuned:
    """Search a space.

    Args:
        space: where to search, beginning at its start.
        train_loss: of a scheduler on the TRAIN windows of an epoch.
        val_loss: of a scheduler on VAL.
        epochs: number of epochs.
        seed: of the strategy.
        look_every: generations between evaluations on VAL.
    """
    strategy = EvolutionStrategy(space.start, population=POPULATION, seed=seed)
    start = space.scheduler(space.start)
    on_val = {start: val_loss(start)}
    for generation in range(epochs * EPOCH):
        points = strategy.ask()
        losses = np.array(
            [train_loss(space.scheduler(point), generation // EPOCH) for point in points]
        )
        strategy.tell(points, losses)
        if (generation + 1) % look_every:
            continue
        # The mean of the strategy, and the best candidate of this generation.
        centre = strategy.centre()
        assert centre is not None
        for point in (centre, points[int(losses.argmin())]):
            text = space.scheduler(point)
            if text not in on_val:
                on_val[text] = val_loss(text)
    best = min(on_val, key=on_val.__getitem__)
    return Tuned(best, on_val[best], on_val[start], epochs * EPOCH * POPULATION)
