"""How many episodes VAL needs: enough to tell the best rule from the next.

All policies and rules have the same episodes, so what matters is the error of differences, not of
means. The difference between the best rule and the closest other stands for that between a policy
and the best rule, which is not known before training.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from berthline.evaluate.metrics.compared_metrics import METRICS
from berthline.learn.training.episode_metrics import EPISODE_METRICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.learn.training.validation import Scores

FIRST_EPISODES = 64
"""Episodes that the error is estimated from; the fewest that are used."""

MOST_EPISODES = 128
"""More would take longer than the training between two validations."""

WANTED_ERROR = 0.005
"""Standard error of the difference, as a share of the best rule's mean."""

_STEP = 32


def episodes_needed(scores: Sequence[Scores], metric: str) -> int:
    """Return how many episodes give the wanted error.

    Args:
        scores: of the rules, on the same episodes.
        metric: by its name in episodes.
    """
    sign = -1 if METRICS[EPISODE_METRICS[metric]].higher_is_better else 1
    ordered = sorted(scores, key=lambda one: sign * one.mean(metric))
    best = np.array(ordered[0].metrics[metric])
    mean, num = abs(float(best.mean())), len(best)
    for other in ordered[1:]:
        apart = np.array(other.metrics[metric]) - best
        error = float(apart.std(ddof=1)) / math.sqrt(num)
        if error > 0 and mean > 0:  # a rule that decides the same says nothing
            needed = num * (error / (WANTED_ERROR * mean)) ** 2
            return min(max(math.ceil(needed / _STEP) * _STEP, FIRST_EPISODES), MOST_EPISODES)
    return FIRST_EPISODES
