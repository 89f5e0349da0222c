"""Records of a log that cannot be true: more processors in use than the machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from berthline.model.workload import Workload


class ImpossibleUse(msgspec.Struct, frozen=True, kw_only=True):
    """More processors in use than the file states.

    Attributes:
        processors: as the file states them.
        peak: the most in use at once, by the recorded starts and run times.
        seconds: how long more were in use than there are.
        jobs: how many jobs ran in that time, at least in part.
        first: row of the first job that started in it.
    """

    processors: int
    peak: float
    seconds: float
    jobs: int
    first: int

    def in_words(self) -> str:
        """Return it as a sentence."""
        jobs = "1 job" if self.jobs == 1 else f"{self.jobs:,} jobs"
        return (
            f"{self.peak:,.0f} of {self.processors:,} processors in use at once; for "
            f"{self.seconds / 3600:,.1f} hours more than there are, with {jobs}: starts, run times "
            "or sizes are wrong there, or the header is"
        )


def impossible_use(workload: Workload) -> ImpossibleUse | None:
    """Return when recorded jobs used more processors than the file states; None = never."""
    processors = workload.provenance.get("max_procs")
    history = workload.history
    if not isinstance(processors, int) or history is None:
        return None
    rows = np.flatnonzero(np.isfinite(history.start) & (workload.gpus > 0))
    start = history.start[rows]
    end = start + workload.run[rows]
    amount = workload.gpu_amount[rows]
    times = np.concatenate([end, start])  # ends first: the sort is stable
    change = np.concatenate([-amount, amount])
    order = np.argsort(times, kind="stable")
    times, used = times[order], np.cumsum(change[order])
    over = used > processors
    if not over.any():
        return None
    length = np.diff(times, append=times[-1])
    # Time spent above, up to each event: a job ran then if it grew between its start and its end.
    above = np.append(0.0, np.cumsum(np.where(over, length, 0.0)))
    at_start = above[np.searchsorted(times, start)]
    at_end = above[np.searchsorted(times, end)]
    involved = at_end > at_start
    begins = float(times[np.argmax(over & (length > 0))])
    first = rows[start >= begins]
    return ImpossibleUse(
        processors=processors,
        peak=float(used.max()),
        seconds=float(above[-1]),
        jobs=int(involved.sum()),
        first=int(first[np.argmin(history.start[first])]) if len(first) else 0,
    )
