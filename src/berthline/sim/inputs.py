"""Inputs: a workload, a cluster and a scheduler, checked and resolved for a run.

Both simulators read the same Inputs. Nothing is decided here: names become indices, the
knowledge setting becomes the column of run times the scheduler may see, and what cannot be
simulated at all is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from berthline.errors import ConfigError, PolicyError, SimulationError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.gpu_types import type_names
from berthline.model.schedule import NODE_DOWN, NODE_UP
from berthline.model.snapshot import KIND_COLUMNS, Memory, Snapshot
from berthline.model.speeds import speeds
from berthline.model.workload import FloatColumn, IntColumn, Workload
from berthline.model.workload_rows import job_name
from berthline.policies.rules import PLACEMENTS_BY_JOB_MIX
from berthline.policies.scheduler import Scheduler
from berthline.random_streams import stream_key, text_numbers, uniform_at
from berthline.sim.outages import Outages, outages
from berthline.sim.quotas import QuotaCounters, quota_counters

Knowledge = Literal["none", "estimate", "predicted", "exact"]
KNOWLEDGE: tuple[str, ...] = get_args(Knowledge)

FIRST_PREDICTION = 3600.0
"""Run time in seconds assumed under `predicted` knowledge until any job has finished, and under
`estimate` for a job without an estimate until any job has stated one."""


PlaceJobs = Callable[
    [list[int], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]],
    Sequence[tuple[int, int]] | int,
]


@dataclasses.dataclass(frozen=True)
class TypicalJob:
    """A kind of job of which many have been submitted."""

    gpus: int
    gpu_milli: int
    cpus: int
    memory_mib: int
    job_class: int
    count: int


@dataclasses.dataclass(frozen=True)
class JobMix:
    """The most frequent kinds among the first jobs.

    Attributes:
        jobs: it is used once this many jobs have been submitted.
        typical: kinds of jobs and their numbers, most frequent first.
    """

    jobs: int
    typical: tuple[TypicalJob, ...]


MAX_TYPICAL_JOBS = 128
"""The openb trace has 126 kinds of jobs; with 32 of them, rare large jobs are missed."""


@dataclasses.dataclass(frozen=True, eq=False)
class Inputs:
    """What a simulator needs to know.

    Attributes:
        workload: the jobs.
        cluster: the nodes.
        scheduler: a rule for every seat.
        knowledge: what the scheduler knows about run times.
        estimate: the run times the scheduler sees; under `predicted` they are filled in at each
            job's submission, and under `none` they are not a number.
        job_class: jobs with the same pool and GPU types share a class.
        may_use: for each class, whether its jobs may use a node.
        class_reason: for each class that may use no node at all, the reason (REJECT_REASONS).
        borrow_class: for each class, the class that its jobs fall back on, whose nodes are its own
            and those that other pools lend; -1 = none.
        node_speed: speed of the GPUs of each node; all 1 where GPU types do not differ.
        reference_speed: speed of the GPU type that each job's run time refers to; as `node_speed`;
            AS_RECORDED = not known: the job runs at rate 1 on every type.
        quotas: the limits on GPUs in use.
        outages: when nodes go down and come back.
        draw: the number of each job in streams of random numbers: what its name stands for, or its
            id if jobs have no names; empty unless something is drawn.
        random: the word `random` of each job; empty unless the scheduler uses it.
        placement_key: stream of the `random` placement.
        refusal_key: stream of the starts that are refused.
        horizon: no event after this time happens.
        mixes: what kinds of jobs have been submitted, for PLACEMENTS_BY_JOB_MIX; else empty.
        plan: for the placement `milp`, a function that places a job with those after it; given
            their ids and the free GPUs, CPUs and memory of each node, it returns the first job's
            (node, gpus) pairs, or why there is no plan (index into FALLBACK_REASONS).
        start: the state in which the run begins; its jobs are the first of the workload. None = at
            time 0, with an empty cluster.
    """

    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    knowledge: Knowledge
    estimate: FloatColumn  # (num_jobs,)
    job_class: IntColumn  # (num_jobs,)
    may_use: npt.NDArray[np.bool_]  # (num_classes, num_nodes)
    class_reason: IntColumn  # (num_classes,)
    borrow_class: IntColumn  # (num_classes,)
    node_speed: FloatColumn  # (num_nodes,)
    reference_speed: FloatColumn  # (num_jobs,)
    quotas: QuotaCounters
    outages: Outages
    draw: npt.NDArray[np.uint64]  # (num_jobs,) or (0,)
    random: FloatColumn  # (num_jobs,) or (0,)
    placement_key: int
    refusal_key: int
    horizon: float
    mixes: tuple[JobMix, ...] = ()
    plan: PlaceJobs | None = None
    start: Snapshot | None = None

    @property
    def predicts(self) -> bool:
        """Whether any seat asks for predicted run times."""
        return self.knowledge == "predicted" or self.uses("predicted")

    @property
    def min_run(self) -> float:
        """Seconds a job runs before the preemption rule may stop it."""
        rule, conditions = self.scheduler.preemption, self.cluster.conditions
        if rule is None:
            return 0.0
        if rule.min_run >= 0:
            return rule.min_run
        return conditions.start_delay + conditions.restart + conditions.checkpoint

    @property
    def max_preemptions(self) -> int:
        """Most preemptions of a run; with more, it would never end and is stopped."""
        return max_preemptions(len(self.workload))

    def uses(self, word: str) -> bool:
        """Whether a formula of the scheduler uses a word."""
        return any(word in formula.words for formula in self.scheduler.formulas)


def max_preemptions(num_jobs: int) -> int:
    """Return how many preemptions a run may have before it is stopped."""
    return 100_000 + 1_000 * num_jobs


def prepare(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler,
    *,
    knowledge: str,
    seed: int,
    horizon: float | None,
    start: Snapshot | None = None,
    earlier: Snapshot | None = None,
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
            hint="use `knowledge=estimate`, predicted or exact; or fcfs+skip",
        )
    idle = cluster.conditions.start_delay + cluster.conditions.restart
    if scheduler.discipline == "rounds" and scheduler.round_seconds <= idle:
        raise PolicyError(
            f"a round of {scheduler.round_seconds:g} s is over before a job makes progress",
            where=f"scheduler {str(scheduler)!r}",
            expected=f"T of more than {idle:g} s, start_delay + restart of the conditions",
        )
    check_run_times(workload)
    memory = None if start is None else start.memory
    estimate = _known_run_times(workload, scheduler, knowledge, memory)
    left_out = np.zeros((0, len(KIND_COLUMNS)), np.int64) if memory is None else memory.kinds
    job_class, may_use, class_reason, borrow_class = _classes(workload, cluster, left_out)
    words = {word for formula in scheduler.formulas for word in formula.words}
    node_speed, reference_speed = speeds(workload, cluster)
    by_job_mix = scheduler.placement in PLACEMENTS_BY_JOB_MIX
    is_drawn = (
        "random" in words or scheduler.placement == "random" or cluster.conditions.refusal_rate > 0
    )
    draw = draw_numbers(workload, start) if is_drawn else np.zeros(0, np.uint64)
    inputs = Inputs(
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        knowledge=knowledge,  # type: ignore[arg-type]  # checked above
        estimate=estimate,
        job_class=job_class[: len(workload)],
        may_use=may_use,
        class_reason=class_reason,
        borrow_class=borrow_class,
        node_speed=node_speed,
        reference_speed=reference_speed,
        quotas=quota_counters(workload, cluster),
        outages=_outages(workload, cluster, seed, horizon, start),
        draw=draw,
        random=uniform_at(stream_key(seed, "order"), draw) if "random" in words else np.zeros(0),
        placement_key=stream_key(seed, "placement"),
        refusal_key=stream_key(seed, "refusal"),
        horizon=np.inf if horizon is None else float(horizon),
        mixes=_job_mixes(workload, job_class, earlier or start) if by_job_mix else (),
        start=start,
    )
    if scheduler.placement == "milp":
        from berthline.sim.milp_plan import milp_plan

        inputs = dataclasses.replace(inputs, plan=milp_plan(inputs))
    return inputs


def check_run_times(workload: Workload) -> None:
    """Raise if a run time is not known, which only a decision can do without.

    Raises:
        ConfigError: it is not.
    """
    unknown = np.flatnonzero(np.isnan(workload.run))
    if len(unknown):
        raise ConfigError(
            f"the run time of job {job_name(workload, int(unknown[0]))} is not known",
            where=f"workload {workload.name!r}",
            expected="run times of all jobs, to simulate what comes",
            hint="`bl.decide` needs none, and `bl.forecast` draws them",
        )


def draw_numbers(workload: Workload, start: Snapshot | None = None) -> npt.NDArray[np.uint64]:
    """Return the number of each job in streams of random numbers."""
    if workload.names is not None:
        return text_numbers(workload.names)
    if start is None:
        return np.arange(len(workload), dtype=np.uint64)
    first = start.memory.jobs + start.num_jobs  # jobs that come have the numbers after it
    to_come = np.arange(first, first + len(workload) - start.num_jobs)
    return np.concatenate([start.number, to_come]).astype(np.uint64)


def stated_so_far(estimate: FloatColumn) -> FloatColumn:
    """Return estimates without gaps; jobs are in the last dimension, by submission.

    A job submitted without a limit gets the largest limit stated so far, similar to the site's
    largest limit in batch systems. It may not depend on jobs that are not submitted yet.
    """
    missing = np.isnan(estimate)
    if not missing.any():
        return estimate
    largest = np.fmax.accumulate(estimate, axis=-1)
    stated: FloatColumn = np.where(missing, largest, estimate)
    return np.where(np.isnan(stated), FIRST_PREDICTION, stated)


def stated_estimates(workload: Workload, memory: Memory | None) -> FloatColumn:
    """Return what stands for each job's estimate; all NaN = no job has ever stated one."""
    if not np.isnan(workload.estimate).any():
        return workload.estimate
    if memory is not None and not math.isnan(memory.largest_estimate):
        to_come = workload.estimate[len(memory.stated) :]
        stated = stated_so_far(np.concatenate([[memory.largest_estimate], to_come]))
        return np.concatenate([memory.stated, stated[1:]])
    if np.isnan(workload.estimate).all():
        return workload.estimate
    return stated_so_far(workload.estimate)


def _known_run_times(
    workload: Workload, scheduler: Scheduler, knowledge: str, memory: Memory | None
) -> FloatColumn:
    if knowledge in ("exact", "predicted"):
        return workload.run
    if knowledge == "estimate":
        stated = stated_estimates(workload, memory)
        if not np.isnan(stated).all():
            return stated
    if knowledge == "estimate" and scheduler.needs_run_times and len(workload):
        raise PolicyError(
            f"scheduler {str(scheduler)!r} needs run times, but no job has an estimate",
            where=f"workload {workload.name!r}",
            hint="use `knowledge=predicted` or exact, or a scheduler without run times",
        )
    # Not the true ones: whatever reads them by mistake must not get an answer.
    return np.full(len(workload), np.nan)


def _job_mixes(
    workload: Workload, job_class: IntColumn, start: Snapshot | None
) -> tuple[JobMix, ...]:
    """Return the mixes of jobs, a new one whenever the number of submitted jobs grew by a quarter.

    Each has the most frequent kinds of jobs with GPUs. `job_class` has the classes of the jobs,
    then those of the kinds that the memory of the start holds.
    """
    kinds = np.stack(
        [
            workload.gpus.astype(np.int64),
            workload.gpu_milli.astype(np.int64),
            workload.cpus.astype(np.int64),
            workload.memory_mib,
            job_class[: len(workload)].astype(np.int64),
        ]
    )
    known = left_out = 0
    in_mix = counted = np.zeros(0, np.int64)
    if start is not None and len(start.memory.kinds):
        # Jobs that the memory counts are not counted again.
        past = start.memory.kinds
        counted, in_mix = past[:, 6], past[:, 7]
        left_out = start.memory.jobs
        known = left_out + start.num_jobs
        past_kinds = np.vstack([past[:, :4].T, job_class[len(workload) :]])
        kinds = np.hstack([past_kinds, kinds[:, start.num_jobs :]])
    # Kinds are sorted, so that equally frequent ones come in an order that no later job changes.
    unique, kind = np.unique(kinds, axis=1, return_inverse=True)
    kind = kind.reshape(-1)
    has_gpus = unique[0] > 0
    size = len(has_gpus)

    def mix_of(jobs: int, counts: npt.NDArray[np.int64]) -> JobMix:
        counts = counts * has_gpus
        order = np.argsort(-counts, kind="stable")[:MAX_TYPICAL_JOBS]
        order = order[counts[order] > 0]
        rows = np.vstack([unique[:, order], counts[order]]).T.tolist()
        return JobMix(jobs, tuple(TypicalJob(*row) for row in rows))

    past_kind, to_come = kind[: len(counted)], kind[len(counted) :]
    mixes: list[JobMix] = []
    if known:
        current = np.bincount(past_kind, weights=in_mix, minlength=size).astype(np.int64)
        mixes.append(mix_of(0, current))
    before = np.bincount(past_kind, weights=counted, minlength=size).astype(np.int64)
    for jobs in mix_sizes(known + len(to_come)):
        if jobs > known:
            counts = before + np.bincount(to_come[: jobs - known], minlength=size)
            mixes.append(mix_of(jobs - left_out, counts))
    return tuple(mixes)


def mix_sizes(num_jobs: int) -> list[int]:
    """Return the numbers of submitted jobs at which a new mix of jobs is used."""
    sizes: list[int] = []
    jobs = 1
    while jobs <= num_jobs:
        sizes.append(jobs)
        jobs += max(1, jobs // 4)
    return sizes


def endless_preemption(inputs: Inputs) -> SimulationError:
    """Return the error of a run in which jobs are preempted faster than they make progress."""
    return SimulationError(
        f"jobs are preempted without end: more than {inputs.max_preemptions:,} times",
        where=f"scheduler {str(inputs.scheduler)!r}",
        expected="jobs that save progress before they are preempted",
        hint="raise min_run of the preemption rule, lower the condition checkpoint, or set a "
        "horizon that ends the run earlier",
    )


def _outages(
    workload: Workload, cluster: Cluster, seed: int, horizon: float | None, start: Snapshot | None
) -> Outages:
    """Return when nodes go down and come back; after a start, only what its state allows.

    Nodes fail until the horizon at least. A run that had none has fewer failures than the one that
    continues it with a horizon: then a node may be up although an outage of the other run lasts.
    """
    memory = None if start is None else start.memory
    found = outages(cluster, seed=seed, until=max(failures_until(workload, memory), horizon or 0.0))
    if start is None or not len(found.time):
        return found
    is_down = np.zeros(cluster.num_nodes, np.bool_)
    rows = np.flatnonzero((start.log.kind == NODE_DOWN) | (start.log.kind == NODE_UP))
    is_down[start.log.detail[rows]] = start.log.kind[rows] == NODE_DOWN
    later = np.flatnonzero(found.time > start.now)
    node, first = np.unique(found.node[later], return_index=True)
    wrong = later[first[found.up[later[first]] != is_down[node]]]
    return Outages(
        time=np.delete(found.time, wrong),
        node=np.delete(found.node, wrong),
        up=np.delete(found.up, wrong),
    )


def failures_until(workload: Workload, memory: Memory | None) -> float:
    """Return until when nodes may fail at random in a run that may begin in the middle."""
    if memory is not None and not math.isnan(memory.failures_until):
        return memory.failures_until
    return last_failure(workload.submit, workload.run)


def last_failure(submit: FloatColumn, run: FloatColumn) -> float:
    """Return until when nodes may fail without a horizon: 2 x last submission + 10 x longest run.

    An earlier horizon does not shorten it, so that a run that stops there and is continued has the
    failures of a run that never stopped.
    """
    if not len(submit):
        return 0.0
    return 2.0 * float(submit[-1]) + 10.0 * float(np.fmax.reduce(run, initial=0.0))


def _classes(
    workload: Workload, cluster: Cluster, left_out: npt.NDArray[np.int64]
) -> tuple[IntColumn, npt.NDArray[np.bool_], IntColumn, IntColumn]:
    """Group jobs by (pool, GPU types) and find which nodes each group may use, and may borrow.

    Args:
        workload: the jobs.
        cluster: the nodes.
        left_out: KIND_COLUMNS of jobs that need groups too. The classes of these kinds are behind
            those of the jobs in the first array returned.
    """
    count = len(workload) + len(left_out)
    pool = np.concatenate([workload.pool, left_out[:, 4]]) if cluster.pool_names else None
    if pool is None:
        # Nothing distinguishes the pools of a log here. With one class for all jobs, the search for
        # jobs that may start is done once.
        pool = np.full(count, -1, np.int32)
    if not count or (not workload.gpu_type_sets and (pool < 0).all()):
        return (
            np.zeros(count, np.int32),
            np.ones((1, cluster.num_nodes), np.bool_),
            np.full(1, -1, np.int32),
            np.full(1, -1, np.int32),
        )
    gpu_types = np.concatenate([workload.gpu_types, left_out[:, 5]])
    width = len(workload.gpu_type_sets) + 1
    codes = (pool + 1) * width + (gpu_types + 1)
    unique, job_class = np.unique(codes, return_inverse=True)
    lent = np.zeros(cluster.num_nodes, np.bool_)
    for index, name in enumerate(cluster.pool_names):
        if name in cluster.pool_rules and cluster.pool_rules[name].lend:
            lent |= cluster.pool == index
    rows: list[npt.NDArray[np.bool_]] = []
    reasons: list[int] = []
    borrow: list[int] = []
    borrowed: list[npt.NDArray[np.bool_]] = []
    for code in unique:
        of_pool, types = divmod(int(code), width)
        may_use = np.ones(cluster.num_nodes, np.bool_)
        reason, may_borrow = -1, False
        if of_pool > 0:
            # A node in no pool is open to the jobs of every pool.
            name = workload.pool_names[of_pool - 1]
            index = cluster.pool_names.index(name) if name in cluster.pool_names else -2
            may_use &= (cluster.pool == index) | (cluster.pool == -1)
            may_borrow = name in cluster.pool_rules and cluster.pool_rules[name].borrow
            if not may_use.any():
                reason = 0
        allowed = np.ones(cluster.num_nodes, np.bool_)
        if types > 0 and reason < 0:
            names = type_names(workload.gpu_type_sets[types - 1])
            indices = [i for i, kind in enumerate(cluster.types) if kind.name in names]
            allowed = np.isin(cluster.gpu_type, indices)
            if not (may_use & allowed).any():
                reason = 1
        if may_borrow and (lent & allowed & ~may_use).any():
            borrow.append(len(unique) + len(borrowed))
            borrowed.append((may_use | lent) & allowed)
            reason = -1
        else:
            borrow.append(-1)
        rows.append(may_use & allowed)
        reasons.append(reason)
    return (
        job_class.astype(np.int32),
        np.stack(rows + borrowed),
        np.array(reasons + [-1] * len(borrowed), np.int32),
        np.array(borrow + [-1] * len(borrowed), np.int32),
    )
