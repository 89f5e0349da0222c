"""Placements that use GPU types, against others, on mixed clusters; `make results` runs it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks.paired_windows import Experiment, Setting, main

import berthline as bl
from berthline.model.cluster import Cluster, NodeGroup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEEDS, JOBS = range(10), 800
SCHEDULERS = {
    "best-fit": "sjf+easy@best-fit",
    "first-fit": "sjf+easy@first-fit",
    "random": "sjf+easy@random",
    "fastest-type": "sjf+easy@fastest-type",
    "-node_speed": "sjf+easy@[-node_speed]",
}


def mixed() -> Cluster:
    """Return 24 nodes of a slow, a middling and a fast type, the slow ones first."""
    groups = [NodeGroup(count=8, gpus=4, gpu_type=kind) for kind in ("P100", "V100", "H100")]
    return Cluster.from_groups(groups, name="P100 + V100 + H100")


def settings(_: Path | None) -> Iterator[Setting]:
    """Yield the mixed cluster at three loads, one without speeds, and a preset."""
    alike = mixed().with_conditions({"gpu_speeds": 0})
    for cluster, name, load in (
        (mixed(), "P100 + V100 + H100, load 0.5", 0.5),
        (mixed(), "P100 + V100 + H100, load 0.8", 0.8),
        (mixed(), "P100 + V100 + H100, load 2", 2.0),
        (Cluster.parse("drl-scheduler"), "drl-scheduler, load 0.8", 0.8),
        (alike, "all types equally fast, load 0.8", 0.8),
    ):
        windows = [
            bl.generate("synthetic", cluster=cluster, jobs=JOBS, load=load, seed=seed)
            for seed in SEEDS
        ]
        yield Setting(name, cluster, windows, SCHEDULERS)


EXPERIMENT = Experiment(
    page="type-aware-placement",
    settings=settings,
    measures=("jct_mean", "jct_p99", "bounded_slowdown", "energy_per_job_kwh"),
    shown=4,
    values={"jct_mean": ("s", 1.0)},
)

if __name__ == "__main__":
    sys.exit(main(EXPERIMENT, __doc__))
