"""Job lists of the Muri simulator: those of Tiresias with times in milliseconds.

Muri adds `batch_size`, `iteration_time`, `resource_time_0` to `_2` (how long an iteration needs
each resource, which is what Muri interleaves jobs by) and `priority`. The added columns are not
used: jobs do not share GPUs here, and which end of `priority` (0 or 1) comes first is said nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.traces import tiresias
from berthline.traces.detection import Match, header_cells
from berthline.traces.files import is_binary

if TYPE_CHECKING:
    from pathlib import Path

    from berthline.model.workload import Workload

COLUMNS = (*tiresias.COLUMNS, "iteration_time", "resource_time_0")
_MILLISECONDS = 1000


def detect(head: bytes, path: Path) -> Match:  # noqa: ARG001 - every format has the same two
    """Return whether a file is a Muri job list: by the names of its columns."""
    if is_binary(head):
        return Match.NO
    return Match.CERTAIN if set(COLUMNS) <= set(header_cells(head)) else Match.NO


def read(path: Path) -> Workload:
    """Return the jobs of a Muri job list.

    Provenance, besides what `load_trace` lists: `models` (rows by model).

    Raises:
        TraceError: the file cannot be read, a cell makes no sense, or no row is usable.
    """
    return tiresias.read_job_list(
        path, format_name="muri", required=COLUMNS, units_per_second=_MILLISECONDS
    )
