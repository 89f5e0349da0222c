"""Candidates for today's scheduler, and alternatives to it.

None of them preempts: a batch system stops jobs by rules that are not in a log. All of them are
available in Slurm or LSF through settings, or through a priority that a plugin or a script sets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from berthline.policies.scheduler import Scheduler

if TYPE_CHECKING:
    from berthline.model.workload import Workload

MODELS: dict[str, str] = {
    "fcfs": "first come, first served; the first job blocks all (sched/builtin)",
    "fcfs+skip": "first come, first served; any job that fits starts",
    "fcfs+easy": "first come, first served, with backfill around the first job",
    "fcfs+conservative": "first come, first served, with backfill around all jobs",
    "slurm-multifactor+easy": "age, size and fair share in equal parts, with backfill",
    "slurm-multifactor+skip": "age, size and fair share in equal parts; any job that fits starts",
    "[user_share]+easy": "fair share alone, with backfill",
    "[user_share]+skip": "fair share alone; any job that fits starts",
    "smallest-first+easy": "small jobs first, with backfill",
    "smallest-first+skip": "small jobs first; any job that fits starts",
    "largest-first+easy": "large jobs first, with backfill",
    "sjf+easy": "short limits first, with backfill",
}
"""Candidates for today's scheduler, and what each stands for."""

PRIORITY_MODELS: dict[str, str] = {
    "static-priority+easy": "by the recorded priority, with backfill",
    "static-priority+skip": "by the recorded priority; any job that fits starts",
}
"""More candidates where the log has priorities."""

SLOW = ("fcfs+conservative",)
SLOW_FROM = 200_000
"""From this many jobs x nodes on, slow schedulers run only on request: reservations for all jobs on
all nodes then take minutes."""

PLACEMENTS = ("best-fit", "worst-fit")
"""Placements tried besides first-fit, if the log tells on which nodes jobs ran."""

ALTERNATIVES = (
    "fcfs+easy",
    "fcfs+conservative",
    "slurm-multifactor+easy",
    "sjf+easy",
    "smallest-area+easy",
    "wfp3+easy",
)
"""The default alternatives, if run times are known from limits."""

ALTERNATIVES_WITHOUT_LIMITS = (
    "fcfs",
    "fcfs+skip",
    "smallest-first+skip",
    "slurm-multifactor+skip",
    "qssf+skip",
)
"""The default alternatives otherwise; qssf predicts run times from each user's earlier jobs."""


def models_for(workload: Workload, knowledge: str) -> dict[str, str]:
    """Return the candidates that need no more than what is known."""
    history = workload.history
    has_priority = len(np.unique(workload.priority)) > 1 or (
        history is not None
        and history.priority is not None
        and len(np.unique(history.priority[np.isfinite(history.priority)])) > 1
    )
    candidates = {**MODELS, **(PRIORITY_MODELS if has_priority else {})}
    return {
        text: meaning
        for text, meaning in candidates.items()
        if knowledge != "none" or not Scheduler.parse(text).needs_run_times
    }


def too_slow(size: int) -> list[str]:
    """Return the schedulers that run only on request, on a log of `size` jobs x nodes."""
    return list(SLOW) if size >= SLOW_FROM else []


def with_placement(text: str, placement: str) -> str:
    """Return a scheduler's text with a placement, unless it names one itself.

    Example:
        >>> with_placement("sjf+easy?express-lane", "worst-fit")
        'sjf+easy@worst-fit?express-lane'
        >>> with_placement("sjf@best-fit", "worst-fit")
        'sjf@best-fit'
    """
    if re.search(r"@(?![^\[]*\])", text):
        return text
    order, *rules = re.split(r"(?=[?!](?![^\[]*\]))", text)
    return f"{order}@{placement}" + "".join(rules)


def alternatives_for(knowledge: str) -> list[str]:
    """Return the default alternatives."""
    return list(ALTERNATIVES_WITHOUT_LIMITS if knowledge == "none" else ALTERNATIVES)
