"""simulate: run one workload on one cluster under one scheduler."""

from __future__ import annotations

import dataclasses
import time
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from berthline.errors import ConfigError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.workload import Workload, check_workload
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.evaluate.decision_latency import DecisionLatency
    from berthline.evaluate.energy_rate import EnergyRate
    from berthline.evaluate.groups import GroupMetrics
    from berthline.evaluate.metrics import Metrics
    from berthline.text_or_path import TextOrPath

SIMULATORS = ("native", "reference")


@dataclasses.dataclass(frozen=True, eq=False)
class Result:
    """What one run gave: the log, and everything needed to read or repeat it."""

    log: Schedule
    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    knowledge: str
    seed: int
    wall_seconds: float
    decision_seconds: list[float] | None = None
    """Of every decision, if they were timed."""

    def metrics(self, *, measure: tuple[float, float] | None = None) -> Metrics:
        """Return the metrics of the log (computed once), or of a part of it.

        Args:
            measure: a measurement window (from, to) in seconds, which leaves out a warm-up and a
                cool-down: jobs count that are submitted in it, and time averages are over it.

        Raises:
            ConfigError: the window contains no time.
        """
        if measure is None:
            return self._metrics
        from berthline.evaluate.measurement_window import MeasurementWindow
        from berthline.evaluate.metrics import measure as metrics_of

        window = MeasurementWindow.checked(measure)
        return metrics_of(self.log, self.workload, self.cluster, window=window)

    def by(
        self, grouping: str, *, measure: tuple[float, float] | None = None
    ) -> list[GroupMetrics]:
        """Return the metrics of every group of jobs: by `user`, `pool`, `size` or `priority`.

        Args:
            grouping: what to group by.
            measure: as in `metrics`.

        Raises:
            ConfigError: there is no such grouping, or the window contains no time.
        """
        from berthline.evaluate.groups import group_table
        from berthline.evaluate.measurement_window import MeasurementWindow

        window = None if measure is None else MeasurementWindow.checked(measure)
        return group_table(self.log, self.workload, self.cluster, by=grouping, window=window)

    def decision_latency(self) -> DecisionLatency:
        """Return the wall time per decision point: measured, so different in every run."""
        from berthline.evaluate.decision_latency import decision_latency

        return decision_latency(self.wall_seconds, self.log.decisions, self.decision_seconds)

    def energy_cost(self, rate: EnergyRate, *, measure: tuple[float, float] | None = None) -> float:
        """Return what the energy cost, or the carbon it stands for, in the unit of the rate.

        Args:
            rate: price or carbon per kWh over time.
            measure: as in `metrics`: only what is used in this window.
        """
        from berthline.evaluate.energy import energy_cost
        from berthline.evaluate.measurement_window import MeasurementWindow

        window = None if measure is None else MeasurementWindow.checked(measure)
        return energy_cost(self.log, self.workload, self.cluster, rate, window=window)

    @cached_property
    def _metrics(self) -> Metrics:
        from berthline.evaluate.metrics import measure

        return measure(self.log, self.workload, self.cluster)


def simulate(
    workload: Workload,
    cluster: Cluster | TextOrPath,
    scheduler: Scheduler | TextOrPath,
    *,
    knowledge: str = "estimate",
    seed: int = 0,
    horizon: float | None = None,
    conditions: Mapping[str, float] | None = None,
    simulator: Literal["native", "reference"] | str = "native",
    time_decisions: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Result:
    """Simulate the workload and return its schedule log.

    Args:
        workload: the jobs.
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"` or a file's path.
        scheduler: a Scheduler, or its text such as `"sjf+easy@best-fit"`, or the directory of a
            training run such as `"runs/ppo"`.
        knowledge: what the scheduler knows of run times: none, estimate, predicted or exact.
        seed: decides everything random: order, placement, failures and refused starts.
        horizon: stop at this time; None = run until every job has finished.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        simulator: `native` (fast) or `reference` (the SimPy definition of the semantics).
        time_decisions: take the time of every decision, for `Result.decision_latency`. A clock is
            read twice at each, which takes longer than many decisions of the native simulator.
        progress: called now and then with the number of jobs that have arrived.

    Raises:
        BerthlineError: the inputs do not go together.
    """
    if simulator not in SIMULATORS:
        what, expected, hint = unknown_name("simulator", simulator, SIMULATORS)
        raise ConfigError(what, expected=expected, hint=hint)
    check_workload(workload)
    if not isinstance(cluster, Cluster):
        cluster = Cluster.parse(cluster)
    if conditions:
        cluster = cluster.with_conditions(conditions)
    if not isinstance(scheduler, Scheduler):
        scheduler = Scheduler.parse(scheduler)
    started = time.perf_counter()
    decision_seconds: list[float] | None = [] if time_decisions else None
    if scheduler.learned is not None:
        from berthline.learn.policy import run_policy

        if simulator != "native" or horizon is not None:
            raise ConfigError(
                "a learned policy runs in the native simulator, to the end of all jobs",
                where=str(scheduler),
                expected="no other simulator, and no horizon",
            )
        if time_decisions:
            raise ConfigError(
                "the decisions of a learned policy are not timed within a run",
                where=str(scheduler),
                expected="a scheduler made of rules",
                hint="berthline bench nets times what networks take to decide",
            )
        log = run_policy(scheduler.learned, workload, cluster, knowledge=knowledge, seed=seed)
        if progress is not None:
            progress(len(workload))
        return Result(
            log=log,
            workload=workload,
            cluster=cluster,
            scheduler=scheduler,
            knowledge=knowledge,
            seed=seed,
            wall_seconds=time.perf_counter() - started,
        )
    inputs = prepare(workload, cluster, scheduler, knowledge=knowledge, seed=seed, horizon=horizon)
    if simulator == "native":
        from berthline.sim.native import run

        log = run(inputs, progress, decision_seconds)
    else:
        from berthline.sim.reference import run as run_reference

        log = run_reference(inputs, progress, decision_seconds)
    return Result(
        log=log,
        workload=workload,
        cluster=cluster,
        scheduler=scheduler,
        knowledge=knowledge,
        seed=seed,
        wall_seconds=time.perf_counter() - started,
        decision_seconds=decision_seconds,
    )
