"""The preemption rule `index` against others on windows of Venus; `make results` runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.paired_windows import Experiment, Setting, main
from benchmarks.venus_windows import venus_windows

from berthline.model.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GPUS, JOBS = 480, 3000
SCHEDULERS = {
    "las": "las+skip!las",
    "las, no promotion": "las+skip!las:promote=0",
    "attained": "[attained]+skip![attained]:every=60:min_run=-1",
    "gittins": "gittins+skip!gittins",
    "index": "las+skip!index",
    "no preemption": "fcfs+skip",
}


def settings(trace: Path | None) -> Iterator[Setting]:
    """Yield a cluster that only loses the restart, and one with checkpoints."""
    cluster = Cluster.parse(f"uniform:1x{GPUS}")
    windows = venus_windows(trace, jobs=JOBS)
    for name, conditions in (
        ("restart 30 s, no work lost", {"restart": 30, "checkpoint": 0}),
        ("restart 60 s, checkpoint every 1800 s", {"restart": 60, "checkpoint": 1800}),
    ):
        yield Setting(name, cluster, windows, SCHEDULERS, "none", conditions)


EXPERIMENT = Experiment(
    page="few-preemptions",
    settings=settings,
    measures=("jct_mean", "bounded_slowdown", "preemptions", "jct_max", "jct_p99"),
    shown=4,
    values={
        "jct_mean": ("s", 1.0),
        "preemptions": ("a job", JOBS),
        "lost_gpu_hours": ("in a window", 1.0),
    },
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
