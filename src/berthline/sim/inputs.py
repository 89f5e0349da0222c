"""Inputs: a workload, a cluster and a scheduler, checked and resolved for a run.

Both simulators read the same Inputs. Nothing is decided here: names become indices, the
knowledge setting becomes the column of run times the scheduler may see, and what cannot be
simulated at all is refused.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, PolicyError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.gpu_types import type_names
from berthline.model.workload import FloatColumn, IntColumn, Workload
from berthline.policies.scheduler import Scheduler
from berthline.sim.random import stream_key, uniform_column

Knowledge = Literal["none", "estimate", "predicted", "exact"]
KNOWLEDGE: tuple[str, ...] = get_args(Knowledge)

FIRST_PREDICTION = 3600.0
"""Run time in seconds assumed under `predicted` knowledge until any job has finished."""


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """What a simulator needs to know.

    Attributes:
        workload: the jobs.
        cluster: the nodes.
        scheduler: a rule for every seat.
        knowledge: what the scheduler knows about run times.
        estimate: the run times the scheduler sees; under `predicted` they are filled in at each
            job's submission, and under `none` nothing reads them.
        job_class: jobs with the same pool and GPU types share a class.
        may_use: for each class, whether its jobs may use a node.
        class_reason: for each class that may use no node at all, the reason (REJECT_REASONS).
        random: the word `random` of each job; empty unless the scheduler uses it.
        placement_key: stream of the `random` placement.
        horizon: no event after this time happens.
    """

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    knowledge: Knowledge
    estimate: FloatColumn  # (num_jobs,)
    job_class: IntColumn  # (num_jobs,)
    may_use: npt.NDArray[np.bool_]  # (num_classes, num_nodes)
    class_reason: IntColumn  # (num_classes,)
    random: FloatColumn  # (num_jobs,) or (0,)
    placement_key: int
    horizon: float

    @property
    def max_priority(self) -> float:
        """The highest priority in the workload, at least 1."""
        return max(1.0, float(self.workload.priority.max()))


def prepare(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    *,
    knowledge: str,
    seed: int,
    horizon: float | None,
) -> Inputs:
    """Check that the run is possible and resolve its inputs.

    Raises:
        ConfigError: the knowledge setting or the horizon is wrong.
        PolicyError: the scheduler needs run times that it does not know.
    """
    if knowledge not in KNOWLEDGE:
        what, expected, hint = unknown_name("knowledge", knowledge, KNOWLEDGE)
        raise ConfigError(what, expected=expected, hint=hint)
    if horizon is not None and not horizon > 0:
        raise ConfigError(f"horizon is {horizon}", expected="seconds, more than 0")
    if knowledge == "none" and scheduler.needs_run_times:
        raise PolicyError(
            f"scheduler {str(scheduler)!r} needs run times, but knowledge is 'none'",
            expected="an order, discipline and gate that do not use run times",
            hint="use --knowledge estimate, predicted or exact; or fcfs+skip",
        )
    estimate = _known_run_times(workload, scheduler, knowledge)
    job_class, may_use, class_reason = _classes(workload, cluster)
    words = set(scheduler.order.words) | set(scheduler.gate.words if scheduler.gate else ())
    return Inputs(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        knowledge=knowledge,  # type: ignore[arg-type]  # checked above
        estimate=estimate,
        job_class=job_class,
        may_use=may_use,
        class_reason=class_reason,
        random=uniform_column(stream_key(seed, "order"), len(workload) if "random" in words else 0),
        placement_key=stream_key(seed, "placement"),
        horizon=np.inf if horizon is None else float(horizon),
    )


def _known_run_times(workload: Workload, scheduler: Scheduler, knowledge: str) -> FloatColumn:
    if knowledge != "estimate":
        return workload.run
    missing = np.isnan(workload.estimate)
    if not missing.any():
        return workload.estimate
    if missing.all():
        if scheduler.needs_run_times:
            raise PolicyError(
                f"scheduler {str(scheduler)!r} needs run times, but no job has an estimate",
                where=f"workload {workload.name!r}",
                hint="use --knowledge predicted or exact, or a scheduler without run times",
            )
        return workload.run
    # A job submitted without a limit gets the site's largest, as batch systems do.
    return np.where(missing, np.nanmax(workload.estimate), workload.estimate)


def _classes(
    workload: Workload, cluster: Cluster
) -> tuple[IntColumn, npt.NDArray[np.bool_], IntColumn]:
    """Group jobs by (pool, GPU types) and say which nodes each group may use."""
    if not workload.pool_names and not workload.gpu_type_sets:
        return (
            np.zeros(len(workload), np.int32),
            np.ones((1, cluster.num_nodes), np.bool_),
            np.full(1, -1, np.int32),
        )
    width = len(workload.gpu_type_sets) + 1
    codes = (workload.pool + 1) * width + (workload.gpu_types + 1)
    unique, job_class = np.unique(codes, return_inverse=True)
    may_use = np.ones((len(unique), cluster.num_nodes), np.bool_)
    reason = np.full(len(unique), -1, np.int32)
    for row, code in enumerate(unique):
        pool, types = divmod(int(code), width)
        if pool > 0:
            # A node in no pool is open to the jobs of every pool.
            name = workload.pool_names[pool - 1]
            index = cluster.pool_names.index(name) if name in cluster.pool_names else -2
            may_use[row] &= (cluster.pool == index) | (cluster.pool == -1)
            if not may_use[row].any():
                reason[row] = 0
        if types > 0 and reason[row] < 0:
            allowed = type_names(workload.gpu_type_sets[types - 1])
            indices = [i for i, kind in enumerate(cluster.types) if kind.name in allowed]
            may_use[row] &= np.isin(cluster.gpu_type, indices)
            if not may_use[row].any():
                reason[row] = 1
    return job_class.astype(np.int32), may_use, reason
