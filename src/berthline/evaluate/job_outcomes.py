"""Job outcomes: what became of each job of one run, in the few bytes that are kept of every run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.evaluate.job_table import (
    COMPLETED,
    REJECTED,
    bounded_slowdowns,
    completion_times,
    job_table,
    waits,
)

if TYPE_CHECKING:
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload

STATES = ("completed", "unfinished", "rejected")
"""What `state` points to. A job that the run never came to is unfinished."""

_SMALL = np.dtype("<f4")
_BYTES_PER_JOB = 3 * _SMALL.itemsize + 1


@dataclasses.dataclass(frozen=True, eq=False)
class JobOutcomes:
    """What became of each job, in the workload's order.

    Attributes:
        wait: first start - submit, in seconds; NaN for a rejected job.
        jct: finish - submit, in seconds, up to the end of the run if unfinished; NaN likewise.
        bounded_slowdown: max(1, JCT / max(run, 10 s)); NaN likewise.
        state: index into STATES.
    """

    wait: npt.NDArray[np.float32]  # (num_jobs,)
    jct: npt.NDArray[np.float32]  # (num_jobs,)
    bounded_slowdown: npt.NDArray[np.float32]  # (num_jobs,)
    state: npt.NDArray[np.uint8]  # (num_jobs,)

    def to_bytes(self) -> bytes:
        """Return the columns one after another, for a pipe or a file."""
        times = (self.wait, self.jct, self.bounded_slowdown)
        return b"".join(column.astype(_SMALL).tobytes() for column in times) + self.state.tobytes()

    @classmethod
    def from_bytes(cls, content: bytes) -> JobOutcomes:
        """Return what `to_bytes` gave."""
        num_jobs = len(content) // _BYTES_PER_JOB
        times = np.frombuffer(content, _SMALL, 3 * num_jobs).reshape(3, num_jobs)
        state = np.frombuffer(content, np.uint8, offset=3 * num_jobs * _SMALL.itemsize)
        return cls(times[0], times[1], times[2], state)


def job_outcomes(log: Schedule, workload: Workload) -> JobOutcomes:
    """Return what the log says became of each job."""
    table = job_table(log, workload)
    counted = table.counted
    is_all = bool(counted.all())

    def of_all(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
        if is_all:
            return values.astype(np.float32)
        column = np.full(len(workload), np.nan, np.float32)
        column[counted] = values
        return column

    state = np.full(len(workload), STATES.index("unfinished"), np.uint8)
    state[table.status == COMPLETED] = STATES.index("completed")
    state[table.status == REJECTED] = STATES.index("rejected")
    return JobOutcomes(
        wait=of_all(waits(table, workload)),
        jct=of_all(completion_times(table, workload)),
        bounded_slowdown=of_all(bounded_slowdowns(table, workload)),
        state=state,
    )
