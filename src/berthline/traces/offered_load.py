"""Offered load: the work of a workload relative to a cluster, and how to change it."""

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

    All jobs count, with their true run times, including those that the cluster would reject. The
    load is infinite if all jobs are submitted at once.
    """
    span = float(workload.submit[-1] - workload.submit[0])
    return workload.work / (cluster.total_gpus * span) if span > 0 else float("inf")


def scale_to_load(workload: Workload, cluster: Cluster, load: float) -> Workload:
    """Return the same jobs with submission times scaled so that the load is `load`.

    Times are scaled relative to the first submission, run times do not change, and every deadline
    keeps its distance from its job's submission. The provenance has the details under `scaled`.

    Raises:
        ConfigError: the load is out of range, or all jobs are submitted at once, so that scaling
            cannot change it.
    """
    load = float(LOAD.convert(load, where=workload.name))
    before = offered_load(workload, cluster)
    if before == float("inf"):
        raise ConfigError(
            f"the load cannot be set to {load:g}: all jobs are submitted at the same time",
            where=workload.name,
            expected="at least two different submission times",
            hint="omit `load`",
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
