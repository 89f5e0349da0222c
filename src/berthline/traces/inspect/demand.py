"""Concurrent demand: how many GPUs would be busy if every job started when it is submitted.

It does not depend on the scheduler. Where it exceeds the GPUs of the cluster, jobs must wait under
any scheduler.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berthline.model.workload import Workload


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """GPUs requested at once, including parts of GPUs, from the first to the last submission.

    Attributes:
        time: when each step begins, seconds.
        gpus: GPUs from then until the next step.
        end: the last submission, where the last step ends.
    """

    time: npt.NDArray[np.float64]  # (num_steps,)
    gpus: npt.NDArray[np.float64]  # (num_steps,)
    end: float

    @classmethod
    def of(cls, workload: Workload, jobs: npt.NDArray[np.bool_] | None = None) -> Demand:
        """Return the demand of a workload, or of some of its jobs over the same time."""
        chosen = np.ones(len(workload), np.bool_) if jobs is None else jobs
        submit, gpus = workload.submit[chosen], workload.gpu_amount[chosen]
        first, last = float(workload.submit[0]), float(workload.submit[-1])
        time = np.concatenate([[first], submit, submit + workload.run[chosen]])
        change = np.concatenate([[0.0], gpus, -gpus])
        order = np.argsort(time, kind="stable")
        time, level = time[order], np.cumsum(change[order])
        # If the level changes several times at one instant, keep only the last value.
        lasting = np.append(time[1:] > time[:-1], True) & (time <= last)
        if not lasting.any():  # every job is submitted at the same time
            return cls(np.array([first]), np.array([gpus.sum()]), first)
        return cls(time[lasting], level[lasting], last)

    @property
    def _seconds(self) -> npt.NDArray[np.float64]:
        return np.diff(self.time, append=self.end)

    @property
    def mean(self) -> float:
        """Mean over time."""
        span = float(self._seconds.sum())
        return float(np.dot(self._seconds, self.gpus)) / span if span > 0 else self.max

    @property
    def max(self) -> float:
        """The highest level."""
        return float(self.gpus.max())

    def quantile(self, share: float) -> float:
        """Return the level that the demand does not exceed for `share` of the time."""
        order = np.argsort(self.gpus, kind="stable")
        elapsed = np.cumsum(self._seconds[order])
        if not elapsed[-1] > 0:
            return self.max
        at = np.searchsorted(elapsed, share * elapsed[-1])
        return float(self.gpus[order][min(int(at), len(order) - 1)])

    def time_above(self, gpus: float) -> float:
        """Return the share of time in which the demand is more than `gpus`."""
        span = float(self._seconds.sum())
        above = self.gpus > gpus
        return float(self._seconds[above].sum()) / span if span > 0 else float(above.any())

    def means(self, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the mean level between neighbouring edges."""
        work = np.concatenate([[0.0], np.cumsum(self._seconds * self.gpus)])
        until = np.interp(edges, np.append(self.time, self.end), work)
        means: npt.NDArray[np.float64] = np.diff(until) / np.diff(edges)
        return means
