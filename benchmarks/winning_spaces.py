"""What is tuned for the winning policy in each setting, and the starting point."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from berthline.learn.tuning.search_space import SPACES, Parameter, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.winning_settings import Setting

BLIND = SearchSpace(
    "blind",
    "[{g} * log2(gpus + 1) + {w} * log2(wait + 60) + {u} * log2(user_jobs + 1)]+skip@best-fit",
    (
        Parameter("g", -1.0, 3.0, 0.5, meaning="weight of the size"),
        Parameter(
            "w", -2.0, 2.0, 1.0, meaning="weight of the wait: above 0 means last come, first served"
        ),
        Parameter("u", -1.0, 3.0, 0.0, meaning="weight of the user's jobs"),
    ),
    "an order without run times; it begins at last come, first served",
)

_HOLD = SPACES["hold"]
SURE = SearchSpace(
    "sure",
    _HOLD.text.replace("[estimate * gpus", "[estimate * 2 ** ({c} * priority) * gpus").replace(
        "where(estimate > {T}", "where(estimate / 2 ** ({k} * priority) > {T}"
    ),
    (
        *_HOLD.parameters,
        Parameter("c", -1.0, 1.0, 0.0, meaning="below 0: jobs that may be short come earlier"),
        Parameter("k", -1.0, 1.0, 0.0, meaning="above 0: only jobs that are surely long are held"),
    ),
    "the gate of `hold` with a prediction's uncertainty, in doublings, given as `priority`",
)

RUSH = SearchSpace(
    "rush",
    "[estimate * gpus ** {g}]+easy@best-fit?[where(estimate > {T},"
    " where(min(queued_gpus / total_gpus / {q}, arrival_rate * 3600 / {n}) > 1,"
    " pool_free_gpus * (1 - {f} * fragmentation) - gpus"
    " - pool_total_gpus * clip({r} + {l} * log2(estimate / {T}), 0, 0.9), 0), 0)]",
    (
        Parameter("g", 0.8, 1.4, 1.05, meaning="weight of the size: 0 is sjf, 1 smallest area"),
        Parameter("T", 5000.0, 50000.0, 16000.0, is_log=True, meaning="longer jobs are held"),
        Parameter("q", 0.7, 5.0, 2.0, is_log=True, meaning="while queued GPUs / GPUs exceed this"),
        Parameter("n", 2.0, 30.0, 8.0, is_log=True, meaning="and more are submitted an hour"),
        Parameter("f", 0.0, 1.0, 0.35, meaning="how much less free GPUs count on nodes in use"),
        Parameter("r", 0.0, 0.14, 0.065, meaning="share of the GPUs that they must leave free"),
        Parameter("l", -0.02, 0.02, 0.003, meaning="more of it for each doubling of the job"),
    ),
    "an express lane while jobs queue and many are submitted: if arrivals never stop, GPUs"
    " that are kept free while no jobs arrive are lost",
)


def space_of(setting: Setting) -> SearchSpace:
    """Return what is tuned in a setting, and the starting point."""
    if setting.knowledge == "none":
        return BLIND
    if setting.long:
        return RUSH
    space = SURE if setting.known == "history" else _HOLD
    return near(space, space.values(space.start))


def near(space: SearchSpace, numbers: Mapping[str, float]) -> SearchSpace:
    """Return the part of a space around a point: a quarter of each range on either side."""
    narrowed = []
    for p in space.parameters:
        share = p.share(min(max(numbers[p.name], p.low), p.high))
        low, high = p.value(share - 0.25), p.value(share + 0.25)
        narrowed.append(dataclasses.replace(p, low=low, high=high, start=p.value(share)))
    return dataclasses.replace(space, parameters=tuple(narrowed))
