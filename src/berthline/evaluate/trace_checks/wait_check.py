"""How long jobs wait in a workload and in others modelled on it, on the same cluster.

The cluster is a single node, so that packing plays no part. It has as many GPUs as give the
original a load of 0.8, or more if a job is wider. The scheduler is `fcfs+easy`, with estimates if
every job has one.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from berthline.model.workload import Workload

SCHEDULER = "fcfs+easy"
LOAD = 0.8


@dataclasses.dataclass(frozen=True)
class WaitCheck:
    """Mean waits on one cluster.

    Attributes:
        gpus: of the cluster, all on one node.
        load: of the original on it.
        knowledge: what the scheduler knows of run times.
        original: mean wait of the original, in seconds.
        made: mean waits of the workloads modelled on it.
    """

    gpus: int
    load: float
    knowledge: str
    original: float
    made: list[float]

    @property
    def ratio(self) -> float | None:
        """Median of `made` / original; None = the original has no waits."""
        return float(np.median(self.made)) / self.original if self.original > 0 else None

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return rows of a table: what, original, made, how close."""
        close = "" if self.ratio is None else f"ratio {self.ratio:.2f}"
        median, low, high = (f(self.made) / 3600 for f in (np.median, min, max))
        rows = [
            (
                f"mean wait, hours, {self.gpus} GPUs",
                f"{self.original / 3600:.3g}",
                f"{median:.3g}",
                close,
            )
        ]
        if len(self.made) > 1:
            rows.append((f"lowest to highest of {len(self.made)}", "", f"{low:.3g}-{high:.3g}", ""))
        return rows

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, for JSON."""
        return {**dataclasses.asdict(self), "scheduler": SCHEDULER, "ratio": self.ratio}


def gpus_for(workload: Workload) -> int:
    """Return the GPUs of the cluster: for a load of LOAD, and for the widest job."""
    span = max(float(workload.submit[-1] - workload.submit[0]), 1.0)
    return max(1, math.ceil(workload.work / span / LOAD), int(workload.gpus.max()))


def knowledge_of(workload: Workload) -> str:
    """Return what the scheduler can know: estimates, or else true run times."""
    return "exact" if np.isnan(workload.estimate).any() else "estimate"


def mean_wait(workload: Workload, gpus: int, knowledge: str) -> float:
    """Return the mean wait in seconds of jobs with GPUs; their other requests are ignored."""
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload as Jobs
    from berthline.sim.simulate import simulate

    some = workload.gpus > 0
    if not some.any():
        return 0.0
    jobs = Jobs.from_columns(
        submit=workload.submit[some],
        run=workload.run[some],
        gpus=workload.gpus[some],
        gpu_milli=workload.gpu_milli[some],
        estimate=workload.estimate[some],
        name=workload.name,
    )
    cluster = Cluster.uniform(nodes=1, gpus_per_node=gpus)
    return float(simulate(jobs, cluster, SCHEDULER, knowledge=knowledge).metrics().wait.mean)


def check_waits(original: Workload, made: Iterable[Workload]) -> WaitCheck:
    """Return the mean waits of a workload and of others modelled on it."""
    gpus, knowledge = gpus_for(original), knowledge_of(original)
    span = max(float(original.submit[-1] - original.submit[0]), 1.0)
    return WaitCheck(
        gpus,
        original.work / span / gpus,
        knowledge,
        mean_wait(original, gpus, knowledge),
        [mean_wait(workload, gpus, knowledge) for workload in made],
    )
