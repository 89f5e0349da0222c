"""History: what accounting recorded about jobs besides what a simulation needs.

When a job actually started, on which nodes, and with which priority. Simulations ignore it; their
results can be compared with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

NOT_RECORDED = -1
"""In a column of codes: nothing was recorded for the job."""


@dataclasses.dataclass(frozen=True, eq=False)
class History:
    """What was recorded about each job, in the workload's order; None = about no job.

    Attributes:
        start: when the job started, in seconds on the workload's clock; NaN = not recorded.
        eligible: when it could have started at the earliest, for example after the jobs it depends
            on, on the same clock; NaN = not recorded.
        running: it was still running when the log was taken; its run time is the time until then.
        priority: as its scheduler computed it; larger goes first; NaN = not recorded.
        nodes: index into `node_lists`; NOT_RECORDED = none.
        node_lists: texts such as `gpu[01-04,7]`.
        gpu_type: index into `gpu_type_names`, of the GPUs it got; NOT_RECORDED = none.
        gpu_type_names: as the site spells them.
        status: index into `status_names`: how the job ended; NOT_RECORDED = not known.
        status_names: as the log spells them.
        group: index into `group_names`: the users' group or account; NOT_RECORDED = not known.
        group_names: as the log spells them.
        other: further numbers that the format of the log has, by its names for them. Nothing reads
            them; a copy of the log in that format has them again.
    """

    start: npt.NDArray[np.float64]  # (num_jobs,)
    eligible: npt.NDArray[np.float64] | None = None  # (num_jobs,)
    running: npt.NDArray[np.bool_] | None = None  # (num_jobs,)
    priority: npt.NDArray[np.float64] | None = None  # (num_jobs,)
    nodes: npt.NDArray[np.int32] | None = None  # (num_jobs,)
    node_lists: tuple[str, ...] = ()
    gpu_type: npt.NDArray[np.int32] | None = None  # (num_jobs,)
    gpu_type_names: tuple[str, ...] = ()
    status: npt.NDArray[np.int32] | None = None  # (num_jobs,)
    status_names: tuple[str, ...] = ()
    group: npt.NDArray[np.int32] | None = None  # (num_jobs,)
    group_names: tuple[str, ...] = ()
    other: Mapping[str, npt.NDArray[np.float64]] = dataclasses.field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.start)

    def take(self, rows: npt.NDArray[Any] | slice, *, zero: float = 0.0) -> History:
        """Return the history of some rows, or of all in another order.

        Args:
            rows: row numbers, a mask or a slice.
            zero: the time that becomes 0.
        """
        columns: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value = value[rows]
                if field.name in ("start", "eligible") and zero:
                    value = value - zero
            elif field.name == "other":
                value = {name: numbers[rows] for name, numbers in value.items()}
            columns[field.name] = value
        return History(**columns)
