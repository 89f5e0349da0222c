"""Remarks of `berthline sim` about a run, in words; empty if there is nothing to report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from berthline.cli.output import clock, counted, number, percent
from berthline.model.schedule import FALLBACK, FALLBACK_REASONS, PREEMPT, REJECT, REJECT_REASONS

if TYPE_CHECKING:
    from berthline.evaluate.metrics.measure import Metrics
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.model.schedule import Schedule
    from berthline.sim.simulate import Result


def disturbances(
    result: Result, metrics: Metrics, window: MeasurementWindow | None
) -> dict[str, str]:
    """Return the disturbances, in words: preemptions, refused starts, outages, fallbacks."""
    reasons = "; ".join(
        f"{reason} ({number(count)})"
        for reason, count in metrics.preemptions_by_reason.items()
        if count
    )
    preempted = result.log.kind == PREEMPT
    if window is not None:
        preempted &= window.has(result.log.time)
    jobs = len(set(result.log.job[preempted].tolist()))
    return {
        "preempted": f"{counted(jobs, 'job')}, {counted(metrics.preemptions, 'time')}: {reasons}"
        if reasons
        else "",
        "lost": f"{number(metrics.lost_gpu_hours, 1)} GPU-hours held without lasting progress"
        if metrics.lost_gpu_hours
        else "",
        "refused": counted(metrics.refusals, "start") if metrics.refusals else "",
        "outages": f"nodes went down {counted(metrics.outages, 'time')}; "
        f"{percent(metrics.utilization.available)} of GPU-seconds were up"
        if metrics.outages
        else "",
        "fallbacks": f"best-fit replaced a plan {counted(metrics.fallbacks, 'time')}: "
        + _by_reason(result.log, FALLBACK, FALLBACK_REASONS)
        if metrics.fallbacks
        else "",
    }


def unlike_the_trace(result: Result) -> str:
    """Return how the cluster differs from the trace's; empty if no difference is known."""
    workload, cluster = result.workload, result.cluster
    processors = workload.provenance.get("max_procs")
    if processors and processors != cluster.total_gpus:
        return (
            f"the trace's machine has {counted(processors, 'processor')}: "
            f"--cluster uniform:1x{processors} matches it"
        )
    if cluster.pool_names and not workload.pool_names:
        pools = counted(len(cluster.pool_names), "pool")
        return f"no job names one of the cluster's {pools}: all may be used"
    return ""


def shorter_than_its_jobs(result: Result) -> str:
    """Return a caution if the run is too short to be meaningful; empty if it is long enough.

    If all submissions arrive within the run time of a single job, the cluster only fills up and
    empties again, and the figures say little about longer operation. Jobs that all arrive at once
    are meant to be one batch.
    """
    workload = result.workload
    if not len(workload):
        return ""
    span = float(workload.submit[-1] - workload.submit[0])
    longest = float(workload.run.max())
    if not 0 < span < longest:
        return ""
    return f"jobs arrive over {clock(span)} but one runs {clock(longest)}: use more jobs"


def rejected_by_reason(result: Result) -> str:
    """Return why jobs were rejected, in words; empty if none was."""
    return _by_reason(result.log, REJECT, REJECT_REASONS)


def _by_reason(log: Schedule, kind: int, reasons: tuple[str, ...]) -> str:
    """Return how often each reason occurs in rows of this kind, in words."""
    import numpy as np

    counts = np.bincount(log.detail[log.kind == kind], minlength=len(reasons))
    return "; ".join(
        f"{reason} ({count:,})" for reason, count in zip(reasons, counts, strict=True) if count
    )
