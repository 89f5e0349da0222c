"""Schedule: the log of one run, the only thing metrics, figures and exports are computed from.

Rows are events in the order in which they happened; a job's first row is its submission, even if it
is rejected. Start and resume rows own a slice of the allocation arrays, in the order of these
rows: which nodes, how many GPUs on each, and which shared GPU for a job on part of one. Both
simulators write this log, and two runs are equal when their logs are equal (`sha256`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berthline.counted import counted

if TYPE_CHECKING:
    import polars as pl

SUBMIT, START, FINISH, REJECT, PREEMPT, RESUME, REFUSE, NODE_DOWN, NODE_UP, FALLBACK = range(10)
KINDS = (
    "submit",
    "start",
    "finish",
    "reject",
    "preempt",
    "resume",
    "refuse",
    "node down",
    "node up",
    "fallback",
)

PREEMPT_REASONS = ("for another job", "its node went down", "end of its round", "to move it")
FOR_ANOTHER, NODE_WENT_DOWN, END_OF_ROUND, TO_MOVE = range(4)

FALLBACK_REASONS = (
    "no best plan was proved in time",
    "too many ways to fill the nodes",
    "its own nodes cannot take it now",
)
"""Why best-fit replaces a planned placement (`milp`)."""
NOT_IN_TIME, TOO_MANY_WAYS, NOT_ON_OWN_NODES = range(3)

NO_JOB = -1
"""The job of a row about a node."""
WHOLE_GPUS = -1
"""The shared GPU of an allocation of whole GPUs."""

REJECT_REASONS = (
    "no node in its pool",
    "no node with its GPU type",
    "more GPUs than the nodes it may use have",
    "its CPUs do not fit on the nodes it may use",
    "its memory does not fit on the nodes it may use",
    "more nodes than a job may have here",
    "more GPUs than its quota allows",
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Schedule:
    """The events of one run.

    Attributes:
        time: seconds on the workload's clock.
        kind: index into KINDS. A start after a preemption is a RESUME.
        job: job id (row of the workload); NO_JOB in rows about nodes.
        detail: START, RESUME: first row of the job's allocation; REJECT: index into
            REJECT_REASONS; PREEMPT: index into PREEMPT_REASONS; FALLBACK: index into
            FALLBACK_REASONS; NODE_DOWN, NODE_UP: node id; otherwise -1.
        alloc_node: node id of each allocation row.
        alloc_gpus: GPUs taken on that node; 1 also for a part of one, 0 for a job without GPUs.
        alloc_slot: for a part of a GPU, the number of the shared GPU on its node; else WHOLE_GPUS.
        horizon: the time after which no event was processed; infinity = the run went to its end.
        decisions: how many decision points there were.
    """

    time: npt.NDArray[np.float64]  # (num_events,)
    kind: npt.NDArray[np.uint8]  # (num_events,)
    job: npt.NDArray[np.int32]  # (num_events,)
    detail: npt.NDArray[np.int32]  # (num_events,)
    alloc_node: npt.NDArray[np.int32]  # (num_allocations,)
    alloc_gpus: npt.NDArray[np.int32]  # (num_allocations,)
    alloc_slot: npt.NDArray[np.int32]  # (num_allocations,)
    horizon: float
    decisions: int

    def __repr__(self) -> str:
        until = f" until {self.horizon:,.10g} s" if math.isfinite(self.horizon) else ""
        return f"<Schedule: {counted(len(self), 'event')}{until}>"

    def __len__(self) -> int:
        return len(self.time)

    def allocation(self, event: int) -> dict[int, int]:
        """Return {node: gpus} of the start or resume event in row `event`."""
        first = int(self.detail[event])
        index = int(np.searchsorted(self._first_shares, first, side="right"))
        last = int(self._first_shares[index]) if index < len(self._first_shares) else None
        nodes, gpus = self.alloc_node[first:last].tolist(), self.alloc_gpus[first:last].tolist()
        return dict(zip(nodes, gpus, strict=True))

    @cached_property
    def _first_shares(self) -> npt.NDArray[np.int32]:
        """First allocation row of every start, ascending."""
        first: npt.NDArray[np.int32] = self.detail[self.is_start]
        return first

    @property
    def is_start(self) -> npt.NDArray[np.bool_]:
        """True for the rows at which a job takes GPUs: START and RESUME."""
        starts: npt.NDArray[np.bool_] = (self.kind == START) | (self.kind == RESUME)
        return starts

    @property
    def fallbacks(self) -> int:
        """How often a planned placement (`milp`) found no plan and best-fit was used."""
        return int(np.count_nonzero(self.kind == FALLBACK))

    def sha256(self) -> str:
        """Return the hash of all rows; equal hashes mean equal schedules, allocations included."""
        digest = hashlib.sha256()
        for column, dtype in (
            (self.time, "<f8"),
            (self.kind, "u1"),
            (self.job, "<i4"),
            (self.detail, "<i4"),
            (self.alloc_node, "<i4"),
            (self.alloc_gpus, "<i4"),
        ):
            digest.update(np.ascontiguousarray(column, dtype=dtype).data)
        if (self.alloc_slot != WHOLE_GPUS).any():
            digest.update(np.ascontiguousarray(self.alloc_slot, dtype="<i4").data)
        return digest.hexdigest()

    def frame(self) -> pl.DataFrame:
        """Return the log as a table: time, kind, job, nodes, gpus, reason, slots.

        In rows about nodes, `job` is empty and `nodes` holds the node. `slots` holds the numbers of
        shared GPUs, and is empty for whole ones.
        """
        from berthline.model.schedule_table import frame_of

        return frame_of(self)

    @classmethod
    def from_frame(
        cls, frame: pl.DataFrame, *, horizon: float = np.inf, decisions: int = 0
    ) -> Schedule:
        """Return the log of a table that `frame()` returned.

        Args:
            frame: the table.
            horizon: of the run, which the table does not hold.
            decisions: of the run, which the table does not hold either.

        Raises:
            ConfigError: `frame()` does not return such a table.
        """
        from berthline.model.schedule_table import schedule_of

        return schedule_of(frame, horizon=horizon, decisions=decisions)
