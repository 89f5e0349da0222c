"""Metrics: what a schedule log says about the jobs and the nodes of one run.

Every number is a pure function of the log, the workload and the cluster; nothing else is measured.
One rule holds throughout: a metric covers all submitted jobs except the rejected ones, which are
counted separately. A job that is unfinished when the log ends is *censored* there: it counts with
the time it has spent so far and is never left out, so such a value is a lower bound. Times are
seconds unless a name says otherwise. All formulas are in one table: `docs/reference/metrics.md`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from berthline.evaluate.metrics.deadlines import deadline_miss_rate
from berthline.evaluate.metrics.distribution import Distribution as Distribution
from berthline.evaluate.metrics.distribution import distribution
from berthline.evaluate.metrics.energy import (
    energy_kwh,
    energy_per_job_kwh,
    held_kwh,
    job_energy_kwh,
    node_seconds,
)
from berthline.evaluate.metrics.event_counts import (
    outages,
    preemptions,
    preemptions_by_reason,
    refusals,
)
from berthline.evaluate.metrics.fairness import (
    Fairness,
    finish_time_fairness,
    jain_index,
    user_slowdowns,
)
from berthline.evaluate.metrics.fragmentation import mean_fragmentation
from berthline.evaluate.metrics.groups import distributions, priority_groups
from berthline.evaluate.metrics.job_table import JobCounts as JobCounts
from berthline.evaluate.metrics.job_table import (
    completion_times,
    job_counts,
    job_table,
    makespan,
    waits,
)
from berthline.evaluate.metrics.lost_work import lost_gpu_seconds
from berthline.evaluate.metrics.node_states import down_times
from berthline.evaluate.metrics.queue_length import QueueLength, max_queue_length, mean_queue_length
from berthline.evaluate.metrics.slowdown import bounded_slowdowns, slowdowns
from berthline.evaluate.metrics.starvation import Starvation, starvation
from berthline.evaluate.metrics.stretches import stretches
from berthline.evaluate.metrics.utilization import (
    Utilization,
    available_share,
    flops_utilization,
    gpu_utilization,
    load_imbalance,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.cluster import Cluster
    from berthline.model.schedule import Schedule
    from berthline.model.workload import Workload


class PriorityMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs of one priority (or of one range of priorities)."""

    jobs: int
    jct: Distribution
    wait: Distribution
    bounded_slowdown: Distribution


class Metrics(msgspec.Struct, frozen=True, kw_only=True):
    """All metrics of one run, under the names that `berthline sim --json` prints."""

    jobs: JobCounts
    jct: Distribution
    wait: Distribution
    slowdown: Distribution
    bounded_slowdown: Distribution
    makespan: float
    utilization: Utilization
    energy_kwh: float
    energy_per_job_kwh: float
    fairness: Fairness
    starvation: Starvation | None
    queue: QueueLength
    preemptions: int
    preemptions_by_reason: dict[str, int]
    lost_gpu_hours: float
    refusals: int
    outages: int
    deadline_miss_rate: float | None
    load_imbalance: float
    fragmentation: float
    by_priority: dict[str, PriorityMetrics]
    events: int
    decisions: int
    fallbacks: int
    log_sha256: str


def measure(
    log: Schedule,
    workload: Workload,
    cluster: Cluster,
    *,
    window: MeasurementWindow | None = None,
) -> Metrics:
    """Return all metrics of one run, or of a window of it.

    With a window, jobs submitted in it count, until they finish and with everything they lost.
    Integrals and averages over time, and counts of events, cover what happens in the window, for
    all jobs. `events`, `decisions`, `fallbacks` and the hash cover the whole log.

    Args:
        log: the run's log.
        workload: the jobs of that run.
        cluster: the nodes it ran on.
        window: what to measure; None = the whole run.
    """
    clock = None if window is None else window.clock
    table = job_table(log, workload, window)
    counts = job_counts(table)
    ran = stretches(log, table, clock)
    seconds = node_seconds(log, workload, cluster, ran, table.end, clock)
    lost = float(table.of_counted(lost_gpu_seconds(log, workload, cluster, ran)).sum())
    fragmentation = mean_fragmentation(
        log, workload, cluster, ran, down_times(log, table.end), table.end, clock
    )
    of_jobs_kwh = (
        held_kwh(seconds.busy, cluster)
        if window is None
        else float(job_energy_kwh(log, workload, cluster, ran)[table.counted].sum())
    )
    waited_again = ran.waited_again
    del ran
    groups = priority_groups(table, workload)
    # One per-job column at a time: each takes 8 MB at a million jobs.
    jct, jct_by = distributions(completion_times(table, workload), groups)
    wait, wait_by = distributions(waits(table, workload), groups)
    bounded, bounded_by = distributions(bounded_slowdowns(table, workload), groups)
    slowdown = distribution(slowdowns(table, workload))
    sizes = np.bincount(groups.member, minlength=len(groups.labels))
    return Metrics(
        jobs=counts,
        jct=jct,
        wait=wait,
        slowdown=slowdown,
        bounded_slowdown=bounded,
        makespan=makespan(table, 0.0 if window is None else window.begin),
        utilization=Utilization(
            gpu=gpu_utilization(seconds.busy, cluster, seconds.whole),
            flops=flops_utilization(seconds.busy, cluster, seconds.whole),
            available=available_share(seconds.down, cluster, seconds.whole),
        ),
        energy_kwh=energy_kwh(seconds, cluster),
        energy_per_job_kwh=energy_per_job_kwh(of_jobs_kwh, counts),
        fairness=Fairness(
            jain=jain_index(user_slowdowns(table, workload)),
            rho=slowdown
            if len(workload.user_names) == 1
            else distribution(finish_time_fairness(log, table, workload, cluster)),
        ),
        starvation=starvation(table, workload),
        queue=QueueLength(
            mean=mean_queue_length(table, workload, waited_again, window),
            max=max_queue_length(log, window),
        ),
        preemptions=preemptions(log, window),
        preemptions_by_reason=preemptions_by_reason(log, window),
        lost_gpu_hours=lost / 3600,
        refusals=refusals(log, window),
        outages=outages(log, window),
        deadline_miss_rate=deadline_miss_rate(table, workload),
        load_imbalance=load_imbalance(seconds.busy, cluster, seconds.whole),
        fragmentation=fragmentation,
        by_priority={
            label: PriorityMetrics(
                jobs=int(sizes[k]), jct=jct_by[k], wait=wait_by[k], bounded_slowdown=bounded_by[k]
            )
            for k, label in enumerate(groups.labels)
        },
        events=len(log),
        decisions=log.decisions,
        fallbacks=log.fallbacks,
        log_sha256=log.sha256(),
    )


DEFINITIONS: dict[str, Callable[..., object]] = {
    "jobs": job_counts,
    "jct": completion_times,
    "wait": waits,
    "slowdown": slowdowns,
    "bounded_slowdown": bounded_slowdowns,
    "makespan": makespan,
    "utilization.gpu": gpu_utilization,
    "utilization.flops": flops_utilization,
    "utilization.available": available_share,
    "energy_kwh": energy_kwh,
    "energy_per_job_kwh": energy_per_job_kwh,
    "fairness.jain": jain_index,
    "fairness.rho": finish_time_fairness,
    "starvation": starvation,
    "queue.mean": mean_queue_length,
    "queue.max": max_queue_length,
    "preemptions": preemptions,
    "preemptions_by_reason": preemptions_by_reason,
    "lost_gpu_hours": lost_gpu_seconds,
    "refusals": refusals,
    "outages": outages,
    "deadline_miss_rate": deadline_miss_rate,
    "load_imbalance": load_imbalance,
    "fragmentation": mean_fragmentation,
    "by_priority": priority_groups,
}
"""Maps each key of `berthline sim --json` to the function whose docstring has the formula and the
unit. The reference page is generated from them."""
