"""Windows of the Helios trace of Venus, with whole GPUs, sizes and times only."""

from __future__ import annotations

from pathlib import Path

import berthline as bl
from berthline.errors import TraceError

PLACES = (
    Path("traces/helios-venus"),
    Path(__file__).parents[2] / "shared" / "traces" / "helios_venus",
)
"""Where the trace may be: fetched, or beside the repository."""


def venus_windows(trace: Path | None, *, jobs: int) -> list[bl.Workload]:
    """Return eight windows, the same for every experiment; jobs may use all nodes.

    Raises:
        TraceError: the trace is not there.
    """
    found = [trace] if trace is not None else [
        path for place in PLACES for path in sorted(place.glob("venus_gpu_jobs*.csv.gz"))
    ]  # fmt: skip
    if not found:
        raise TraceError(
            "there is no copy of the Venus trace",
            expected="its job table, such as venus_gpu_jobs.csv.gz",
            hint="name it on the command line",
        )
    whole = bl.load_trace(found[0])
    return [
        bl.Workload.from_columns(submit=part.submit, run=part.run, gpus=part.gpus)
        for part in (whole.window(first, first + jobs) for first in range(5000, 90_000, 11_000))
    ]
