"""The placement `milp` against simpler ones on windows of Venus; `make results` runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.paired_windows import Experiment, Setting, main
from benchmarks.venus_windows import venus_windows

from berthline.model.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NODES, JOBS = 50, 1000
SCHEDULERS = {
    "best-fit": "fcfs+skip@best-fit",
    "first-fit": "fcfs+skip@first-fit",
    "fgd": "fcfs+skip@fgd",
    "defrag": "fcfs+skip@defrag",
    "milp-candidates": "fcfs+skip@milp-candidates",
    "milp": "fcfs+skip@milp:k=8:limit=60",
}


def settings(trace: Path | None) -> Iterator[Setting]:
    """Yield one cluster of nodes with eight GPUs, fewer than Venus had, so that jobs compete."""
    cluster = Cluster.parse(f"uniform:{NODES}x8")
    windows = venus_windows(trace, jobs=JOBS)
    yield Setting(f"Venus on {NODES} nodes", cluster, windows, SCHEDULERS, "none")


EXPERIMENT = Experiment(
    page="milp-placement",
    settings=settings,
    measures=("jct_mean", "wait_mean", "bounded_slowdown", "jct_p99"),
    shown=4,
    values={"jct_mean": ("s", 1.0), "fallbacks": ("in a window", 1.0)},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
