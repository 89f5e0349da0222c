"""The search of the experiments finds a known optimum and chooses on VAL."""

from __future__ import annotations

import pytest
from benchmarks.tuning import EPOCH, POPULATION, tune

from berthline.learn.tuning.search_space import Parameter, SearchSpace

SPACE = SearchSpace(
    "own",
    "fcfs+skip!index:margin={margin}:w={w}",
    (Parameter("margin", 0.0, 8.0, 6.0), Parameter("w", 0.0, 2.0, 2.0)),
)


def numbers(text: str) -> tuple[float, float]:
    """Return margin and w of a scheduler of the space."""
    margin, w = (float(part.partition("=")[2]) for part in text.split(":")[1:])
    return margin, w


def distance(text: str, margin: float, w: float) -> float:
    ours = numbers(text)
    return (ours[0] - margin) ** 2 + (ours[1] - w) ** 2


def test_tune__comes_close_to_the_optimum_of_train() -> None:
    found = tune(
        SPACE,
        lambda text, _: distance(text, 2.0, 0.5),
        lambda text: distance(text, 2.0, 0.5),
        epochs=4,
        seed=0,
    )
    assert numbers(found.scheduler) == pytest.approx((2.0, 0.5), abs=0.1)
    assert found.val_loss < 0.01 < found.start_val_loss
    assert found.evaluations == 4 * EPOCH * POPULATION


def test_tune__keeps_the_start_where_val_likes_nothing_better() -> None:
    found = tune(
        SPACE,
        lambda text, _: distance(text, 2.0, 0.5),
        lambda text: distance(text, 6.0, 2.0),
        epochs=1,
        seed=0,
    )
    assert numbers(found.scheduler) == (6.0, 2.0)
    assert found.val_loss == found.start_val_loss == 0.0
