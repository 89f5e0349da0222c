"""Schedule: the log of one run, the only thing metrics, figures and exports are computed from.

Rows are events in the order in which they happened; a job's first row is its submission, also when
it is rejected. Start rows own a slice of the allocation arrays, in the order of the starts: which
nodes, and how many GPUs on each. Both simulators write this log, and two runs are
equal when their logs are equal (`sha256`).
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

SUBMIT, START, FINISH, REJECT = range(4)
KINDS = ("submit", "start", "finish", "reject")

REJECT_REASONS = (
    "no node in its pool",
    "no node with its GPU type",
    "more GPUs than the nodes it may use have",
    "its CPUs do not fit on the nodes it may use",
    "its memory does not fit on the nodes it may use",
)


@dataclasses.dataclass(frozen=True, eq=False)
class Schedule:
    """The events of one run.

    Attributes:
        time: seconds on the workload's clock.
        kind: SUBMIT, START, FINISH or REJECT.
        job: job id (row of the workload).
        detail: START: first row of the job's allocation; REJECT: index into REJECT_REASONS;
            otherwise -1.
        alloc_node: node id of each allocation row.
        alloc_gpus: GPUs taken on that node.
        horizon: the time after which no event was processed; infinity = the run went to its end.
        decisions: how many decision points there were.
    """

    time: npt.NDArray[np.float64]  # (num_events,)
    kind: npt.NDArray[np.uint8]  # (num_events,)
    job: npt.NDArray[np.int32]  # (num_events,)
    detail: npt.NDArray[np.int32]  # (num_events,)
    alloc_node: npt.NDArray[np.int32]  # (num_allocations,)
    alloc_gpus: npt.NDArray[np.int32]  # (num_allocations,)
    horizon: float
    decisions: int

    def __len__(self) -> int:
        return len(self.time)

    def allocation(self, event: int) -> dict[int, int]:
        """Return {node: gpus} of the start event in row `event`."""
        first = int(self.detail[event])
        index = int(np.searchsorted(self._first_shares, first, side="right"))
        last = int(self._first_shares[index]) if index < len(self._first_shares) else None
        nodes, gpus = self.alloc_node[first:last].tolist(), self.alloc_gpus[first:last].tolist()
        return dict(zip(nodes, gpus, strict=True))

    @cached_property
    def _first_shares(self) -> npt.NDArray[np.int32]:
        """First allocation row of every start, ascending."""
        first: npt.NDArray[np.int32] = self.detail[self.kind == START]
        return first

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
        return digest.hexdigest()

    def frame(self) -> pl.DataFrame:
        """Return the log as a table: time, kind, job, nodes, gpus, reason."""
        import polars as pl

        starts = self.kind == START
        first = self.detail[starts]
        counts = np.diff(first, append=len(self.alloc_node))
        events = np.repeat(np.flatnonzero(starts), counts).astype(np.uint32)
        allocations = (
            pl.DataFrame({"event": events, "nodes": self.alloc_node, "gpus": self.alloc_gpus})
            .group_by("event", maintain_order=True)
            .agg("nodes", "gpus")
        )
        reasons = np.where(self.kind == REJECT, self.detail, len(REJECT_REASONS))
        return (
            pl.DataFrame(
                {
                    "time": self.time,
                    "kind": pl.Series(self.kind, dtype=pl.UInt8).replace_strict(
                        dict(enumerate(KINDS)), return_dtype=pl.String
                    ),
                    "job": self.job,
                    "reason": pl.Series(reasons, dtype=pl.Int64).replace_strict(
                        dict(enumerate((*REJECT_REASONS, None))), return_dtype=pl.String
                    ),
                }
            )
            .with_row_index("event")
            .join(allocations, on="event", how="left", maintain_order="left")
            .select("time", "kind", "job", "nodes", "gpus", "reason")
        )
