"""One run of a comparison: how it is made, and which results are kept.

A comparison makes thousands of runs, some in other processes and some in an earlier attempt. Little
is kept of each: the metrics, what became of each job, and the whole log only on request.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import msgspec

from berthline.errors import ConfigError
from berthline.evaluate.bounds import Bound, jct_lower_bound
from berthline.evaluate.metrics.groups import GroupMetrics
from berthline.evaluate.metrics.job_table import job_table
from berthline.evaluate.metrics.measure import Metrics
from berthline.evaluate.metrics.measurement_window import MeasurementWindow
from berthline.model.schedule import Schedule
from berthline.runs.job_outcomes import job_outcomes
from berthline.runs.job_tables import JobOutcomes

if TYPE_CHECKING:
    from berthline.evaluate.metrics.energy_rate import EnergyRate
    from berthline.model.cluster import Cluster
    from berthline.model.workload import Workload
    from berthline.policies.scheduler import Scheduler


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
    """The settings that all runs of a comparison share.

    Attributes:
        knowledge: what the schedulers know of run times.
        simulator: `native` or `reference`.
        by: groupings of jobs to measure too.
        keeps_jobs: whether job outcomes are kept.
        measure: the part of each run that counts, on the clock of its window; None = all of it.
        horizon: when each run stops, on the clock of its window; None = when every job has ended.
    """

    knowledge: str = "estimate"
    simulator: str = "native"
    by: tuple[str, ...] = ()
    keeps_jobs: bool = False
    measure: MeasurementWindow | None = None
    horizon: float | None = None


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run.

    Attributes:
        metrics: of the run, or of the measured part of it.
        wall_seconds: wall-clock time of the simulation.
        energy_cost: at the energy rate, if one was given.
        groups: the metrics of groups of jobs, by the name of the grouping.
        bound: a lower bound for these jobs; computed by one run of each window.
    """

    metrics: Metrics
    wall_seconds: float
    energy_cost: float | None = None
    groups: dict[str, list[GroupMetrics]] = {}
    bound: Bound | None = None

    def line(self) -> dict[str, Any]:
        """Return the figures as a line of `metrics.jsonl`, under the names of `sim --json`."""
        line = msgspec.structs.asdict(self.metrics)
        line["wall_seconds"] = self.wall_seconds
        if self.energy_cost is not None:
            line["energy_cost"] = self.energy_cost
        for grouping, rows in self.groups.items():
            # by_priority is always there, with fewer metrics.
            line.setdefault(f"by_{grouping}", {row.group: row for row in rows})
        return line


@dataclasses.dataclass(frozen=True, eq=False)
class FinishedRun:
    """A record and what else is kept of a run; None = not requested."""

    record: RunRecord
    jobs: JobOutcomes | None = None
    log: Schedule | None = None


def make_run(
    workload: Workload,
    cluster: Cluster,
    scheduler: Scheduler | str,
    settings: RunSettings,
    *,
    seed: int,
    energy_rate: EnergyRate | None = None,
    keeps_log: bool = False,
    bounds: bool = False,
) -> FinishedRun:
    """Simulate and measure.

    Args:
        workload: the jobs.
        cluster: the nodes.
        scheduler: the scheduler.
        settings: settings of the comparison.
        seed: seed of this run.
        energy_rate: on the clock of this workload.
        keeps_log: whether to keep the log.
        bounds: whether to compute the bound of these jobs.

    Raises:
        ConfigError: no job is submitted in the measurement window.
        BerthlineError: the inputs are incompatible.
    """
    from berthline.sim.simulate import simulate

    measure = settings.measure
    if measure is not None and not measure.submitted(workload).any():
        raise ConfigError(
            f"no job of {workload.name} is submitted in the measurement window",
            expected=f"a part of 0 to {workload.submit.max(initial=0):,.10g} s, "
            "the span of submissions",
        )
    result = simulate(
        workload,
        cluster,
        scheduler,
        knowledge=settings.knowledge,
        seed=seed,
        simulator=settings.simulator,
        horizon=settings.horizon,
    )
    record = RunRecord(
        metrics=result.metrics(measure=measure),
        wall_seconds=result.wall_seconds,
        energy_cost=None
        if energy_rate is None
        else result.energy_cost(energy_rate, measure=measure),
        groups={grouping: result.by(grouping, measure=measure) for grouping in settings.by},
        bound=jct_lower_bound(
            workload, cluster, counted=job_table(result.log, workload, measure).counted
        )
        # Jobs that a horizon cuts off may have a shorter JCT than any schedule would give them.
        if bounds and settings.horizon is None
        else None,
    )
    return FinishedRun(
        record,
        job_outcomes(result.log, workload) if settings.keeps_jobs else None,
        result.log if keeps_log else None,
    )
