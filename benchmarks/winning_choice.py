"""Choosing on VAL what is used on REPORT, and averaging what several seeds have found.

There are few VAL windows, and slowdown has a heavy tail: the lowest loss there is partly chance. So
candidates have an order of preference, and the first whose loss exceeds the lowest by at most one
standard error is chosen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from berthline.learn.tuning.search_goal import Goal, WindowOutcome
    from berthline.learn.tuning.search_space import SearchSpace

RESAMPLES = 200
_NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"


def chosen(
    preferred: Sequence[str],
    found: Mapping[str, Sequence[WindowOutcome]],
    reference: Sequence[WindowOutcome],
    goal: Goal,
) -> str:
    """Return the first scheduler within one standard error of the lowest loss.

    Args:
        preferred: schedulers, in order of preference.
        found: the outcomes of each on the windows of VAL.
        reference: outcomes that limits are relative to, on the same windows.
        goal: the loss that decides.
    """
    losses = {name: goal.loss(found[name], reference) for name in preferred}
    best = min(preferred, key=losses.__getitem__)
    random = np.random.Generator(np.random.Philox(key=[0, 29]))
    samples = random.integers(len(reference), size=(RESAMPLES, len(reference)))

    def error_of(name: str) -> float:
        """Return the standard error of its difference to the best, over the same windows."""
        gaps = []
        for sample in samples:
            theirs = [reference[i] for i in sample]
            ours, lowest = ([found[one][i] for i in sample] for one in (name, best))
            gaps.append(goal.loss(ours, theirs) - goal.loss(lowest, theirs))
        return float(np.std(gaps))

    for name in preferred:
        gap = losses[name] - losses[best]
        if gap <= 0 or gap <= error_of(name):
            return name
    return best


def averaged(space: SearchSpace, schedulers: Sequence[str]) -> str:
    """Return the average of some schedulers of a space: the mean of each number."""
    points = [
        [p.share(numbers_of(space, scheduler)[p.name]) for p in space.parameters]
        for scheduler in schedulers
    ]
    return space.scheduler(np.mean(points, axis=0))


def numbers_of(space: SearchSpace, scheduler: str) -> dict[str, float]:
    """Return the numbers in the text of a scheduler of a space."""
    texts = re.split(r"([+-] )?\{(\w+)\}", space.text)
    signs, names = texts[1::3], texts[2::3]
    pattern = re.escape(texts[0])
    for sign, text in zip(signs, texts[3::3], strict=True):
        pattern += (r"([+-] )" if sign else "()") + _NUMBER + re.escape(text)
    match = re.fullmatch(pattern, scheduler)
    assert match, f"{scheduler} is not of the space {space.name}"
    parts = match.groups()
    return {
        name: float(number) * (1 if (written or None) == sign else -1)
        for name, sign, written, number in zip(names, signs, parts[::2], parts[1::2], strict=True)
    }
