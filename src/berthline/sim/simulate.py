"""simulate: run one workload on one cluster under one scheduler."""

from __future__ import annotations

import dataclasses
import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from berthline.argument_types import check_arguments
from berthline.errors import ConfigError, unknown_name
from berthline.model.cluster import Cluster
from berthline.model.schedule import Schedule
from berthline.model.snapshot import Snapshot
from berthline.model.speeds import RunTimeScaling, run_time_scaling
from berthline.model.workload import Workload
from berthline.policies.scheduler import Scheduler
from berthline.sim.inputs import prepare
from berthline.sim.policy_runner import nameable, policy_runner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from berthline.evaluate.metrics.decision_latency import DecisionLatency
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.evaluate.metrics.groups import GroupMetrics
    from berthline.evaluate.metrics.measure import Metrics
    from berthline.evaluate.metrics.measurement_window import MeasurementWindow
    from berthline.text_or_path import TextOrPath

SIMULATORS = ("native", "reference")


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """The result of one run: the log, and everything needed to read or repeat it."""

    log: Schedule
    workload: Workload
    cluster: Cluster
    scheduler: Scheduler
    knowledge: str
    seed: int
    wall_seconds: float
    decision_seconds: list[float] | None = None
    """The time of every decision, if measured."""
    start: Snapshot | None = None
    """The state in which the run began; None = with an empty cluster."""

    def __repr__(self) -> str:
        return (
            f"<Result of {self.scheduler}: {self.workload!r} on {self.cluster.name}, "
            f"knowledge {self.knowledge}, seed {self.seed}>"
        )

    def metrics(self, *, measure: tuple[float, float] | None = None) -> Metrics:
        """Return the metrics of the log (computed once), or of a part of it.

        Args:
            measure: a measurement window (from, to) in seconds, which excludes warm-up and
                cool-down: only jobs submitted in it count, and time averages are over it.

        Raises:
            ConfigError: the window contains no time.
        """
        if measure is None:
            return self._metrics
        from berthline.evaluate.metrics.measure import measure as metrics_of

        return metrics_of(self.log, self.workload, self.cluster, window=self.window(measure))

    def window(self, measure: tuple[float, float] | None = None) -> MeasurementWindow | None:
        """Return what is measured; None = the whole run.

        A run that began with a snapshot is measured from there: the jobs that were not over, and
        later ones. A window that begins earlier begins there too.

        Args:
            measure: as in `metrics`.

        Raises:
            ConfigError: the window contains no time, no job, or nothing of the run.
        """
        from berthline.evaluate.metrics.measurement_window import MeasurementWindow

        begins = None if self.start is None else self.start.now
        window = MeasurementWindow.of_run(measure, begins)
        if measure is not None and window is not None:
            window.check_jobs(self.workload)
        return window

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
        from berthline.evaluate.metrics.groups import group_table

        window = self.window(measure)
        return group_table(self.log, self.workload, self.cluster, by=grouping, window=window)

    def decision_latency(self) -> DecisionLatency:
        """Return the wall-clock time per decision point, which differs from run to run."""
        from berthline.evaluate.metrics.decision_latency import decision_latency

        return decision_latency(self.wall_seconds, self.log.decisions, self.decision_seconds)

    def energy_cost(self, rate: EnergyRate, *, measure: tuple[float, float] | None = None) -> float:
        """Return the cost or the carbon of the energy used, in the unit of the rate.

        Args:
            rate: price or carbon per kWh over time.
            measure: as in `metrics`: only what is used in this window.
        """
        from berthline.evaluate.metrics.energy import energy_cost

        window = self.window(measure)
        return energy_cost(self.log, self.workload, self.cluster, rate, window=window)

    def summary(self, *, measure: tuple[float, float] | None = None) -> dict[str, Any]:
        """Return plain data, as summary.json of `berthline sim` has it.

        Args:
            measure: as in `metrics`.
        """
        import msgspec

        from berthline.model.conditions import json_conditions

        metrics = msgspec.structs.asdict(self.metrics(measure=measure))
        end = ("events", "decisions", "log_sha256")
        return {
            "scheduler": str(self.scheduler),
            "workload": self.workload.name,
            "cluster": self.cluster.name,
            "conditions": json_conditions(self.cluster.conditions.changed()),
            "knowledge": self.knowledge,
            "seed": self.seed,
            **({} if self.policy is None else {"policy": self.policy}),
            **({} if self.start is None else {"from_snapshot": self.start.now}),
            **({} if measure is None else {"measure": list(measure)}),
            "run_times": self.run_times,
            **{key: value for key, value in metrics.items() if key not in end},
            "wall_seconds": self.wall_seconds,
            "decision_latency": self.decision_latency(),
            **{key: metrics[key] for key in end},
        }

    @property
    def policy(self) -> str | None:
        """How a policy that is a Python object decided, in a sentence; None = it is none."""
        learned = self.scheduler.learned
        return None if learned is None or learned.given is None else learned.given.sentence

    def snapshot(self, at: float) -> Snapshot:
        """Return the state at an instant: its events have happened, its decision has not.

        Args:
            at: seconds on the clock of the run.

        Raises:
            ConfigError: the run does not reach that instant.
        """
        from berthline.sim.snapshots.take import take_snapshot

        return take_snapshot(self, at)

    @cached_property
    def run_times(self) -> RunTimeScaling | None:
        """How the run scaled the run times of the workload; None = it did not."""
        return run_time_scaling(self.workload, self.cluster)

    @cached_property
    def _metrics(self) -> Metrics:
        from berthline.evaluate.metrics.measure import measure

        return measure(self.log, self.workload, self.cluster, window=self.window())


def simulate(
    workload: Workload | TextOrPath,
    cluster: Cluster | TextOrPath | None,
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
        workload: the jobs: a Workload, or a WORKLOAD argument such as `"trace.swf"` or
            `"synthetic"` (see `resolve_workload`).
        cluster: a Cluster, or a CLUSTER argument such as `"uniform:64x8:V100"`, a cluster file or a
            node list (see `resolve_cluster`); None = what a trace states, else
            `uniform:8x8:V100`.
        scheduler: a Scheduler, or its text such as `"sjf+easy@best-fit"`, or the directory of a
            training run such as `"runs/ppo"`, or a policy: a `Policy`, or what can be one.
        knowledge: what the scheduler knows about run times: none, estimate, predicted or exact.
        seed: decides everything random: order, placement, failures and refused starts, and the
            jobs of a generator.
        horizon: stop at this time; None = run until every job has finished.
        conditions: replace some of the cluster's conditions, such as `{"restart": 30}`.
        simulator: `native` (fast) or `reference` (the SimPy definition of the semantics).
        time_decisions: measure the time of every decision, for `Result.decision_latency`. A clock
            is read twice at each, which takes longer than many decisions of the native simulator.
            Of a learned policy, the choices of its network are timed, without its observations.
        progress: called periodically with the number of jobs that have arrived.

    Raises:
        BerthlineError: the inputs are not compatible.
    """
    check_arguments(seed=seed, horizon=horizon, conditions=conditions)
    # Formats and generators take long to import, and code that reads a run needs none of them.
    from berthline.traces.cluster_argument import resolve_cluster
    from berthline.traces.stated_cluster import default_cluster
    from berthline.traces.workload_argument import resolve_workload

    cluster = resolve_cluster(default_cluster(workload) if cluster is None else cluster)
    if conditions:
        cluster = cluster.with_conditions(conditions)
    workload = resolve_workload(workload, cluster=cluster, seed=seed)
    if not isinstance(scheduler, Scheduler):
        policy = nameable(scheduler)  # its name means something while it exists
        scheduler = Scheduler.parse(policy)
    started = time.perf_counter()
    check_simulator(scheduler, simulator)
    decision_seconds: list[float] | None = [] if time_decisions else None
    if scheduler.learned is not None:
        log = policy_runner().run(
            scheduler.learned,
            workload,
            cluster,
            knowledge=knowledge,
            seed=seed,
            horizon=horizon,
            progress=progress,
            decision_seconds=decision_seconds,
        )
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
            decision_seconds=decision_seconds,
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


def check_simulator(scheduler: Scheduler, simulator: str) -> None:
    """Raise unless a simulator can run a scheduler.

    Raises:
        ConfigError: there is no such simulator; only the native one runs learned policies.
    """
    if simulator not in SIMULATORS:
        what, expected, hint = unknown_name("simulator", simulator, SIMULATORS)
        raise ConfigError(what, expected=expected, hint=hint)
    if scheduler.learned is not None and simulator != "native":
        raise ConfigError(
            "a learned policy runs in the native simulator",
            where=str(scheduler),
            expected="no other simulator",
        )
