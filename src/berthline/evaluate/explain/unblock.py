"""What would have let a job start sooner: the run simulated again with one thing changed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from berthline.errors import BerthlineError
from berthline.evaluate.explain.job_waits import waits_of
from berthline.evaluate.metrics.job_table import REJECTED, job_table
from berthline.model.cluster import Cluster
from berthline.model.workload import WHOLE_GPU, Workload
from berthline.model.workload_rows import job_name, with_values
from berthline.one_line import one_line
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare
from berthline.sim.reasons.reason_codes import Reason
from berthline.sim.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from berthline.evaluate.explain.explain import Explanation
    from berthline.sim.simulate import Result


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change and its effect, measured by a run of the simulator.

    Attributes:
        change: what was changed, in words.
        who: who could change it: `user`, `operator`, or `others`.
        start: when the job first started with the change; None = it did not.
        wait: total seconds it waited.
        sooner: seconds by which its wait is shorter; None = it is rejected in either run.
        others_wait: increase of the mean wait until the first start, over all other jobs.
        error: why that run was impossible; empty = it was possible.
    """

    change: str
    who: str
    start: float | None = None
    wait: float | None = None
    sooner: float | None = None
    others_wait: float | None = None
    error: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Variant:
    """A run with one thing changed."""

    change: str
    who: str
    workload: Workload
    cluster: Cluster
    scheduler: Scheduler


def unblock(
    result: Result,
    explanation: Explanation,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> list[Change]:
    """Return the effects of changes on a job's wait, the most helpful first.

    Args:
        result: the run.
        explanation: why the job waited in it.
        progress: called with the runs done and their number.
    """
    variants = variants_of(result, explanation)
    found = []
    for number, variant in enumerate(variants):
        found.append(_measured(result, explanation, variant))
        if progress is not None:
            progress(number + 1, len(variants))
    # Rejected jobs have no wait to compare with: the earliest start is the best.
    return sorted(
        found,
        key=lambda change: (
            -(change.sooner if change.sooner is not None else -np.inf),
            change.start if change.start is not None else np.inf,
        ),
    )


def _measured(result: Result, explanation: Explanation, variant: Variant) -> Change:
    job = explanation.job
    try:
        again = simulate(
            variant.workload,
            variant.cluster,
            variant.scheduler,
            knowledge=result.knowledge,
            seed=result.seed,
            horizon=None if np.isinf(result.log.horizon) else result.log.horizon,
        )
    except BerthlineError as error:
        return Change(change=variant.change, who=variant.who, error=error.what)
    before, after = (job_table(run.log, run.workload) for run in (result, again))
    submit = result.workload.submit
    grown = np.delete((after.start - submit) - (before.start - submit), job)
    grown = grown[np.isfinite(grown)]
    wait = sum(one.seconds for one in waits_of(again, job))
    is_rejected = after.status[job] == REJECTED or explanation.reject_reason is not None
    return Change(
        change=variant.change,
        who=variant.who,
        start=None if np.isnan(after.start[job]) else float(after.start[job]),
        wait=wait,
        sooner=None if is_rejected else explanation.wait - wait,
        others_wait=float(grown.mean()) if len(grown) else None,
    )


def variants_of(result: Result, explanation: Explanation) -> list[Variant]:
    """Return the changes that make sense for a job, given what kept it waiting."""
    seen = {interval.reason for interval in explanation.timeline}
    return [
        *_requests(result, explanation, seen),
        *_without_others(result, explanation),
        *_cluster_changes(result, explanation.job, seen),
        *_scheduler_changes(result, seen),
    ]


def _requests(result: Result, explanation: Explanation, seen: set[Reason]) -> Iterator[Variant]:
    """Yield variants with other requests of the job itself."""
    job, workload = explanation.job, result.workload

    def asking(change: str, **values: float) -> Variant:
        changed = with_values(workload, job, **values)
        return Variant(change, "user", changed, result.cluster, result.scheduler)

    gpus, cpus = int(workload.gpus[job]), int(workload.cpus[job])
    memory = int(workload.memory_mib[job])
    if gpus > 1:
        half = gpus // 2
        yield asking(
            f"{half} GPU{'' if half == 1 else 's'} instead of {gpus}, same run time",
            gpus=half,
            cpus=cpus * half // gpus,
            memory_mib=memory * half // gpus,
        )
    if Reason.CPUS_SHORT in seen and cpus > 1:
        yield asking(f"{cpus // 2} CPUs instead of {cpus}", cpus=cpus // 2)
    if Reason.MEMORY_SHORT in seen and memory > 1:
        yield asking(f"{memory // 2} MiB instead of {memory}", memory_mib=memory // 2)
    run, estimate = float(workload.run[job]), float(workload.estimate[job])
    if result.knowledge == "estimate" and result.scheduler.needs_run_times and run != estimate:
        yield asking(f"an estimate of {run:g} s, its run time", estimate=run)
    highest = float(workload.priority.max())
    uses_priority = any("priority" in formula.words for formula in result.scheduler.formulas)
    if uses_priority and workload.priority[job] < highest:
        yield asking(f"priority {highest:g}, the highest", priority=highest)
    if workload.pool[job] >= 0:
        yield asking("all pools", pool=-1)
    if workload.gpu_types[job] >= 0:
        yield asking("any GPU type", gpu_types=-1)


def _without_others(result: Result, explanation: Explanation) -> Iterator[Variant]:
    """Yield the run without the job that blocked it longest, or took most meanwhile."""
    held: dict[int, float] = {}
    for interval in explanation.timeline:
        if interval.blocker is not None:
            held[interval.blocker] = held.get(interval.blocker, 0.0) + interval.seconds
    others = [max(held, key=lambda job: (held[job], -job))] if held else []
    others += [other.job for other in explanation.overtakers[:1] if other.job not in others]
    workload = result.workload
    for other in others:
        # Rejected at its submission: the numbers of all other jobs stay the same.
        too_many = result.cluster.total_gpus + 1
        gone = with_values(workload, other, gpus=too_many, gpu_milli=WHOLE_GPU)
        name = f"without job {one_line(job_name(workload, other))}"
        yield Variant(name, "others", gone, result.cluster, result.scheduler)


def _cluster_changes(result: Result, job: int, seen: set[Reason]) -> Iterator[Variant]:
    workload, cluster = result.workload, result.cluster

    def on(change: str, changed: Cluster) -> Variant:
        return Variant(change, "operator", workload, changed, result.scheduler)

    node = _largest_node(result, job)
    if node is not None:
        gpus = int(cluster.gpus[node])
        yield on(f"one more node, with {gpus} GPU{'' if gpus == 1 else 's'}", _with(cluster, node))
    if Reason.QUOTA in seen:
        yield on("no quotas", dataclasses.replace(cluster, quotas=()))
    if Reason.NODE_DOWN in seen:
        steady = cluster.with_conditions({"mtbf": np.inf, "rack_mtbf": np.inf})
        none = np.zeros_like(cluster.mtbf)
        yield on("no failures", dataclasses.replace(steady, outages=(), mtbf=none))
    if cluster.conditions.tick > 0:
        yield on("decisions at once (tick 0)", cluster.with_conditions({"tick": 0.0}))


def _scheduler_changes(result: Result, seen: set[Reason]) -> Iterator[Variant]:
    scheduler = result.scheduler

    def under(change: str, **seats: Any) -> Variant:
        changed = dataclasses.replace(scheduler, **seats)
        return Variant(change, "operator", result.workload, result.cluster, changed)

    waits_for_reserved = {Reason.HEAD_RESERVATION, Reason.EARLIER_RESERVATIONS} & seen
    if scheduler.discipline == "strict" and Reason.BEHIND_IN_ORDER in seen:
        yield under("discipline easy", discipline="easy")
    if waits_for_reserved or (scheduler.discipline == "strict" and Reason.BEHIND_IN_ORDER in seen):
        yield under("discipline skip", discipline="skip")
    if Reason.FRAGMENTED in seen and scheduler.placement != "scatter":
        yield under("placement scatter", placement="scatter", node_order=None)
    if Reason.GATE_CLOSED in seen:
        yield under("no gate", gate=None)


def _largest_node(result: Result, job: int) -> int | None:
    """Return the first of the largest nodes that a job may use; None = it may use none."""
    inputs = prepare(
        result.workload,
        result.cluster,
        result.scheduler,
        knowledge=result.knowledge,
        seed=result.seed,
        horizon=None,
    )
    nodes = np.flatnonzero(inputs.may_use[inputs.job_class[job]])
    return int(nodes[result.cluster.gpus[nodes].argmax()]) if len(nodes) else None


def _with(cluster: Cluster, node: int) -> Cluster:
    """Return the cluster with one more node, a copy of one of its own."""
    columns = ("gpus", "cpus", "memory_mib", "gpu_type", "pool", "rack", "mtbf", "mttr")
    more: dict[str, Any] = {}
    for name in columns:
        column = getattr(cluster, name)
        more[name] = np.append(column, column[node])
    return dataclasses.replace(cluster, **more)
