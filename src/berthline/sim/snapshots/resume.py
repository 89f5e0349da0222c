"""resume: continue a run from a snapshot, with the same scheduler or another one."""

from __future__ import annotations

import dataclasses
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from berthline.argument_types import check_arguments
from berthline.changed_copy import changed_copy
from berthline.errors import ConfigError
from berthline.model.schedule import FINISH
from berthline.model.snapshot import Snapshot, forget_seat
from berthline.model.workload import Workload
from berthline.model.workload_join import join
from berthline.model.workload_rows import job_name
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import Inputs, check_run_times, prepare
from berthline.sim.policy_runner import policy_runner
from berthline.sim.simulate import Result, check_simulator
from berthline.sim.snapshots.check import check_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.text_or_path import TextOrPath


def resume(
    snapshot: Snapshot,
    scheduler: Scheduler | TextOrPath | None = None,
    *,
    arrivals: Workload | None = None,
    knowledge: str | None = None,
    seed: int | None = None,
    horizon: float | None = None,
    conditions: Mapping[str, float] | None = None,
    simulator: str = "native",
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Continue a run from a snapshot and return its log, rows of the snapshot included.

    With the scheduler, the seed and the later jobs of the run that the snapshot is from, the rest
    of the log is that of the run, row for row. Another scheduler decides at once.

    Args:
        snapshot: the state at the beginning.
        scheduler: as in `simulate`; None = that of the snapshot.
        arrivals: the jobs that are submitted later, on the clock of the snapshot (build them with
            `rebase=False`); None = no more jobs come.
        knowledge: as in `simulate`; None = that of the snapshot.
        seed: as in `simulate`; None = that of the snapshot.
        horizon: as in `simulate`.
        conditions: as in `simulate`.
        simulator: as in `simulate`.
        progress: as in `simulate`.

    Raises:
        BerthlineError: the inputs are not compatible, or run times are not known.
    """
    snapshot = checked(snapshot, conditions)
    seed = snapshot.seed if seed is None else seed
    check_arguments(seed=seed, horizon=horizon, conditions=conditions)
    if horizon is not None and horizon < snapshot.now:
        raise ConfigError(
            f"the horizon is {horizon:,.10g} s, before the snapshot",
            expected=f"{snapshot.now:,.10g} s, the instant of the snapshot, or more",
        )
    workload = snapshot.workload if arrivals is None else _with_arrivals(snapshot, arrivals)
    check_run_times(workload)
    started = time.perf_counter()
    scheduler = scheduler_for(snapshot, scheduler)
    check_simulator(scheduler, simulator)
    if scheduler.learned is not None:
        knowledge = snapshot.knowledge if knowledge is None else knowledge
        start = dataclasses.replace(start_for(snapshot, scheduler), seed=seed)
        log = policy_runner().run(
            scheduler.learned,
            workload,
            snapshot.cluster,
            knowledge=knowledge,
            seed=seed,
            horizon=horizon,
            start=start,
            progress=progress,
        )
        return Result(
            log=log,
            workload=workload,
            cluster=snapshot.cluster,
            scheduler=scheduler,
            knowledge=knowledge,
            seed=seed,
            wall_seconds=time.perf_counter() - started,
            start=start,
        )
    inputs = resumed_inputs(
        snapshot, workload, scheduler, knowledge=knowledge, seed=seed, horizon=horizon
    )
    if simulator == "native":
        from berthline.sim.native import run
    else:
        from berthline.sim.reference import run
    log = run(inputs, progress)
    return Result(
        log=log,
        workload=workload,
        cluster=snapshot.cluster,
        scheduler=inputs.scheduler,
        knowledge=inputs.knowledge,
        seed=seed,
        wall_seconds=time.perf_counter() - started,
        start=inputs.start,
    )


def checked(snapshot: Snapshot, conditions: Mapping[str, float] | None) -> Snapshot:
    """Return a snapshot with other conditions, which does not contradict itself.

    Raises:
        ConfigError: it does, it is none, or the conditions are wrong.
    """
    if not isinstance(snapshot, Snapshot):
        raise ConfigError(
            f"the snapshot is of type {type(snapshot).__name__}",
            expected="a Snapshot, such as result.snapshot(at) or open_run(DIR).snapshot()",
        )
    if conditions:
        cluster = snapshot.cluster.with_conditions(conditions)
        snapshot = dataclasses.replace(snapshot, cluster=cluster)
    check_snapshot(snapshot)
    return snapshot


def resumed_inputs(
    snapshot: Snapshot,
    workload: Workload,
    scheduler: Scheduler | TextOrPath | None,
    *,
    knowledge: str | None,
    seed: int | None,
    horizon: float | None,
    is_decision: bool = False,
) -> Inputs:
    """Return the inputs of a run that begins with a snapshot.

    Args:
        snapshot: the beginning.
        workload: its jobs and those that come later.
        scheduler: None = that of the snapshot, as for the other arguments.
        knowledge: what the scheduler knows about run times.
        seed: of random draws.
        horizon: None = to the end.
        is_decision: nothing is simulated but the decision at the beginning, so run times of
            unfinished jobs are hidden.
    """
    scheduler = scheduler_for(snapshot, scheduler)
    knowledge = snapshot.knowledge if knowledge is None else knowledge
    seed = snapshot.seed if seed is None else seed
    snapshot = start_for(snapshot, scheduler)
    if snapshot.seed != seed:
        snapshot = changed_copy(snapshot, seed=seed)
    if is_decision:
        snapshot = without_run_times(snapshot, knowledge)
        workload = snapshot.workload
    return prepare(
        workload,
        snapshot.cluster,
        scheduler,
        knowledge=knowledge,
        seed=seed,
        horizon=horizon,
        start=snapshot,
    )


def without_run_times(snapshot: Snapshot, knowledge: str) -> Snapshot:
    """Return a snapshot in which the run times of unfinished jobs are not known.

    Under `exact` knowledge they are known and stay, and must be there.

    Raises:
        ConfigError: the knowledge is exact, and the run time of some job is not known.
    """
    workload, memory = snapshot.workload, snapshot.memory
    if knowledge == "exact":
        unknown = np.flatnonzero(np.isnan(workload.run))
        if len(unknown):
            raise ConfigError(
                f"the run time of job {job_name(workload, int(unknown[0]))} is not known",
                where="snapshot",
                expected="run times of all jobs, for a scheduler with knowledge exact",
                hint="use another knowledge: estimate, predicted or none",
            )
        return snapshot
    is_over = np.zeros(len(workload), np.bool_)
    is_over[snapshot.log.job[snapshot.log.kind == FINISH]] = True
    if math.isnan(memory.failures_until):
        memory = changed_copy(memory, failures_until=snapshot.now)
    return changed_copy(
        snapshot,
        workload=changed_copy(workload, run=np.where(is_over, workload.run, np.inf)),
        memory=memory,
    )


def scheduler_for(snapshot: Snapshot, scheduler: Scheduler | TextOrPath | None) -> Scheduler:
    """Return a scheduler from its text; None = that of the snapshot.

    Raises:
        ConfigError: None is given, and the snapshot names no scheduler.
    """
    if isinstance(scheduler, Scheduler):
        return scheduler
    if scheduler is None and not snapshot.scheduler:
        raise ConfigError(
            "the snapshot names no scheduler", expected="`scheduler`, such as 'sjf+easy'"
        )
    return Scheduler.parse(snapshot.scheduler if scheduler is None else scheduler)


def start_for(snapshot: Snapshot, scheduler: Scheduler) -> Snapshot:
    """Return the state in which a scheduler begins.

    Another scheduler than that of the snapshot decides at once, and its seat remembers nothing.
    """
    if str(scheduler) == snapshot.scheduler:
        return snapshot
    memory = forget_seat(snapshot.memory)
    return changed_copy(snapshot, decides=True, memory=memory)


def _with_arrivals(snapshot: Snapshot, arrivals: Workload) -> Workload:
    if not isinstance(arrivals, Workload):
        raise ConfigError(
            f"the arrivals are of type {type(arrivals).__name__}",
            expected="a Workload on the clock of the snapshot",
        )
    if len(arrivals) and arrivals.submit[0] <= snapshot.now:
        raise ConfigError(
            f"a job arrives at {arrivals.submit[0]:,.10g} s",
            where=f"arrivals {arrivals.name!r}",
            expected=f"submissions after the snapshot, at {snapshot.now:,.10g} s",
            hint="times are on the clock of the snapshot: build the jobs with rebase=False",
        )
    return join(snapshot.workload, arrivals)
