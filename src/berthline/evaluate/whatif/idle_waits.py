"""Waits that the GPUs in use do not explain: jobs that waited although enough GPUs were free.

Causes that a log does not contain (limits of users, reservations, drained nodes, CPUs and memory,
packing) make jobs wait too. Their share of the waiting limits the accuracy of any model of the
scheduler that knows only GPUs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berthline.model.workload import FloatColumn

SAMPLES = 32
"""Number of instants at which each wait is sampled, evenly spread over it."""


STANDSTILL = 3600.0
"""If no job of the pool starts for this long, in seconds, none could: an outage, a reservation of
the whole cluster, or a scheduler that did not run."""


LEAST_HELD = 1e-6
"""GPUs. Sums of parts of GPUs are not exact."""


class IdleWaits(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the recorded waiting time during which as many GPUs as the job wanted were free.

    The parts name what was seen, not a proven cause.

    Attributes:
        share: of all waiting time.
        standstill: the part of it in which no job started for an hour or more.
        own_jobs: of the rest, the part in which the job's user had jobs running: the sign of a
            limit for each user.
    """

    share: float
    standstill: float
    own_jobs: float

    @property
    def others(self) -> float:
        """The remaining part: GPUs kept for larger jobs, node types, memory, packing, limits."""
        return max(self.share - self.standstill - self.own_jobs, 0.0)


def idle_waits(
    since: FloatColumn,
    start: FloatColumn,
    end: FloatColumn,
    gpus: FloatColumn,
    pool: npt.NDArray[np.int32],
    user: npt.NDArray[np.int32],
    capacity: Sequence[float],
    rows: npt.NDArray[np.int64],
) -> IdleWaits | None:
    """Return the share of waiting time during which a job's GPUs were free in its pool, in parts.

    Formula: sum over jobs of wait x (share of instants with capacity - GPUs in use >= GPUs of the
    job) / sum of waits; None when no job waited. Also counts the time in which GPUs were free
    because they were held for a larger job.

    Args:
        since: when each job of the log began to wait.
        start: when it started, as recorded.
        end: when it ended.
        gpus: what it held.
        pool: its pool; -1 or 0 if there is one for all.
        user: its user.
        capacity: GPUs of each pool.
        rows: the jobs whose waits count.
    """
    waited = np.maximum(start - since, 0.0)
    rows = rows[np.isfinite(waited[rows])]
    total = float(waited[rows].sum())
    if total <= 0:
        return None
    of_job = np.maximum(pool, 0)
    moments = (np.arange(SAMPLES) + 0.5) / SAMPLES
    at = since[rows, None] + waited[rows, None] * moments
    free, still = np.zeros(at.shape, np.bool_), np.zeros(at.shape, np.bool_)
    for index, most in enumerate(capacity):
        mine, here = of_job == index, of_job[rows] == index
        times, used = use_over_time(start[mine], end[mine], gpus[mine])
        in_use = used[np.searchsorted(times, at[here], side="right")]
        free[here] = most - in_use >= gpus[rows[here], None]
        still[here] = _standstill(start[mine], at[here])
    own = _holds(start, end, gpus, user, rows, at)
    seconds = np.broadcast_to(waited[rows, None] / SAMPLES, at.shape)
    return IdleWaits(
        share=float(seconds[free].sum()) / total,
        standstill=float(seconds[free & still].sum()) / total,
        own_jobs=float(seconds[free & ~still & own].sum()) / total,
    )


def _standstill(start: FloatColumn, at: FloatColumn) -> npt.NDArray[np.bool_]:
    """Return whether each instant is within a time without starts of STANDSTILL or longer."""
    starts = np.concatenate([[-np.inf], np.sort(start[np.isfinite(start)]), [np.inf]])
    after = np.searchsorted(starts, at, side="right")
    found: npt.NDArray[np.bool_] = starts[after] - starts[after - 1] >= STANDSTILL
    return found


def _holds(
    start: FloatColumn,
    end: FloatColumn,
    gpus: FloatColumn,
    user: npt.NDArray[np.int32],
    rows: npt.NDArray[np.int64],
    at: FloatColumn,
) -> npt.NDArray[np.bool_]:
    """Return whether the user of each of the jobs holds GPUs at each of its instants."""
    held = np.zeros(at.shape, np.bool_)
    for number in np.unique(user[rows]).tolist():
        mine, here = user == number, user[rows] == number
        times, used = use_over_time(start[mine], end[mine], gpus[mine])
        held[here] = used[np.searchsorted(times, at[here], side="right")] > LEAST_HELD
    return held


def use_over_time(
    start: FloatColumn, end: FloatColumn, gpus: FloatColumn
) -> tuple[FloatColumn, FloatColumn]:
    """Return the instants at which the GPUs in use change, and how many are in use between them."""
    known = np.isfinite(start)
    times = np.concatenate([end[known], start[known]])
    change = np.concatenate([-gpus[known], gpus[known]])
    order = np.argsort(times, kind="stable")
    return times[order], np.concatenate([[0.0], np.cumsum(change[order])])
