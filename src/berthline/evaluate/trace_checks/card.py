"""Trace card: a summary of a workload, as plain data.

Everything is computed from the jobs as loaded, with their true run times; the card also lists what
the reader left out. With a cluster, it also shows the demand of the jobs on it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from berthline.evaluate.trace_checks.cluster_fit import impossible_jobs, usable_gpus
from berthline.model.cluster import Cluster
from berthline.model.provenance import Origin, origin_of
from berthline.model.schedule import REJECT_REASONS
from berthline.model.speeds import RunTimeScaling, recorded_types, run_time_scaling
from berthline.model.workload import WHOLE_GPU
from berthline.traces.cluster_argument import resolve_cluster
from berthline.traces.inspect.arrival_pattern import DAY, by_day, by_hour_of_week, local_clock
from berthline.traces.inspect.demand import Demand
from berthline.traces.inspect.impossible_records import ImpossibleUse, impossible_use
from berthline.traces.offered_load import offered_load

if TYPE_CHECKING:
    from berthline.model.workload import Workload
    from berthline.text_or_path import TextOrPath

ANY = "any"
"""The card's name for the jobs that name no pool or no GPU type."""

OWN_CLUSTER = "as stated in the file"
"""The name of the cluster that a trace states itself."""

_ONE_NODE_MOST = 2**31 - 1
_NOBODY = frozenset({"", "all", "unknown", "user0"})
"""Names of the only user of a workload whose trace does not name users."""


class Quantiles(msgspec.Struct, frozen=True, kw_only=True):
    """The spread of values."""

    mean: float
    min: float
    p10: float
    p50: float
    p90: float
    p99: float
    max: float


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that ask for the same number of GPUs; all jobs on part of a GPU are one size."""

    gpus: int
    is_part: bool
    """They take a part of one GPU, of any size."""
    jobs: int
    job_share: float
    work_share: float
    """Of all GPU-seconds."""


class Estimates(msgspec.Struct, frozen=True, kw_only=True):
    """How good the users' run time estimates are."""

    jobs: int
    """Jobs that have one."""
    factor: Quantiles | None
    """Estimate / run time."""
    too_short: int
    """Jobs that ran longer than their estimate."""


class Arrivals(msgspec.Struct, frozen=True, kw_only=True):
    """When jobs are submitted."""

    per_day: float
    busiest_day: int
    most_at_once: int
    """Most jobs submitted at the same instant."""
    gap_cv: float | None
    """Standard deviation / mean of the time between submissions; 1 = Poisson, more = bursty."""
    by_hour: list[int]
    by_weekday: list[int]
    """Monday first; empty where the trace has no dates."""


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """The demand of the jobs of one pool, or of one GPU type set, on the GPUs they may use."""

    name: str
    jobs: int
    gpus: int
    """GPUs they may use."""
    demand_mean: float
    demand_p95: float
    oversubscription: float | None
    """Mean demand / GPUs: above 1 the queue grows without limit. None = they may use none."""


class OnCluster(msgspec.Struct, frozen=True, kw_only=True):
    """The workload on a cluster."""

    name: str
    gpus: int
    load: float | None
    """Offered load; None = all jobs are submitted at once."""
    time_above: float
    """Share of the time in which the demand exceeds the GPUs."""
    by_gpu_type: list[Pressure]
    by_pool: list[Pressure]
    impossible: dict[str, int]
    """Jobs the simulator would reject, by reason."""
    run_times: RunTimeScaling | None
    """How a run there scales run times; None = not at all. The load does not count it."""


class TraceCard(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of a workload."""

    name: str
    format: str
    jobs: int
    users: int
    pools: int
    rows: int | None
    """Rows of the file; None = the workload is not from a file."""
    dropped: dict[str, int]
    rounded: dict[str, int]
    origin: Origin | None
    """None = the jobs come from this file itself, or from none."""
    span_seconds: float
    first: str
    """When the first job was submitted, on the cluster's clock; empty = not known."""
    last: str
    time_zone: str
    gpu_hours: float
    """A job on a part of a GPU counts with that part."""
    jobs_on_parts: int
    """Jobs that take a part of one GPU."""
    jobs_without_gpus: int
    sizes: list[Size]
    largest: int
    run: Quantiles
    estimates: Estimates
    arrivals: Arrivals
    demand_mean: float
    """GPUs busy on average if every job started on submission."""
    demand_p95: float
    demand_max: float
    missing: list[str]
    impossible_use: ImpossibleUse | None
    """When more processors were in use than the file states; None = never, or it states none."""
    run_times_on: dict[str, int]
    """Jobs by the GPU type that their run times were recorded on; `recorded` = not known."""
    cluster: OnCluster | None


def trace_card(workload: Workload, cluster: Cluster | TextOrPath | None = None) -> TraceCard:
    """Return the card of a workload, on a cluster if one is given or the trace names it.

    Args:
        workload: the jobs.
        cluster: a Cluster or a CLUSTER argument (see `resolve_cluster`).
    """
    provenance = workload.provenance
    clock = local_clock(workload)
    demand = Demand.of(workload)
    nodes = own_cluster(workload) if cluster is None else resolve_cluster(cluster)
    return TraceCard(
        name=workload.name,
        format=str(provenance.get("format") or ""),
        jobs=len(workload),
        users=num_users(workload),
        pools=len(np.unique(workload.pool[workload.pool >= 0])),
        rows=provenance.get("rows"),
        dropped=dict(provenance.get("dropped") or {}),
        rounded=dict(provenance.get("rounded") or {}),
        origin=origin_of(provenance),
        span_seconds=float(workload.submit[-1] - workload.submit[0]),
        first=clock.date(0),
        last=clock.date(-1),
        time_zone=(clock.zone or "UTC") if clock.has_dates else "",
        gpu_hours=workload.work / 3600,
        jobs_on_parts=int(is_on_part(workload).sum()),
        jobs_without_gpus=int((workload.gpus == 0).sum()),
        sizes=_sizes(workload),
        largest=int(workload.gpus.max()),
        run=quantiles(workload.run),
        estimates=_estimates(workload),
        arrivals=_arrivals(workload),
        demand_mean=demand.mean,
        demand_p95=demand.quantile(0.95),
        demand_max=demand.max,
        missing=missing_fields(workload),
        impossible_use=impossible_use(workload),
        run_times_on=recorded_types(workload),
        cluster=None if nodes is None else _on_cluster(workload, nodes, demand),
    )


def num_users(workload: Workload) -> int:
    """Return how many users submitted the jobs; 0 = the trace does not name them."""
    users = np.unique(workload.user)
    if len(users) > 1:
        return len(users)
    return 0 if workload.user_names[users[0]] in _NOBODY else 1


def own_cluster(workload: Workload) -> Cluster | None:
    """Return the machine that the trace itself states, as one node; None = it states none."""
    processors = workload.provenance.get("max_procs")
    if not isinstance(processors, int) or not 0 < processors <= _ONE_NODE_MOST:
        return None
    one_node = Cluster.uniform(nodes=1, gpus_per_node=processors)
    return dataclasses.replace(one_node, name=OWN_CLUSTER)


def quantiles(values: npt.NDArray[np.float64]) -> Quantiles:
    """Return the spread of values."""
    low, p10, p50, p90, p99, high = np.quantile(values, [0, 0.1, 0.5, 0.9, 0.99, 1]).tolist()
    return Quantiles(
        mean=float(values.mean()), min=low, p10=p10, p50=p50, p90=p90, p99=p99, max=high
    )


def missing_fields(workload: Workload) -> list[str]:
    """Return the fields that no job of the workload has."""
    absent = {
        "dates": workload.provenance.get("origin_unix_time") is None,
        "users": num_users(workload) == 0,
        "estimates": bool(np.isnan(workload.estimate).all()),
        "pools": bool((workload.pool < 0).all()),
        "GPU types": bool(((workload.gpu_types < 0) & (workload.ran_on < 0)).all()),
        "CPUs": not workload.cpus.any(),
        "memory": not workload.memory_mib.any(),
        "priorities": _is_constant(workload.priority),
        "deadlines": bool(np.isinf(workload.deadline).all()),
        "job ids": workload.names is None,
    }
    return [name for name, is_absent in absent.items() if is_absent]


def _is_constant(column: npt.NDArray[np.generic]) -> bool:
    return bool((column == column[0]).all())


def is_on_part(workload: Workload) -> npt.NDArray[np.bool_]:
    """Return which jobs take a part of one GPU."""
    return (workload.gpus > 0) & (workload.gpu_milli < WHOLE_GPU)


def _sizes(workload: Workload) -> list[Size]:
    # Parts of a GPU come just before one GPU.
    codes, inverse, jobs = np.unique(
        2 * workload.gpus.astype(np.int64) - is_on_part(workload),
        return_inverse=True,
        return_counts=True,
    )
    work = np.bincount(inverse, weights=workload.run * workload.gpu_amount)
    total = float(work.sum()) or 1.0  # jobs without GPUs do no work on them
    return [
        Size(
            gpus=(code + 1) // 2,
            is_part=code % 2 == 1,
            jobs=count,
            job_share=count / len(workload),
            work_share=part / total,
        )
        for code, count, part in zip(codes.tolist(), jobs.tolist(), work.tolist(), strict=True)
    ]


def _estimates(workload: Workload) -> Estimates:
    known = ~np.isnan(workload.estimate)
    estimate, run = workload.estimate[known], workload.run[known]
    return Estimates(
        jobs=int(known.sum()),
        factor=quantiles(estimate / run) if known.any() else None,
        too_short=int((run > estimate).sum()),
    )


def _arrivals(workload: Workload) -> Arrivals:
    clock = local_clock(workload)
    gaps = np.diff(workload.submit)
    mean = float(gaps.mean()) if gaps.size else 0.0
    week = by_hour_of_week(clock)
    return Arrivals(
        per_day=len(workload) / max(float(workload.submit[-1] - workload.submit[0]) / DAY, 1.0),
        busiest_day=int(by_day(clock)[1].max()),
        most_at_once=int(np.unique(workload.submit, return_counts=True)[1].max()),
        gap_cv=float(gaps.std()) / mean if mean > 0 else None,
        by_hour=week.sum(axis=0).tolist(),
        by_weekday=week.sum(axis=1).tolist() if clock.has_dates else [],
    )


def _on_cluster(workload: Workload, cluster: Cluster, demand: Demand) -> OnCluster:
    reasons = impossible_jobs(workload, cluster)
    counts = np.bincount(reasons[reasons >= 0], minlength=len(REJECT_REASONS)).tolist()
    load = offered_load(workload, cluster)
    return OnCluster(
        name=cluster.name,
        gpus=cluster.total_gpus,
        load=load if np.isfinite(load) else None,
        time_above=demand.time_above(cluster.total_gpus),
        by_gpu_type=_pressures(workload, cluster, "gpu_types"),
        by_pool=_pressures(workload, cluster, "pool"),
        impossible={
            reason: count for reason, count in zip(REJECT_REASONS, counts, strict=True) if count
        },
        run_times=run_time_scaling(workload, cluster),
    )


def _pressures(
    workload: Workload, cluster: Cluster, column: Literal["pool", "gpu_types"]
) -> list[Pressure]:
    """Return the pressure of the jobs of each pool or GPU type set, highest first."""
    codes = workload.pool if column == "pool" else workload.gpu_types
    names = workload.pool_names if column == "pool" else workload.gpu_type_sets
    if (codes < 0).all():
        return []
    found = []
    for code in np.unique(codes).tolist():
        jobs = codes == code
        demand = Demand.of(workload, jobs)
        gpus = usable_gpus(workload, cluster, **{column: code})
        found.append(
            Pressure(
                name=ANY if code < 0 else names[code],
                jobs=int(jobs.sum()),
                gpus=gpus,
                demand_mean=demand.mean,
                demand_p95=demand.quantile(0.95),
                oversubscription=demand.mean / gpus if gpus else None,
            )
        )
    return sorted(found, key=_hardest_first)


def _hardest_first(pressure: Pressure) -> float:
    return -np.inf if pressure.oversubscription is None else -pressure.oversubscription
