"""resume: continue a run from a snapshot, with the same scheduler or another one."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import numpy as np

from berthline.argument_types import check_arguments
from berthline.errors import ConfigError, SimulationError, unknown_name
from berthline.model.workload_join import join
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import Inputs, prepare
from berthline.sim.simulate import SIMULATORS, Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.model.snapshot import Snapshot
    from berthline.model.workload import Workload
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
    seed = snapshot.seed if seed is None else seed
    check_arguments(seed=seed, horizon=horizon, conditions=conditions)
    if simulator not in SIMULATORS:
        what, expected, hint = unknown_name("simulator", simulator, SIMULATORS)
        raise ConfigError(what, expected=expected, hint=hint)
    if conditions:
        cluster = snapshot.cluster.with_conditions(conditions)
        snapshot = dataclasses.replace(snapshot, cluster=cluster)
    workload = snapshot.workload if arrivals is None else _with_arrivals(snapshot, arrivals)
    unknown = np.flatnonzero(np.isnan(workload.run))
    if len(unknown):
        raise SimulationError(
            f"the run time of job {unknown[0]} is not known",
            where="snapshot",
            expected="run times of all jobs, to simulate what comes",
            hint="`bl.decide` needs none, and `bl.forecast` draws them",
        )
    started = time.perf_counter()
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


def resumed_inputs(
    snapshot: Snapshot,
    workload: Workload,
    scheduler: Scheduler | TextOrPath | None,
    *,
    knowledge: str | None,
    seed: int | None,
    horizon: float | None,
) -> Inputs:
    """Return the inputs of a run that begins with a snapshot.

    Args:
        snapshot: the beginning.
        workload: its jobs and those that come later.
        scheduler: None = that of the snapshot, as for the other arguments.
        knowledge: what the scheduler knows about run times.
        seed: of random draws.
        horizon: None = to the end.
    """
    if scheduler is None:
        scheduler = snapshot.scheduler
    if not isinstance(scheduler, Scheduler):
        scheduler = Scheduler.parse(scheduler)
    if str(scheduler) != snapshot.scheduler:
        snapshot = dataclasses.replace(snapshot, decides=True)
    return prepare(
        workload,
        snapshot.cluster,
        scheduler,
        knowledge=knowledge or snapshot.knowledge,
        seed=snapshot.seed if seed is None else seed,
        horizon=horizon,
        start=snapshot,
    )


def _with_arrivals(snapshot: Snapshot, arrivals: Workload) -> Workload:
    if len(arrivals) and arrivals.submit[0] <= snapshot.now:
        raise ConfigError(
            f"a job arrives at {arrivals.submit[0]:g} s",
            where=f"arrivals {arrivals.name!r}",
            expected=f"submissions after the snapshot, at {snapshot.now:g} s",
            hint="times are on the clock of the snapshot: build the jobs with rebase=False",
        )
    return join(snapshot.workload, arrivals)
