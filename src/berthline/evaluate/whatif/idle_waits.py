"""Waits that the GPUs in use do not explain: jobs that waited although enough GPUs were free.

Causes that a log does not contain (limits of users, reservations, drained nodes, CPUs and memory,
packing) make jobs wait too. Their share of the waiting limits the accuracy of any model of the
scheduler that knows only GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.model.workload import FloatColumn

SAMPLES = 32
"""Number of instants at which each wait is sampled, evenly spread over it."""


def idle_wait_share(
    since: FloatColumn,
    start: FloatColumn,
    end: FloatColumn,
    gpus: FloatColumn,
    pool: npt.NDArray[np.int32],
    capacity: Sequence[float],
    rows: npt.NDArray[np.int64],
) -> float | None:
    """Return the share of waiting time during which a job's GPUs were free in its pool.

    Formula: sum over jobs of wait x (share of instants with capacity - GPUs in use >= GPUs of the
    job) / sum of waits; None when no job waited. Also counts the time in which GPUs were free
    because they were held for a larger job.

    Args:
        since: when each job of the log began to wait.
        start: when it started, as recorded.
        end: when it ended.
        gpus: what it held.
        pool: its pool; -1 or 0 if there is one for all.
        capacity: GPUs of each pool.
        rows: the jobs whose waits count.
    """
    waited = np.maximum(start - since, 0.0)
    total = float(waited[rows].sum())
    if total <= 0:
        return None
    idle = 0.0
    of_job = np.maximum(pool, 0)
    moments = (np.arange(SAMPLES) + 0.5) / SAMPLES
    for index, most in enumerate(capacity):
        mine = of_job == index
        times, used = _use(start[mine], end[mine], gpus[mine])
        members = rows[mine[rows]]
        at = since[members, None] + waited[members, None] * moments
        in_use = used[np.searchsorted(times, at, side="right")]
        free = most - in_use >= gpus[members, None]
        idle += float((waited[members] * free.mean(axis=1)).sum()) if len(members) else 0.0
    return idle / total


def _use(
    start: FloatColumn, end: FloatColumn, gpus: FloatColumn
) -> tuple[FloatColumn, FloatColumn]:
    """Return the instants at which the GPUs in use change, and how many are in use between them."""
    known = np.isfinite(start)
    times = np.concatenate([end[known], start[known]])
    change = np.concatenate([-gpus[known], gpus[known]])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([[0.0], np.cumsum(change[order])])
