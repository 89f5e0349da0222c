"""Offered load: how much work a workload brings to a cluster, and how to change it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from berthline.errors import ConfigError
from berthline.traces.generators.dials import LOAD

if TYPE_CHECKING:
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload


def offered_load(workload: Workload, cluster: Cluster) -> float:
    """Return work / (GPUs of the cluster * time from the first to the last submission).

    All jobs count, with their true run times, also those the cluster would reject. Infinity when
    all jobs are submitted at once.
    """
    span = float(workload.submit[-1] - workload.submit[0])
    return workload.work / (cluster.total_gpus * span) if span > 0 else float("inf")


def scale_to_load(workload: Workload, cluster: Cluster, load: float) -> Workload:
    """Return the same jobs with submissions stretched or squeezed so that the load is `load`.

    Times are scaled about the first submission, run times stay, and every deadline keeps its
    distance from its job's submission. What was done is in the provenance under `scaled`.

    Raises:
        ConfigError: the load is out of range, or all jobs are submitted at once, so that no scale
            changes it.
    """
    load = float(LOAD.convert(load, where=workload.name))
    before = offered_load(workload, cluster)
    if before == float("inf"):
        raise ConfigError(
            f"the load cannot be set to {load:g}: all jobs are submitted at the same time",
            where=workload.name,
            expected="at least two different submission times",
            hint="leave --load out",
        )
    factor = before / load
    first = workload.submit[0]
    submit = first + (workload.submit - first) * factor
    deadline = submit + (workload.deadline - workload.submit)
    for column in (submit, deadline):
        column.setflags(write=False)
    return dataclasses.replace(
        workload,
        submit=submit,
        deadline=deadline,
        provenance={
            **workload.provenance,
            "scaled": {
                "load_before": before,
                "load": load,
                "time_factor": factor,
                "gpus": cluster.total_gpus,
            },
        },
    )
