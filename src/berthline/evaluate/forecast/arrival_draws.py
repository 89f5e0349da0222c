"""Which jobs will be submitted: the past is repeated from a random instant on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from berthline.evaluate.forecast.known_past import Jobs, Past
    from berthline.model.workload import FloatColumn

FEWEST_JOBS = 20
"""With fewer submitted jobs, no future jobs are assumed."""

MOST_TURNS = 50
"""The past is repeated at most this many times."""


def length_of(past: Past) -> float:
    """Return how many seconds of submissions can be repeated; 0 = too few are known."""
    if len(past.seen) < FEWEST_JOBS:
        return 0.0
    return past.now - float(past.submit[past.seen[0]])


def draw_arrivals(past: Past, span: float, rng: np.random.Generator) -> tuple[Jobs, FloatColumn]:
    """Return which jobs of a past are submitted again within a span, and when."""
    length = length_of(past)
    if span <= 0 or length <= 0:
        return np.zeros(0, np.intp), np.zeros(0)
    since = past.submit[past.seen] - past.submit[past.seen[0]]
    begin = rng.random() * length
    times, jobs = [], []
    offset = -begin
    while offset < span:
        low, high = np.searchsorted(since, [-offset, span - offset], side="left")
        times.append(since[low:high] + offset)
        jobs.append(past.seen[low:high])
        offset += length
    # The instant itself is over: future jobs arrive after it.
    after = np.maximum(past.now + np.concatenate(times), np.nextafter(past.now, np.inf))
    return np.concatenate(jobs), after
