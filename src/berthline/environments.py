"""Public names for learning environments: experts, datasets, and where episodes come from."""

from __future__ import annotations

from berthline.compat.discount_by_seconds import DiscountBySeconds, DiscountBySecondsVector
from berthline.env.datasets.record import record
from berthline.env.episodes_source import GeneratedEpisodes, TraceWindows, WholeTrace, batch_seeds
from berthline.env.experts import expert_actions
from berthline.env.meta_regimes import meta_regimes
from berthline.tasks.make_task import task_of
from berthline.traces.generators.synthetic import episodes

__all__ = [
    "DiscountBySeconds",
    "DiscountBySecondsVector",
    "GeneratedEpisodes",
    "TraceWindows",
    "WholeTrace",
    "batch_seeds",
    "episodes",
    "expert_actions",
    "meta_regimes",
    "record",
    "task_of",
]
