"""Schedule: the log of one run, the only thing metrics, figures and exports are computed from.

Rows are events in the order in which they happened; a job's first row is its submission, also when
it is rejected. Start and resume rows own a slice of the allocation arrays, in the order of these
rows: which nodes, how many GPUs on each, and which shared GPU for a job on part of one. Both
simulators write this log, and two runs are equal when their logs are equal (`sha256`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import polars as pl

SUBMIT, START, FINISH, REJECT, PREEMPT, RESUME, REFUSE, NODE_DOWN, NODE_UP = range(9)
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
)

PREEMPT_REASONS = ("for another job", "its node went down", "end of its round", "to move it")
FOR_ANOTHER, NODE_WENT_DOWN, END_OF_ROUND, TO_MOVE = range(4)

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
    "more GPUs than its quota allows",
)


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
    """The events of one run.

    Attributes:
        time: seconds on the workload's clock.
        kind: index into KINDS. A start after a preemption is a RESUME.
        job: job id (row of the workload); NO_JOB in rows about nodes.
        detail: START, RESUME: first row of the job's allocation; REJECT: index into
            REJECT_REASONS; PREEMPT: index into PREEMPT_REASONS; NODE_DOWN, NODE_UP: node id;
            otherwise -1.
        alloc_node: node id of each allocation row.
        alloc_gpus: GPUs taken on that node; 1 also for a part of one, 0 for a job without GPUs.
        alloc_slot: for a part of a GPU, the number of the shared GPU on its node; else WHOLE_GPUS.
        horizon: the time after which no event was processed; infinity = the run went to its end.
        decisions: how many decision points there were.
        fallbacks: how often a planned placement (`milp`) gave no plan and best-fit stood in.
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
    fallbacks: int = 0

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
        """Return the log as a table: time, kind, job, nodes, gpus, reason.

        In rows about nodes, `job` is empty and `nodes` holds the node.
        """
        import polars as pl

        starts = self.is_start
        first = self.detail[starts]
        counts = np.diff(first, append=len(self.alloc_node))
        events = np.repeat(np.flatnonzero(starts), counts).astype(np.uint32)
        about_nodes = np.flatnonzero((self.kind == NODE_DOWN) | (self.kind == NODE_UP))
        allocations = (
            pl.DataFrame(
                {
                    "event": np.concatenate([events, about_nodes.astype(np.uint32)]),
                    "nodes": np.concatenate([self.alloc_node, self.detail[about_nodes]]),
                    "gpus": pl.concat(
                        [
                            pl.Series(self.alloc_gpus, dtype=pl.Int32),
                            pl.repeat(None, len(about_nodes), dtype=pl.Int32, eager=True),
                        ]
                    ),
                }
            )
            .group_by("event", maintain_order=True)
            .agg("nodes", pl.col("gpus").drop_nulls())
        )
        names = (*REJECT_REASONS, *PREEMPT_REASONS, None)
        reasons = np.full(len(self), len(names) - 1, dtype=np.uint32)
        for kind, offset in ((REJECT, 0), (PREEMPT, len(REJECT_REASONS))):
            rows = np.flatnonzero(self.kind == kind)
            reasons[rows] = self.detail[rows] + offset
        return (
            pl.DataFrame(
                {
                    "time": self.time,
                    "kind": pl.Series(self.kind, dtype=pl.UInt8).replace_strict(
                        dict(enumerate(KINDS)), return_dtype=pl.String
                    ),
                    "job": pl.Series(self.job, dtype=pl.Int32).replace(NO_JOB, None),
                    "reason": pl.Series(names, dtype=pl.String).gather(pl.Series(reasons)),
                }
            )
            .with_row_index("event")
            .join(allocations, on="event", how="left", maintain_order="left")
            .select("time", "kind", "job", "nodes", "gpus", "reason")
        )
